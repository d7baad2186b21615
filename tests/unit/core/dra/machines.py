"""Machines with DRA devices, pods that claim them, and a cluster to look the claims up in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonpatch

from tests.unit.core.dra.claiming import GPU, JSON, NIC, device, request, spec
from tests.unit.core.setting import SINGLE, bare, kubelet, m112, named
from webhook.config.catalogue import shipped_catalogue
from webhook.config.claims import ClusterObjects
from webhook.config.load import parse_class
from webhook.core import decide
from webhook.core.decision import Decision, Request
from webhook.core.dra.references import Reference
from webhook.core.kubelet.node import compile_class
from webhook.core.policy import Policy
from webhook.core.snapshot import Snapshot

STATIC = kubelet(SINGLE)
NAMESPACE = "research"
SPREAD = (0, 0, 0, 0, 1, 1, 1, 1)
"""NUMA nodes of a machine's GPUs, in the order in which the driver lists them."""


def gpus(*nodes: int | None, **more: Any) -> JSON:
    """A slice of GPUs on these NUMA nodes; None: it does not say."""
    made = [device(f"gpu-{i}", {"type": "gpu"}, **({} if node is None else {"numa": node})) for i, node in enumerate(nodes)]
    return spec(GPU, *made, **more)


def nics(*nodes: int | None) -> JSON:
    """A slice of NICs on these NUMA nodes."""
    return spec(NIC, *(device(f"nic-{i}", **({} if node is None else {"numa": node})) for i, node in enumerate(nodes)))


def machine(
    *slices: JSON, name: str = "dgx", config: JSON = STATIC, plugins: int = 0, described: bool = True, **more: Any
) -> JSON:
    """Two NUMA nodes of 56 CPUs, with these slices, and with GPUs of a device plugin on each where there are any."""
    devices = {"nvidia.com/gpu": plugins} if plugins else {}
    made = named(m112(config, devices, devices), name, **more)
    return made if not described else named(made, name, resourceSlices=list(slices), **more)


class Cluster:
    """Templates and claims by name; an exception is raised, None is not there."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self.objects = objects

    def find(self, _namespace: str, reference: Reference) -> Any:
        found = self.objects.get(reference.name)
        if isinstance(found, Exception):
            raise found
        return found


def template(*requests: JSON, name: str = "t", **devices: Any) -> JSON:
    inner = {"spec": {"devices": {"requests": list(requests)} | devices}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": inner}


def gpu_request(count: int = 1, name: str = "gpu", **more: Any) -> JSON:
    return request(name, count, "gpu.nvidia.com", **more)


def nic_request(count: int = 1, name: str = "nic", **more: Any) -> JSON:
    return request(name, count, "dranet", **more)


def user(name: str = "main", claim: str = "gpus", wanted: str = "", gpu: int | None = None, **resources: Any) -> JSON:
    """A container that uses a claim, or one of its requests."""
    made = bare(name, gpu, **resources)
    made.setdefault("resources", {})["claims"] = [{"name": claim} | ({"request": wanted} if wanted else {})]
    return made


def claiming(*containers: JSON, claims: Mapping[str, str] | None = None, **more: Any) -> JSON:
    """A pod with claims: its name for each -> the template's."""
    entries = [{"name": name, "resourceClaimTemplateName": of} for name, of in (claims or {"gpus": "t"}).items()]
    inside = {"containers": list(containers or (user(),)), "resourceClaims": entries} | more
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": inside}


def known(*classes: JSON, objects: Mapping[str, Any] | None = None, more: Any = (), **policy: Any) -> Snapshot:
    """A set in force with these classes; `more`: objects as the cluster has them."""
    compiled = []
    for each in classes:
        parsed, errors = parse_class(each)
        assert parsed is not None, errors
        compiled.append(compile_class(parsed))
        assert compiled[-1].start is None, compiled[-1].start
    others = ClusterObjects()
    for each in more:
        assert not others.add(each)
    inventory = others.inventory(each.node_class for each in compiled)
    lookup = None if objects is None else Cluster(objects)
    return Snapshot(Policy(**policy), shipped_catalogue(), tuple(compiled), inventory=inventory, lookup=lookup)


def mutated(made: JSON, snapshot: Snapshot, mode: str = "strict") -> tuple[JSON, Decision]:
    """The pod as the API server has it after our mutation, and the decision."""
    decision = decide.mutate(made, Request(NAMESPACE, label=mode), snapshot)
    return jsonpatch.apply_patch(made, list(decision.patch)), decision


def validated(made: JSON, snapshot: Snapshot, mode: str = "strict") -> Decision:
    return decide.validate(made, Request(NAMESPACE, label=mode), snapshot)

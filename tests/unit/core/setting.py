"""Node classes, pods and decisions for the tests of the deciding core, on the machines of the verdict tables."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch

from tests.conformance.tables import GPU, JSON, NIC, RESTRICTED, SINGLE, container, kubelet, m112, m128, nps4, numa, pod
from webhook.config.catalogue import shipped_catalogue
from webhook.config.load import parse_class
from webhook.core import decide
from webhook.core.decision import Decision, Request
from webhook.core.kubelet.node import compile_class
from webhook.core.policy import Policy
from webhook.core.snapshot import Snapshot

__all__ = [
    "GPU",
    "JSON",
    "NIC",
    "RESTRICTED",
    "SINGLE",
    "container",
    "kubelet",
    "m112",
    "m128",
    "named",
    "nps4",
    "numa",
    "pod",
]


def named(document: JSON, name: str, **spec: Any) -> JSON:
    """The class under a name of its own, with a selector of its own, and other fields of its spec replaced."""
    made = copy.deepcopy(document)
    made["metadata"] = {"name": name}
    made["spec"] |= {"selector": {"class": name}} | spec
    return made


def snapshot(*documents: JSON, policy: Policy | None = None) -> Snapshot:
    """A set of classes in force."""
    classes = []
    for document in documents:
        found, errors = parse_class(document)
        assert found is not None, errors
        kubelet_of = compile_class(found)
        assert kubelet_of.start is None, kubelet_of.start
        classes.append(kubelet_of)
    return Snapshot(policy or Policy(), shipped_catalogue(), tuple(classes))


def bare(
    name: str = "main", gpu: int | None = 1, *, requests: JSON | None = None, limits: JSON | None = None, **more: Any
) -> JSON:
    """A container as people write them: a GPU in the limits, and what else is named."""
    wanted = ({GPU: gpu} if gpu else {}) | (limits or {})
    resources = {side: amounts for side, amounts in (("limits", wanted), ("requests", requests or {})) if amounts}
    made: JSON = {"name": name, "image": "registry.example/work"}
    return made | ({"resources": resources} if resources else {}) | more


def mutated(made: JSON, known: Snapshot, mode: str = "strict") -> tuple[JSON, Decision]:
    """The pod as the API server has it after our mutation, and the decision."""
    decision = decide.mutate(made, Request(label=mode), known)
    return jsonpatch.apply_patch(made, list(decision.patch)), decision


def validated(made: JSON, known: Snapshot, mode: str = "strict", old: JSON | None = None) -> Decision:
    return decide.validate(made, Request(label=mode, old=old), known)


def amounts(made: JSON, *, init: bool = False) -> dict[str, tuple[str | None, str | None]]:
    """Container -> (CPU, memory), checking that requests equal limits."""
    found = {}
    for each in made["spec"].get("initContainers" if init else "containers", []):
        resources = each.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            assert requests.get(name) == limits.get(name), (each["name"], name, resources)
        found[each["name"]] = (limits.get("cpu"), limits.get("memory"))
    return found

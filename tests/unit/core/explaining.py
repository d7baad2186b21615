"""Pods and node classes to explain, in few words."""

from __future__ import annotations

from functools import cache
from json import dumps, loads
from typing import Any

from webhook.config.catalogue import load_catalogue
from webhook.config.load import parse_class
from webhook.core import explain
from webhook.core.explain import Account
from webhook.core.kubelet import admit
from webhook.core.kubelet.node import NodeKubelet, compile_class

GPU, NIC, PAGES = "nvidia.com/gpu", "openshift.io/mlx", "hugepages-1Gi"
CATALOGUE = load_catalogue()


def node(
    name: str = "node",
    *,
    policy: str = "single-numa-node",
    scope: str = "pod",
    cpus: int = 64,
    gpus: tuple[int, ...] = (4, 4),
    nics: tuple[int, ...] = (0, 0),
    pages: tuple[str, ...] = (),
    pin_memory: bool = True,
    **kubelet: Any,
) -> NodeKubelet:
    """Return a machine with a NUMA node per entry of `gpus`: CPUs each (SMT2), 256Gi each, 4 CPUs reserved on node 0."""
    numa = [
        {
            "id": index,
            "cpus": cpus,
            "memory": "256Gi",
            "devices": {resource: count for resource, count in ((GPU, gpus[index]), (NIC, nics[index])) if count},
            **({"hugepages": {"1Gi": pages[index]}} if pages else {}),
        }
        for index in range(len(gpus))
    ]
    config = {
        "cpuManagerPolicy": "static",
        "topologyManagerPolicy": policy,
        "topologyManagerScope": scope,
        "systemReserved": {"cpu": "4", "memory": "12Gi"},
        "evictionHard": {"memory.available": "100Mi"},
        **kubelet,
    }
    if pin_memory:
        half = {"memory": "6194Mi"}
        config |= {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": n, "limits": half} for n in (0, 1)]}
    topology = {"sockets": 2, "threadsPerCore": 2, "numaNodes": numa}
    spec = {"selector": {"class": name}, "topology": topology, "kubelet": config}
    return _compiled(dumps({"apiVersion": "numalign.io/v1alpha1", "kind": "NodeClass", "metadata": {"name": name}, "spec": spec}))


@cache
def _compiled(text: str) -> NodeKubelet:
    node_class, errors = parse_class(loads(text))
    assert node_class is not None, errors
    return compile_class(node_class)


def container(name: str = "trainer", *, requests: dict[str, Any] | None = None, **limits: Any) -> dict[str, Any]:
    names = {"gpu": GPU, "nic": NIC, "pages": PAGES}
    resources = {"limits": {names.get(key, key): value for key, value in limits.items()}} if limits else {}
    return {"name": name, "image": "i", "resources": resources | ({"requests": requests} if requests else {})}


def pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    spec = {"containers": list(containers), **({"initContainers": list(init)} if init else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def account(of: dict[str, Any], *nodes: NodeKubelet) -> Account:
    named = {each.node_class.name: each for each in nodes}
    judged = {name: admit.judge(each, of) for name, each in named.items()}
    return explain.account(of, judged, named, CATALOGUE)


def refused(of: dict[str, Any], *nodes: NodeKubelet) -> list[str]:
    """Return the lines of the refusal below its headline."""
    return explain.message(account(of, *nodes)).splitlines()[1:]

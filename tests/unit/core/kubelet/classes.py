"""Short ways to write machines and node classes."""

from collections.abc import Mapping, Sequence
from typing import Any

from webhook.core.kubelet.machine import number_cpus
from webhook.core.model import NodeClass, NumaNode, Topology
from webhook.core.quantities import GI


def topology(*counts: int, threads: int = 2, sockets: int = 2, memory: int = 256 * GI, **more: Any) -> Topology:
    """A machine with so many CPUs on each NUMA node."""
    numbered = number_cpus(counts, threads, adjacent=more.get("adjacent_siblings", False))
    nodes = tuple(NumaNode(node, cpus, memory) for node, cpus in enumerate(numbered))
    return Topology(sockets, threads, nodes, **more)


def node_class(kubelet: Mapping[str, Any] | None = None, machine: Topology | None = None, **more: Any) -> NodeClass:
    """A class of two-socket machines with 56 CPUs and 256Gi on each NUMA node, unless another machine is given."""
    return NodeClass("class", {}, machine or topology(56, 56), kubelet=kubelet or {}, **more)


def static(cpu: str = "4", options: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """A KubeletConfiguration with the static CPU policy, options that are on, and the gate of the alpha ones."""
    return {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": dict.fromkeys(options, "true"),
        "systemReserved": {"cpu": cpu},
        "featureGates": {"CPUManagerPolicyAlphaOptions": True},
        **more,
    }


def cpus(text: str) -> int:
    """Read a CPU list into a set."""
    found = 0
    for run in filter(None, text.split(",")):
        low, _, high = run.partition("-")
        found |= (1 << int(high or low) + 1) - (1 << int(low))
    return found

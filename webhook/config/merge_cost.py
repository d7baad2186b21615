"""How long a class's kubelet may take to find a pod's NUMA nodes: it goes through masks, then through combinations of hints.

Sources: `topologymanager/policy.go` (iterateAllProviderTopologyHints: the cartesian product of all resources' hints),
`policy_single_numa_node.go` (which leaves one-node hints only), and the hint generators of the CPU, memory and device managers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from webhook.core.kubelet.node import NodeKubelet

SECONDS_PER_STEP: Final = 1e-6
"""One combination merged, or one mask tested: some hundred nanoseconds to a few microseconds on a server CPU."""

_HOSTING_NODES_ONLY_SINCE: Final = 36
"""Since 1.36 device hints are made of the NUMA nodes that have such devices; before, of all of them."""


@dataclass(frozen=True, slots=True)
class MergeCost:
    """The worst case for one pod that asks for CPUs, memory and some of every device.

    Attributes:
        resources: those that give hints.
        steps: masks tested plus combinations merged.
    """

    resources: tuple[str, ...]
    steps: int

    @property
    def seconds(self) -> float:
        """Return about how long it takes."""
        return self.steps * SECONDS_PER_STEP


def merge_cost(kubelet: NodeKubelet) -> MergeCost:
    """Return the cost for a class whose kubelet starts."""
    if kubelet.config.topology_policy == "none":
        return MergeCost((), 0)
    spread = _hinting(kubelet)
    single = kubelet.config.topology_policy == "single-numa-node"
    masks = [2**nodes - 1 for nodes in spread.values()]
    hints = list(spread.values()) if single else masks
    return MergeCost(tuple(spread), sum(masks) + prod(hints))


def _hinting(kubelet: NodeKubelet) -> dict[str, int]:
    """Return each resource that gives hints -> how many NUMA nodes they are made of."""
    machine, config = kubelet.machine, kubelet.config
    found = {}
    if config.cpu_static:
        found["cpu"] = len(machine.cpu_topology.numa)
    if config.memory_static:
        found["memory"] = len(machine.cells)
    for resource, groups in machine.devices.items():
        hosting = 0
        for group in groups:
            hosting |= group.mask
        if hosting:
            found[resource] = hosting.bit_count() if kubelet.minor >= _HOSTING_NODES_ONLY_SINCE else len(machine.cells)
    return found

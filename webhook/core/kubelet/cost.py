"""How long a kubelet takes to find a pod's NUMA nodes.

Each manager tries every mask of its NUMA nodes, and the Topology Manager then every combination of one hint per resource
(`topologymanager/policy.go`, iterateAllProviderTopologyHints); single-numa-node keeps hints of one node only before that.
Our own merge does not depend on this, but a class whose kubelet would be busy for minutes is no use to its owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final

from webhook.core.kubelet.contract import Hints
from webhook.core.kubelet.machine import union
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.resource_names import is_memory

SECONDS_PER_COMBINATION: Final = 145e-9
"""Measured with the managers of v1.37: 2.4 s for the 255**3 combinations of three resources on eight NUMA nodes."""

SECONDS_PER_MASK: Final = 4e-6
"""Measured as well: 0.8 s for three times the 65,535 masks of 16 NUMA nodes."""

_FEW_NODES: Final = 16

SLOW: Final = 1.0
"""Seconds from which on a class's owner is warned."""

_HOSTING_NODES_SINCE: Final = 36

HOPELESS: Final = 600.0
"""Seconds from which on there is no verdict."""


def merge_seconds(node: NodeKubelet) -> float:
    """Return the estimate for a pod that asks for CPUs, memory and a device of every resource, on a class that starts."""
    if node.config.topology_policy == "none":
        return 0.0
    widths = hinting_nodes(node)
    masks = [(1 << width) - 1 for width in widths.values()]
    kept = widths.values() if node.config.topology_policy == "single-numa-node" else masks
    return sum(masks) * SECONDS_PER_MASK + combination_seconds(kept)


def combination_seconds(hints: Iterable[int]) -> float:
    """Return the estimate for merging lists of so many hints, one per resource that has any."""
    combinations: int = prod(hints)
    return combinations * SECONDS_PER_COMBINATION


def hinting_nodes(node: NodeKubelet) -> dict[str, int]:
    """Return resource -> over how many NUMA nodes its hints range, for every resource of a class that gives hints."""
    found = {}
    if node.cpu_policy:
        found["cpu"] = len(node.machine.cpu_topology.numa)
    if node.memory_policy:
        found["memory"] = len(node.machine.cells)
    for resource, groups in node.machine.devices.items():
        hosting = union(group.mask for group in groups)
        if hosting:
            found[resource] = hosting.bit_count() if node.minor >= _HOSTING_NODES_SINCE else len(node.machine.cells)
    return found


def hint_seconds(node: NodeKubelet, provided: Iterable[Hints]) -> float:
    """Return the estimate for one merge: of what the managers provided, for one container or for the pod."""
    given = [hints for hints in provided if hints]
    seconds = combination_seconds(len(found) for hints in given for found in hints.values() if found)
    if node.machine.numa_mask.bit_count() <= _FEW_NODES:
        return seconds
    widths = hinting_nodes(node)
    # the Memory Manager goes through the masks once, whatever the number of its types
    asked = {"memory" if is_memory(name) else name for hints in given for name, found in hints.items() if found is not None}
    return seconds + sum(((1 << widths[name]) - 1) * SECONDS_PER_MASK for name in asked if name in widths)


def duration(seconds: float) -> str:
    """Return an estimate for people to read: `12 minutes`, `3 days`."""
    for unit, length in (("years", 31_536_000), ("days", 86_400), ("hours", 3_600)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds / 60:,.0f} minutes"

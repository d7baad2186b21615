"""What the NUMA nodes of an idle node leave to pods: the numbers behind every explanation.

Amounts are nano units, as everywhere (see `quantities`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from webhook.core.kubelet.node import NodeKubelet
from webhook.core.quantities import NANO
from webhook.core.resource_names import CPU, is_memory


def per_numa_node(node: NodeKubelet, resource: str) -> Mapping[int, int]:
    """Return NUMA node -> what a pod can have of a resource there; empty where the kubelet does not place the resource.

    CPUs count only under the static CPU policy, memory and hugepages only under the Static memory policy.
    """
    if resource == CPU:
        return _cpus(node) if node.config.cpu_static else {}
    if is_memory(resource):
        return _memory(node, resource) if node.config.memory_static else {}
    return _devices(node, resource)


def _cpus(node: NodeKubelet) -> dict[int, int]:
    free = node.available_cpus
    if node.config.cpu_options.full_pcpus_only:
        free = sum(core for core in node.machine.cpu_topology.cores.values() if core & free == core)
    return {cell.id: (cell.cpus & free).bit_count() * NANO for cell in node.machine.cells if cell.cpus}


def _memory(node: NodeKubelet, resource: str) -> dict[int, int]:
    table = node.memory_allocatable
    return {cell: table[cell][resource] * NANO for cell in sorted(table) if resource in table[cell]}


def _devices(node: NodeKubelet, resource: str) -> dict[int, int]:
    """Count a device that sits on several nodes at each of them; one without a node counts nowhere."""
    groups = node.machine.devices.get(resource, ())
    if not any(group.mask for group in groups):
        return {}
    return {
        cell.id: sum(group.count for group in groups if group.mask >> cell.id & 1) * NANO
        for cell in node.machine.cells
        if cell.cpus or any(group.mask >> cell.id & 1 for group in groups)
    }


def fewest_nodes(offers: Iterable[int], amount: int) -> int:
    """Return the fewest NUMA nodes that together offer an amount; 1 where all of them do not."""
    largest = sorted(offers, reverse=True)
    return next((count for count in range(1, len(largest) + 1) if sum(largest[:count]) >= amount), 1)


def whole_node(node: NodeKubelet, resource: str) -> int | None:
    """Return what the whole node has of a resource for pods; None where the class does not list it."""
    return node.fit_allocatable.get(resource)

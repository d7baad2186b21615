"""Amounts that need as many NUMA nodes as a container's devices do.

Where hints are merged over several NUMA nodes, all that a container asks is aligned on the very same nodes, each resource at its
own minimal width (`topologymanager/policy.go`). Eight GPUs of two nodes with CPUs that fit one node are not: fewer GPUs would
help, and so would more CPUs, which is what the author of a whole-machine pod wants to hear.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from webhook.core import supply
from webhook.core.change import Change, setting
from webhook.core.containers import Container, Kind, Pod, visit
from webhook.core.knobs import amount_of, has_devices, smt_width, written
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.quantities import GI, NANO
from webhook.core.resource_names import CPU, MEMORY

MERGING: Final = frozenset({"best-effort", "restricted"})
"""Topology policies that look at masks of several NUMA nodes; single-numa-node filters them out first."""


def widened(pod: Pod, node: NodeKubelet) -> tuple[Change, ...]:
    """Return what makes CPU and memory of the pod's device container need as many NUMA nodes as its devices.

    Empty where they do already, where the devices need one node, or where several containers have devices.
    """
    bearers = [each for each in visit(pod) if each.kind is not Kind.INIT and has_devices(each, node)]
    if len(bearers) != 1 or node.config.topology_policy not in MERGING:
        return ()
    needed = nodes_for_devices(bearers[0], node)
    cpus = [cell.cpus.bit_count() * NANO for cell in node.machine.cells if cell.cpus] if node.config.cpu_static else []
    memory = supply.per_numa_node(node, MEMORY).values()
    wanted = ((CPU, cpus, smt_width(node) * NANO), (MEMORY, memory, GI * NANO))
    found = (_wider(bearers[0], resource, needed, there, unit) for resource, there, unit in wanted if there)
    return tuple(change for change in found if change is not None)


def nodes_for_devices(container: Container, node: NodeKubelet) -> int:
    """Return the fewest NUMA nodes that have so many devices as the container asks, of each resource."""
    asked = {name: amount_of(container, name) for name in container.quantities("limits")}
    devices = ((supply.per_numa_node(node, name).values(), amount) for name, amount in asked.items() if "/" in name)
    return max((supply.fewest_nodes(offers, amount) for offers, amount in devices), default=1)


def _wider(container: Container, resource: str, needed: int, there: Collection[int], unit: int) -> Change | None:
    """Return the change to the least amount that does not fit one NUMA node fewer; None where it has that."""
    present = amount_of(container, resource)
    fits_fewer = sum(sorted(there, reverse=True)[: needed - 1])
    if not present or present > fits_fewer:
        return None
    amount = (fits_fewer // unit + 1) * unit
    change = setting(container, resource, written(resource, amount), (amount - present) / amount)
    return replace(change, widens=True)

"""A node class with everything that deciding needs of it and that no pod changes, computed once per class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.core import supply
from webhook.core.accelerators import Catalogue
from webhook.core.dra.served import Served
from webhook.core.kubelet.machine import Cell
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.quantities import MILLI_IN_NANO, NANO
from webhook.core.resource_names import CPU, MEMORY

_ENFORCING = frozenset({"restricted", "single-numa-node"})


@dataclass(frozen=True, slots=True)
class Home:
    """A NUMA node with CPUs, and what it leaves to pods on an idle node: DaemonSets and static pods are taken off.

    Attributes:
        cpu: milli-CPUs; under full-pcpus-only of whole free cores only.
        memory: bytes.
        devices: resource -> devices there, as the kubelet counts them (shared ones multiplied).
        accelerators: how many of `devices` are accelerators.
        all_cpus: CPUs, reserved ones included: the Topology Manager's measure of width.
        pinnable: bytes that the Memory Manager can pin there; 0 where it pins nothing.
    """

    id: int
    cpu: int
    memory: int
    devices: Mapping[str, int]
    accelerators: int
    all_cpus: int
    pinnable: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node class that a pod may land on.

    Attributes:
        enforced: its Topology Manager refuses what it cannot align.
        several: it has more than one NUMA node, so there is something to align.
        offers: device resources with at least one device.
        bound: those of which at least one device has a NUMA node.
        smt_width: exclusive CPUs come in multiples of this.
        served: what DRA gives the pod at hand there; None: nothing that matters.
    """

    node: NodeKubelet
    enforced: bool
    several: bool
    offers: frozenset[str]
    bound: frozenset[str]
    homes: tuple[Home, ...]
    smt_width: int
    served: Served | None = None

    @property
    def name(self) -> str:
        """Return the class's name."""
        return self.node.node_class.name

    @property
    def is_by_dra(self) -> bool:
        """Tell whether DRA gives the pod at hand its accelerators there, and no device plugin does."""
        return self.served is not None and self.served.by_dra


def candidate(node: NodeKubelet, catalogue: Catalogue) -> Candidate:
    """Return the class as a candidate."""
    devices = node.machine.devices
    config = node.config
    return Candidate(
        node=node,
        enforced=config.topology_policy in _ENFORCING,
        several=len(node.machine.cells) > 1,
        offers=frozenset(resource for resource, groups in devices.items() if groups),
        bound=frozenset(resource for resource, groups in devices.items() if any(group.mask for group in groups)),
        homes=tuple(_homes(node, catalogue)),
        smt_width=node.machine.cpu_topology.threads_per_core if config.cpu_options.full_pcpus_only else 1,
    )


def _homes(node: NodeKubelet, catalogue: Catalogue) -> list[Home]:
    with_cpus = [cell for cell in node.machine.cells if cell.cpus]
    pinned = supply.per_numa_node(node, CPU)
    return [_home(node, cell, len(with_cpus), pinned, catalogue) for cell in with_cpus]


def _home(node: NodeKubelet, cell: Cell, homes: int, exclusive: Mapping[int, int], catalogue: Catalogue) -> Home:
    devices = {
        resource: sum(group.count for group in groups if group.mask >> cell.id & 1)
        for resource, groups in node.machine.devices.items()
    }
    accelerators = sum(count for name, count in devices.items() if (entry := catalogue.find(name)) and entry.is_accelerator)
    pinnable = supply.per_numa_node(node, MEMORY).get(cell.id, 0) // NANO
    # A kubelet that places none of it still keeps its reservation from pods: evenly, for want of better.
    free_memory = cell.memory - sum(cell.hugepages.values()) - node.config.reserved_memory // NANO // homes
    free_cpu = cell.cpus.bit_count() * 1000 - node.config.reserved_cpu // MILLI_IN_NANO // homes
    return Home(
        id=cell.id,
        cpu=max(exclusive.get(cell.id, free_cpu * MILLI_IN_NANO) // MILLI_IN_NANO - node.node_class.daemon_cpu, 0),
        memory=max((pinnable or free_memory) - node.node_class.daemon_memory, 0),
        devices=devices,
        accelerators=accelerators,
        all_cpus=cell.cpus.bit_count(),
        pinnable=pinnable,
    )

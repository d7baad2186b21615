"""The machine as a kubelet sees it: CPU ids, cores, caches, sockets, NUMA nodes, their memory and devices (DESIGN section 6).

Cells stand for what `google/cadvisor` reports as NUMA nodes; the CPU topology is what `cpumanager/topology/topology.go` makes
of it. CPU sets and NUMA masks are ints: bit i stands for CPU i or for the NUMA node with id i.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from webhook.core.kubelet import masks
from webhook.core.model import NodeClass, NumaNode, Topology
from webhook.core.quantities import GI, MI

ALWAYS_PRESENT_PAGES = (2 * MI, GI)
"""Page sizes that every node lists, with no pages where none are reserved."""

_LOCAL_DISTANCE, _REMOTE_DISTANCE = 10, 21


@dataclass(frozen=True, slots=True)
class Cell:
    """One NUMA node: CPU set, bytes of memory (hugepages included), page size in bytes -> bytes, distances to all cells."""

    id: int
    cpus: int
    memory: int
    hugepages: Mapping[int, int]
    distances: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Devices of one resource that report the same NUMA nodes; mask 0: they report none."""

    mask: int
    count: int


@dataclass(frozen=True, slots=True)
class CpuTopology:
    """Which CPU belongs where.

    Every mapping goes from an id to a CPU set. A core's id is its lowest CPU; `numa` has only the nodes with CPUs, so its masks
    never range over memory-only nodes. `socket_count` is the machine's own count, sockets without CPUs included.
    """

    cpus: int
    threads_per_core: int
    socket_count: int
    cores: Mapping[int, int]
    uncores: Mapping[int, int]
    sockets: Mapping[int, int]
    numa: Mapping[int, int]

    @property
    def cpus_per_socket(self) -> int:
        """Return CPUs divided by sockets, whatever a socket really has: the kubelet's own simplification."""
        return self.cpus.bit_count() // self.socket_count

    @property
    def cpus_per_uncore(self) -> int:
        """Return CPUs divided by uncore caches."""
        return self.cpus.bit_count() // len(self.uncores)

    @property
    def numa_first(self) -> bool:
        """Tell whether NUMA nodes stand above sockets."""
        return self.socket_count >= len(self.numa)

    def whole_cores(self, cpus: int) -> int:
        """Return the CPU set of every core that has a CPU in `cpus`."""
        return union(core for core in self.cores.values() if core & cpus)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of a node class.

    Attributes:
        cells: NUMA nodes, ascending ids; memory-only ones included.
        numa_mask: the mask of all of them.
        cpu_topology: CPUs, cores, caches, sockets.
        page_sizes: every hugepage size of the machine in bytes, ascending; each cell lists them all.
        devices: resource -> groups, as the kubelet counts them (shared devices are multiplied by their replicas).
    """

    cells: tuple[Cell, ...]
    numa_mask: int
    cpu_topology: CpuTopology
    page_sizes: tuple[int, ...]
    devices: Mapping[str, tuple[DeviceGroup, ...]]

    @property
    def memory(self) -> int:
        """Return all of its memory in bytes, hugepages included."""
        return sum(cell.memory for cell in self.cells)


def build_machine(node_class: NodeClass) -> Machine:
    """Return the machine of a class."""
    topology = node_class.topology
    sizes = page_sizes(topology)
    cells = tuple(_cell(node, topology, sizes) for node in topology.numa_nodes)
    return Machine(
        cells=cells,
        numa_mask=masks.of(cell.id for cell in cells),
        cpu_topology=cpu_topology(topology),
        page_sizes=sizes,
        devices=_devices(topology, node_class.sharing),
    )


def number_cpus(counts: Sequence[int], threads_per_core: int, *, adjacent: bool) -> tuple[tuple[int, ...], ...]:
    """Return the CPU ids of each NUMA node, ascending, where only their counts are known (multiples of `threads_per_core`).

    As Linux usually numbers them: the first threads of all cores, node by node, then the second threads; `adjacent`: node by
    node, core by core.
    """
    all_cores = sum(counts) // threads_per_core
    numbered, first = [], 0
    for count in counts:
        cores = range(first, first + count // threads_per_core)
        first += len(cores)
        threads = range(threads_per_core)
        ids = (core * threads_per_core + t if adjacent else t * all_cores + core for core in cores for t in threads)
        numbered.append(tuple(sorted(ids)))
    return tuple(numbered)


def page_sizes(topology: Topology) -> tuple[int, ...]:
    """Return every hugepage size of a machine in bytes, ascending: the kernel lists a size on all nodes or on none."""
    named = {size for node in topology.numa_nodes for size in node.hugepages}
    return tuple(sorted(named.union(ALWAYS_PRESENT_PAGES)))


def cpu_topology(topology: Topology) -> CpuTopology:
    """Return cores, caches and sockets of a machine's CPUs."""
    with_cpus = [node for node in topology.numa_nodes if node.cpus]
    cores = {node.id: tuple(_cores(node.cpus, topology)) for node in with_cpus}
    every_core = [core for node in with_cpus for core in cores[node.id]]
    return CpuTopology(
        cpus=union(every_core),
        threads_per_core=topology.threads_per_core,
        socket_count=topology.sockets,
        cores={next(masks.bits(core)): core for core in sorted(every_core, key=lambda core: core & -core)},
        uncores=_uncores(cores, topology.cores_per_uncore_cache),
        sockets=_sockets(cores, topology.sockets),
        numa={node_id: union(mine) for node_id, mine in cores.items()},
    )


def _cores(cpus: tuple[int, ...], topology: Topology) -> Iterator[int]:
    """Yield a node's cores as CPU sets: neighbours, or the k-th CPUs of as many runs as a core has threads."""
    width = topology.threads_per_core
    count = len(cpus) // width
    for k in range(count):
        siblings = cpus[k * width : (k + 1) * width] if topology.adjacent_siblings else cpus[k::count]
        yield masks.of(siblings)


def _uncores(cores: Mapping[int, tuple[int, ...]], width: int | None) -> dict[int, int]:
    """Return cache -> CPU set: one cache a NUMA node, or one for each run of `width` cores."""
    runs = [
        mine[start : start + (width or len(mine))] for mine in cores.values() for start in range(0, len(mine), width or len(mine))
    ]
    return {index: union(run) for index, run in enumerate(runs)}


def _sockets(cores: Mapping[int, tuple[int, ...]], sockets: int) -> dict[int, int]:
    """Return socket -> CPU set: nodes are spread evenly over the sockets, or a node's cores where sockets are more."""
    placed: dict[int, int] = {}
    for index, mine in enumerate(cores.values()):
        first, after = index * sockets // len(cores), (index + 1) * sockets // len(cores)
        for k, core in enumerate(mine):
            socket = first + k * max(after - first, 0) // len(mine)
            placed[socket] = placed.get(socket, 0) | core
    return placed


def _cell(node: NumaNode, topology: Topology, sizes: tuple[int, ...]) -> Cell:
    default = tuple(_LOCAL_DISTANCE if other.id == node.id else _REMOTE_DISTANCE for other in topology.numa_nodes)
    return Cell(
        id=node.id,
        cpus=masks.of(node.cpus),
        memory=node.memory,
        hugepages={size: node.hugepages.get(size, 0) // size * size for size in sizes},
        distances=node.distances or default,
    )


def _devices(topology: Topology, sharing: Mapping[str, int]) -> dict[str, tuple[DeviceGroup, ...]]:
    """Return resource -> device groups; a resource with a count of 0 is registered all the same."""
    groups: dict[str, list[DeviceGroup]] = {}

    def add(resource: str, mask: int, count: int) -> None:
        groups.setdefault(resource, []).append(DeviceGroup(mask, count * sharing.get(resource, 1)))

    for node in topology.numa_nodes:
        for resource, count in node.devices.items():
            add(resource, 1 << node.id, count)
    for spread in topology.devices_on_several_nodes:
        add(spread.resource, masks.of(spread.numa_nodes), spread.count)
    for resource, count in topology.devices_without_topology.items():
        add(resource, 0, count)
    return {resource: tuple(group for group in found if group.count) for resource, found in groups.items()}


def union(sets: Iterable[int]) -> int:
    """Return the union of CPU sets or NUMA masks."""
    whole = 0
    for mask in sets:
        whole |= mask
    return whole


def format_set(mask: int) -> str:
    """Return a mask as the kernel and the kubelet write it: `0-3,8`; empty for none."""
    runs: list[list[int]] = []
    for member in masks.bits(mask):
        if runs and runs[-1][1] == member - 1:
            runs[-1][1] = member
        else:
            runs.append([member, member])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)

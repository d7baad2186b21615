"""The machine as a kubelet sees it: CPU ids, cores, caches, sockets, NUMA nodes, their memory and devices (DESIGN section 6).

Cells stand for what `google/cadvisor` reports as NUMA nodes; the CPU topology is what `cpumanager/topology/topology.go` makes
of it. CPU sets and NUMA masks are ints: bit i stands for CPU i or for the NUMA node with id i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    """Which CPU belongs where. Every mapping goes from an id to a CPU set; a core's id is its lowest CPU.

    `numa` has only the nodes with CPUs, `numa_sockets` the sockets that each of them touches (ids).
    """

    cpus: int
    threads_per_core: int
    cores: Mapping[int, int]
    uncores: Mapping[int, int]
    sockets: Mapping[int, int]
    numa: Mapping[int, int]


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

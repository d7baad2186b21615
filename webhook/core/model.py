"""Node classes as data: nodes with one hardware topology and one kubelet configuration (DESIGN section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.core.dra.devices import Device

MINORS = (34, 35, 36, 37)
"""The Kubernetes 1.x minors whose rules are known; others are judged as the nearest one."""


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One NUMA node as Linux shows it.

    Attributes:
        id: the node's number in /sys/devices/system/node.
        cpus: CPU ids, ascending; empty for a memory-only node.
        memory: bytes, hugepages included.
        hugepages: page size in bytes -> bytes reserved for pages of that size.
        distances: to each node, in the order of the topology's nodes; empty: 10 to itself, 21 to others.
        devices: resource -> number of devices that report this node.
    """

    id: int
    cpus: tuple[int, ...]
    memory: int
    hugepages: Mapping[int, int] = field(default_factory=dict)
    distances: tuple[int, ...] = ()
    devices: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpreadDevices:
    """Devices that report several NUMA nodes at once."""

    resource: str
    count: int
    numa_nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """A machine: its sockets, cores and NUMA nodes (ascending ids), CPU ids already assigned to nodes."""

    sockets: int
    threads_per_core: int
    numa_nodes: tuple[NumaNode, ...]
    devices_without_topology: Mapping[str, int] = field(default_factory=dict)
    devices_on_several_nodes: tuple[SpreadDevices, ...] = ()
    adjacent_siblings: bool = False
    cores_per_uncore_cache: int | None = None


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that all nodes of a class carry."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Hami:
    """How HAMi runs on a class (facts of the device plugin, not of the kubelet)."""

    mode: str
    numa_topology: bool
    device_split_count: int
    refit: bool


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes with one hardware topology and one kubelet configuration.

    Attributes:
        selector: labels that mark the class's nodes; used to steer.
        labels: other labels that all its nodes carry.
        minor: the Kubernetes minor of its kubelets, one of `MINORS`.
        kubelet: an excerpt of its KubeletConfiguration v1beta1, field names unchanged; absent fields have that API's defaults.
        daemon_cpu: milli-CPUs that DaemonSets and static pods request on each node.
        daemon_memory: bytes that they request.
        sharing: resource -> replicas per physical device (time-slicing, MPS, HAMi splits); what the kubelet sees is multiplied.
        device_specs: `passed`, `notPassed` or `unknown`.
        devices: DRA devices that the ResourceSlices of its nodes list; None: not known, empty: they have none.
        source: where its figures come from, for people.
    """

    name: str
    selector: Mapping[str, str]
    topology: Topology
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    minor: int = MINORS[-1]
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    daemon_cpu: int = 0
    daemon_memory: int = 0
    sharing: Mapping[str, int] = field(default_factory=dict)
    device_specs: str = "unknown"
    hami: Hami | None = None
    devices: tuple[Device, ...] | None = None
    source: str = ""

"""Whether an admitted pod is aligned, and if not, what keeps it from being so (DESIGN section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.core import quantities
from webhook.core.containers import Kind
from webhook.core.kubelet import masks
from webhook.core.kubelet.chance import Spread
from webhook.core.kubelet.contract import ContainerView, Hint, PodView
from webhook.core.kubelet.devices import DevicePolicy
from webhook.core.kubelet.machine import CpuTopology, DeviceGroup
from webhook.core.kubelet.memory import StaticMemoryPolicy
from webhook.core.verdict import Gap, Placement

NO_TOPOLOGY: Final = -1
SHARED_CPUS: Final = "SharedCPUs"
NO_DEVICE_CONTAINER: Final = "NoDeviceContainer"


@dataclass(frozen=True, slots=True)
class Idle:
    """The idle node, as far as alignment asks for it: `available` are the CPUs that containers may get for themselves."""

    numa_mask: int
    topology: CpuTopology
    available: int
    memory: StaticMemoryPolicy | None
    devices: DevicePolicy


@dataclass(frozen=True, slots=True)
class Holding:
    """What one container holds after admission.

    Attributes:
        hint: the stored hint.
        cpus: CPU set of its own or of its pod's pool, 0: the node's shared pool.
        memory_mask: NUMA nodes that its memory is pinned to, 0: none.
        memory: memory type -> bytes pinned.
        devices: resource -> devices taken of each of its groups.
    """

    hint: Hint
    cpus: int
    memory_mask: int
    memory: Mapping[str, int]
    devices: Mapping[str, Spread]


def gaps(idle: Idle, pod: PodView, held: Mapping[str, Holding]) -> tuple[Gap, ...]:
    """Return what keeps an admitted pod from being aligned; nothing: it is aligned.

    On a machine with one NUMA node whatever uses devices is.
    """
    concerned = [container for container in pod.containers if uses_devices(idle, container)]
    if not concerned:
        return (Gap("", NO_DEVICE_CONTAINER, "no container that keeps running requests devices with a NUMA node"),)
    return tuple(gap for container in concerned for gap in container_gaps(idle, container.name, held[container.name]))


def uses_devices(idle: Idle, container: ContainerView) -> bool:
    """Tell whether a container keeps running and requests NUMA-bound devices: only such containers need to be aligned."""
    if container.kind is Kind.INIT:
        return False
    return any(quantities.value(amount) > 0 and name in idle.devices.numa_bound for name, amount in container.limits.items())


def container_gaps(idle: Idle, name: str, held: Holding) -> tuple[Gap, ...]:
    """Return what keeps one container that uses devices from being aligned."""
    return () if idle.numa_mask.bit_count() == 1 else tuple(_gaps(idle, name, held))


def _gaps(idle: Idle, name: str, held: Holding) -> Iterator[Gap]:
    if not held.cpus:
        yield Gap(name, SHARED_CPUS, "its CPUs are not its own: it runs in the node's shared pool")
    for resource, taken in held.devices.items():
        homeless = _homeless(idle.devices, resource, taken)
        if homeless:
            yield Gap(name, "DeviceWithoutTopology", f"{homeless} of its {resource} report no NUMA node")
    used = _used(idle, held)
    for resource in _strangers(idle.devices, held, used):
        yield Gap(name, "DevicesApart", f"a {resource} reports several NUMA nodes, and none of them is one that it uses")
    if used.bit_count() > 1:
        yield from _wide_gaps(idle, name, held, used)


def _homeless(devices: DevicePolicy, resource: str, taken: Spread) -> int:
    """Return how many of the taken devices have no NUMA node, of a resource of which others have one."""
    if resource not in devices.numa_bound:
        return 0
    return sum(count for group, count in zip(devices.groups[resource], taken, strict=True) if not group.mask)


def _strangers(devices: DevicePolicy, held: Holding, used: int) -> Iterator[str]:
    for resource, taken in held.devices.items():
        for group, count in zip(devices.groups[resource], taken, strict=True):
            if count and group.mask.bit_count() > 1 and not group.mask & used:
                yield resource


def _wide_gaps(idle: Idle, name: str, held: Holding, used: int) -> Iterator[Gap]:
    """Yield why using several NUMA nodes is not the best there is for this container."""
    need = _need(idle, held)
    mask = held.hint.mask or 0
    if need >= used.bit_count() and held.hint.preferred and not used & ~mask:
        return
    apart = _device_nodes(idle.devices, held)
    if apart.bit_count() > need:
        yield Gap(name, "DevicesApart", f"its devices are on NUMA nodes {_list(apart)}, and would fit on {need}")
    cpus = _cpu_nodes(idle.topology, held.cpus)
    if apart and cpus & ~apart:
        yield Gap(name, "CPUsElsewhere", f"its CPUs are on NUMA nodes {_list(cpus)}, its devices on {_list(apart)}")
    if apart and held.memory_mask & ~apart:
        yield Gap(
            name, "MemoryElsewhere", f"its memory is on NUMA nodes {_list(held.memory_mask)}, its devices on {_list(apart)}"
        )
    if used.bit_count() > need:
        yield Gap(name, "WiderThanNeeded", f"it uses NUMA nodes {_list(used)}; each of its resources alone would fit on {need}")
    else:
        yield Gap(name, "NotPreferred", f"it uses NUMA nodes {_list(used)}, which its resources do not all prefer")


def _used(idle: Idle, held: Holding) -> int:
    return _cpu_nodes(idle.topology, held.cpus) | held.memory_mask | _device_nodes(idle.devices, held)


def _cpu_nodes(topology: CpuTopology, cpus: int) -> int:
    return masks.of(node for node, members in topology.numa.items() if members & cpus)


def _device_nodes(devices: DevicePolicy, held: Holding) -> int:
    """Return the nodes of the container's devices that sit on one node each."""
    nodes = 0
    for resource, taken in held.devices.items():
        for group, count in zip(devices.groups[resource], taken, strict=True):
            if count and group.mask.bit_count() == 1:
                nodes |= group.mask
    return nodes


def _need(idle: Idle, held: Holding) -> int:
    """Return the fewest NUMA nodes on which each of the container's resources alone would fit on the idle node."""
    widths = [_fewest_for_cpus(idle, held.cpus.bit_count())] if held.cpus else []
    if idle.memory:
        widths += [idle.memory.fewest_nodes(name, size) for name, size in held.memory.items()]
    widths += [
        idle.devices.fewest_nodes(name, sum(taken)) for name, taken in held.devices.items() if name in idle.devices.numa_bound
    ]
    return max(widths, default=1)


def _fewest_for_cpus(idle: Idle, count: int) -> int:
    free = sorted(((members & idle.available).bit_count() for members in idle.topology.numa.values()), reverse=True)
    for width, _ in enumerate(free, start=1):
        if sum(free[:width]) >= count:
            return width
    return len(free)


def placement(held: Holding, idle: Idle) -> Placement:
    """Return where a container lands, for people to read."""
    return Placement(
        cpus=masks.ids(held.cpus),
        memory=_spread_memory(held, idle.memory),
        devices={name: _by_node(idle.devices.groups[name], taken) for name, taken in held.devices.items() if sum(taken)},
    )


def _spread_memory(held: Holding, policy: StaticMemoryPolicy | None) -> dict[int, int]:
    """Return the bytes of all types by node, filled up in ascending order as the Memory Manager books them."""
    nodes = dict.fromkeys(masks.bits(held.memory_mask), 0)
    for name, size in held.memory.items():
        rest = size
        for node in nodes:
            part = min(rest, policy.allocatable[node][name]) if policy else rest
            nodes[node] += part
            rest -= part
    return nodes


def _by_node(groups: Sequence[DeviceGroup], taken: Spread) -> dict[int, int]:
    counts: dict[int, int] = {}
    for group, count in zip(groups, taken, strict=True):
        node = (group.mask & -group.mask).bit_length() - 1 if group.mask else NO_TOPOLOGY
        if count:
            counts[node] = counts.get(node, 0) + count
    return counts


def _list(mask: int) -> str:
    return ", ".join(map(str, masks.ids(mask))) or "none"

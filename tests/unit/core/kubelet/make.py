"""Short ways to write what the managers see."""

from collections.abc import Mapping

from webhook.core import quantities
from webhook.core.containers import Kind
from webhook.core.kubelet.chance import Chooser
from webhook.core.kubelet.contract import ContainerView, Hint, PodView
from webhook.core.kubelet.devices import DeviceManager, DevicePolicy
from webhook.core.kubelet.machine import DeviceGroup
from webhook.core.kubelet.memory import MemoryManager, StaticMemoryPolicy

GPU, NIC = "nvidia.com/gpu", "nvidia.com/hostdev"
GI = quantities.GI


def nano(amounts: Mapping[str, object]) -> dict[str, int]:
    return {name: quantities.parse(amount) for name, amount in amounts.items()}


def container(name: str = "main", kind: Kind = Kind.APP, **amounts: object) -> ContainerView:
    """A container with requests = limits; `gpu`, `nic` and `pages` stand for resources with longer names."""
    long = {"gpu": GPU, "nic": NIC, "pages": "hugepages-1Gi"}
    resources = nano({long.get(key, key): value for key, value in amounts.items()})
    return ContainerView(name, kind, resources, resources)


def pod(*containers: ContainerView, qos: str = "Guaranteed", **pod_level: object) -> PodView:
    return PodView(containers, qos, bool(pod_level), nano(pod_level), nano(pod_level))


def hints(*written: str) -> tuple[Hint, ...]:
    """Read `0T`, `0,1F`, `*F`: nodes (`*`: any) and whether preferred."""
    return tuple(_hint(text) for text in written)


def _hint(text: str) -> Hint:
    nodes = text[:-1]
    mask = None if nodes == "*" else sum(1 << int(node) for node in nodes.split(","))
    return Hint(mask, text.endswith("T"))


def written(found: tuple[Hint, ...] | None) -> list[str] | None:
    """The opposite of `hints`."""
    if found is None:
        return None
    return [f"{_nodes(hint.mask)}{'T' if hint.preferred else 'F'}" for hint in found]


def _nodes(mask: int | None) -> str:
    if mask is None:
        return "*"
    return ",".join(str(node) for node in range(mask.bit_length()) if mask >> node & 1)


def devices(minor: int = 37, nodes: int = 2, **groups: Mapping[int, int]) -> DevicePolicy:
    """Devices by resource: mask -> count."""
    long = {"gpu": GPU, "nic": NIC}
    made = {long[name]: [DeviceGroup(mask, count) for mask, count in counts.items()] for name, counts in groups.items()}
    return DevicePolicy(made, (1 << nodes) - 1, minor)


def device_manager(policy: DevicePolicy, view: PodView, script: tuple[int, ...] | None = None) -> DeviceManager:
    return DeviceManager(policy, view, Chooser(script))


def memory_policy(*gigabytes: int, pages: tuple[int, ...] = ()) -> StaticMemoryPolicy:
    """What each NUMA node can give: Gi of memory and of 1Gi pages."""
    have = pages or (0,) * len(gigabytes)
    table = {
        node: {"memory": size * GI, "hugepages-1Gi": huge * GI, "hugepages-2Mi": 0}
        for node, (size, huge) in enumerate(zip(gigabytes, have, strict=True))
    }
    return StaticMemoryPolicy(table)


def memory_manager(
    policy: StaticMemoryPolicy, view: PodView, *, gates: frozenset[str] = frozenset(), minor: int = 37
) -> MemoryManager:
    return MemoryManager(policy, gates | {"PodLevelResources"}, minor, view)

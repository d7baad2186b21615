"""DRA devices as data: what ResourceSlices publish, node by node, and the classes by which claims ask for them.

Sources: `resource.k8s.io/v1` types; `dynamic-resource-allocation/structured/internal/incubating` (pools, attribute lookup).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from webhook.core.memo import Memo

Json = Mapping[str, Any]

_REMEMBERED: Final = 256

CPU_DRIVER: Final = "dra.cpu"


class Type(StrEnum):
    """What an attribute's value is; values of different types never match."""

    INT = "int"
    STRING = "string"
    BOOL = "bool"
    VERSION = "version"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A value with its type; lists are kept as tuples."""

    type: Type
    value: int | str | bool | tuple[int | str | bool, ...]

    @property
    def is_known(self) -> bool:
        """Tell whether the value says something: drivers publish -1 and "" for what they could not find out.

        Lists match only behind a gate that is off (DRAListTypeAttributes, up to 1.37), so they count as not published.
        """
        return self.type is not Type.LIST and self.value not in (-1, "")


@dataclass(frozen=True, slots=True)
class Device:
    """One device of one pool.

    Attributes:
        attributes: fully qualified name -> value; a bare name in a slice has the driver for its domain.
        capacity: name as published, with or without a domain, which is how requests must call it, too -> quantity as written.
        shared: several claims may have a part of it (`allowMultipleAllocations`).
        certain: nothing but the selectors decides whether an idle node gives it out. False: also counters, taints, binding
            conditions, a pool that is not complete, or a node selector that was not evaluated.
        ordered: its pool is one slice, so that its place among the devices is the same on every such node. Several slices are
            sorted by their names, and those are made up node by node.
        gives_cpu: whoever gets it gets CPUs (KEP-5517, dra-driver-cpu).
    """

    driver: str
    pool: str
    name: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)
    shared: bool = False
    certain: bool = True
    ordered: bool = True
    gives_cpu: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what tells it from all others."""
        return self.driver, self.pool, self.name

    def published(self, name: str) -> Attribute | None:
        """Return the attribute of this fully qualified name if it says something."""
        found = self.attributes.get(name)
        return found if found is not None and found.is_known else None


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass: CEL expressions that all hold for its devices, and the extended resource that it backs."""

    name: str
    selectors: tuple[str, ...] = ()
    extended_resource: str = ""


Matcher = Callable[[str, Device], bool | None]
"""Whether a CEL expression holds for a device; None: cannot be told."""


def cannot_tell(_expression: str, _device: Device) -> bool | None:
    """Return None: the matcher of those who have no CEL."""
    return None


def never(_expression: str, _device: Device) -> bool:
    """Return False: nothing is known to fail."""
    return False


@dataclass(frozen=True, slots=True)
class Inventory:
    """The devices of each kind of node, and the classes.

    Attributes:
        nodes: node class, or node, -> its devices; equal ones need not be there twice.
        classes: name -> DeviceClass.
        complete: node classes are among them, so the policy's coverage says whether there are others. The cluster's own nodes
            are those of the moment: a pool that is scaled to zero is not there.
        matches: evaluates selectors.
        fails: whether a selector that compiles fails on a device; the scheduler then gives up the pod.
        remembered: the candidates of requests seen before.
    """

    nodes: Mapping[str, tuple[Device, ...]] = field(default_factory=dict)
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    complete: bool = True
    matches: Matcher = field(default=cannot_tell, compare=False, repr=False)
    fails: Callable[[str, Device], bool] = field(default=never, compare=False, repr=False)
    remembered: Memo[Any] = field(default_factory=lambda: Memo(_REMEMBERED), init=False, compare=False, repr=False)

    @property
    def is_empty(self) -> bool:
        """Tell whether no device is known."""
        return not any(self.nodes.values())


def device_class(raw: Json) -> DeviceClass:
    """Return a DeviceClass object in the core's form; it must have passed `slices.class_problems`."""
    spec = raw.get("spec") or {}
    selectors = tuple(each["cel"]["expression"] for each in spec.get("selectors") or () if "cel" in each)
    return DeviceClass(raw["metadata"]["name"], selectors, spec.get("extendedResourceName") or "")


def distinct(nodes: Mapping[str, Iterable[Device]]) -> dict[str, tuple[Device, ...]]:
    """Return the nodes with each kind of hardware once, under the first name in the alphabet."""
    found: dict[object, str] = {}
    kept: dict[str, tuple[Device, ...]] = {}
    for name in sorted(nodes):
        devices = tuple(nodes[name])
        if found.setdefault(_kind(devices), name) == name:
            kept[name] = devices
    return kept


def _kind(devices: tuple[Device, ...]) -> object:
    return tuple(sorted((_essence(device) for device in devices), key=repr))


def _essence(device: Device) -> object:
    attributes = tuple(sorted((name, each.type, each.value) for name, each in device.attributes.items() if name not in _OWN))
    return device.driver, attributes, tuple(sorted(device.capacity.items())), device.shared, device.certain


_OWN = frozenset({"gpu.nvidia.com/uuid", "dra.net/mac", "dra.net/ipv4", "dra.net/ipv6"})
"""What no two devices of a cluster share: a selector on it chooses one device, and on every other node there is none to judge."""

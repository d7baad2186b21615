"""ResourceSlices, as drivers publish them, to devices.

A pool is what the slices of its highest generation hold, and it is complete when there are as many as each of them says
(`structured/internal/incubating/pools_incubating.go`). Slices that are no ResourceSlices are left out and named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from webhook.core.containers import Path
from webhook.core.dra.devices import CPU_DRIVER, Attribute, Device, Json, Type
from webhook.core.resource_names import CPU
from webhook.core.wellformed import Problem

_SCALARS: Final[Mapping[str, tuple[Type, type[int | str | bool]]]] = {
    "int": (Type.INT, int),
    "string": (Type.STRING, str),
    "bool": (Type.BOOL, bool),
    "version": (Type.VERSION, str),
}
_LISTS: Final[Mapping[str, type]] = {"ints": int, "strings": str, "bools": bool, "versions": str}


def spec_problems(spec: Any, path: Path = ()) -> Iterator[Problem]:
    """Yield what keeps us from reading the spec of a ResourceSlice."""
    if not isinstance(spec, dict):
        yield Problem(path, "expected the spec of a ResourceSlice: driver, pool, devices")
        return
    if not isinstance(spec.get("driver"), str) or not spec["driver"]:
        yield Problem((*path, "driver"), "expected the name of a DRA driver")
    pool = spec.get("pool")
    if pool is not None and not isinstance(pool, dict):
        yield Problem((*path, "pool"), "expected a pool: name, generation, resourceSliceCount")
    devices = spec.get("devices") or []
    if not isinstance(devices, list):
        yield Problem((*path, "devices"), "expected a list of devices")
        return
    for index, device in enumerate(devices):
        yield from _device_problems(device, (*path, "devices", index))


def _device_problems(device: Any, path: Path) -> Iterator[Problem]:
    if not isinstance(device, dict) or not isinstance(device.get("name"), str):
        yield Problem(path, "expected a device with a name")
        return
    for field in ("attributes", "capacity"):
        values = _basic(device).get(field)
        if values is None:
            continue
        if not isinstance(values, dict):
            yield Problem((*path, field), "expected an object")
            continue
        for name, value in values.items():
            if not isinstance(value, dict) or (field == "attributes" and _attribute(value) is None):
                expected = (
                    "a value such as {int: 0} or {string: text}" if field == "attributes" else "a value such as {value: 40Gi}"
                )
                yield Problem((*path, field, str(name)), f"expected {expected}")


def class_problems(raw: Any) -> Iterator[Problem]:
    """Yield what keeps us from reading a DeviceClass."""
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        yield Problem(("metadata", "name"), "expected the name of the DeviceClass")
    spec = (raw.get("spec") if isinstance(raw, dict) else None) or {}
    if not isinstance(spec, dict):
        yield Problem(("spec",), "expected an object")
        return
    selectors = spec.get("selectors") or []
    if not isinstance(selectors, list) or not all(map(_is_selector, selectors)):
        yield Problem(("spec", "selectors"), "expected a list of {cel: {expression: text}}")
    if not isinstance(spec.get("extendedResourceName") or "", str):
        yield Problem(("spec", "extendedResourceName"), "expected the name of an extended resource")


def _is_selector(raw: Any) -> bool:
    return isinstance(raw, dict) and isinstance(raw.get("cel"), dict) and isinstance(raw["cel"].get("expression"), str)


def devices_by_node(specs: Iterable[Json]) -> dict[str, tuple[Device, ...]]:
    """Return node -> its devices, of well-formed slice specs. Devices that are bound to no node by name are under ""."""
    found: dict[str, list[Device]] = {}
    for pool in _pools(specs):
        complete = all(_slice_count(spec) == len(pool) for spec in pool)
        for spec in pool:
            for raw in spec.get("devices") or ():
                node = spec.get("nodeName") or _basic(raw).get("nodeName") or ""
                found.setdefault(str(node), []).append(
                    _device(raw, spec, complete=complete and bool(node), ordered=len(pool) == 1)
                )
    return {node: tuple(devices) for node, devices in found.items()}


def literal_devices(specs: Iterable[Json]) -> tuple[Device, ...]:
    """Return the devices of slices that are written down for one node class: pasted from one of its nodes, so complete."""
    found = [spec for pool in _pools(specs) for spec in pool if spec.get("devices")]
    slices = Counter((spec["driver"], _pool(spec)) for spec in found)
    return tuple(
        _device(raw, spec, complete=True, ordered=slices[spec["driver"], _pool(spec)] == 1)
        for spec in found
        for raw in spec["devices"]
    )


def missing_slices(specs: Iterable[Json]) -> Iterator[str]:
    """Yield what is missing of well-formed slices of one node class: their pools say how many they have."""
    for pool in _pools(specs):
        first, count = pool[0], max(map(_slice_count, pool))
        if len(pool) < count and not any(first.get(field) for field in _OF_SEVERAL_NODES):
            here = f"{len(pool)} of generation {_generation(first)}"
            yield f"pool {_pool(first)} of {first['driver']} has {count} slices, {here} here"


_OF_SEVERAL_NODES: Final = ("allNodes", "nodeSelector", "perDeviceNodeSelection")


def _pools(specs: Iterable[Json]) -> Iterator[list[Json]]:
    """Yield the slices of each pool's highest generation."""
    pools: dict[tuple[str, str], list[Json]] = {}
    for spec in specs:
        pools.setdefault((spec["driver"], _pool(spec)), []).append(spec)
    for slices in pools.values():
        newest = max(map(_generation, slices))
        yield [spec for spec in slices if _generation(spec) == newest]


def _pool(spec: Json) -> str:
    return str((spec.get("pool") or {}).get("name") or "")


def _generation(spec: Json) -> int:
    generation = (spec.get("pool") or {}).get("generation")
    return generation if isinstance(generation, int) else 0


def _slice_count(spec: Json) -> int:
    count = (spec.get("pool") or {}).get("resourceSliceCount")
    return count if isinstance(count, int) else 1


def _basic(device: Json) -> Json:
    """Return where a device's fields are: up to v1beta1 they stood under `basic`."""
    basic = device.get("basic")
    return basic if isinstance(basic, dict) else device


_ALLOCATABLE: Final = ("nodeAllocatableResources", "nodeAllocatableResourceMappings")
"""What a device adds to the node's own resources: the field's name from 1.37 on, and in 1.36."""

_DOUBTS: Final = ("taints", "consumesCounters", "bindingConditions", "compatibilityGroups", *_ALLOCATABLE)


def _device(raw: Json, spec: Json, *, complete: bool, ordered: bool) -> Device:
    basic, driver = _basic(raw), spec["driver"]
    attributes = {_qualified(name, driver, basic["attributes"]): _attribute(value) for name, value in _items(basic, "attributes")}
    return Device(
        driver=driver,
        pool=_pool(spec),
        name=raw["name"],
        attributes={name: each for name, each in attributes.items() if each is not None},
        capacity={name: str(value.get("value", "")) for name, value in _items(basic, "capacity")},
        shared=basic.get("allowMultipleAllocations") is True,
        certain=complete and not any(basic.get(field) for field in _DOUBTS) and not _has_request_policy(basic),
        ordered=ordered,
        gives_cpu=driver == CPU_DRIVER or any(_names_cpu(basic.get(field)) for field in _ALLOCATABLE),
    )


def _names_cpu(resources: Any) -> bool:
    return isinstance(resources, Mapping) and CPU in resources


def _has_request_policy(basic: Json) -> bool:
    """A request policy rounds what is asked for, by rules that are not followed here."""
    return any(value.get("requestPolicy") for _, value in _items(basic, "capacity"))


def _items(basic: Json, field: str) -> Iterator[tuple[str, Json]]:
    yield from sorted((basic.get(field) or {}).items())


def _qualified(name: str, driver: str, beside: Json) -> str:
    """Return the name with its domain; where a device has it both ways, the one that was written out counts."""
    full = f"{driver}/{name}"
    return name if "/" in name or full in beside else full


def _attribute(value: Json) -> Attribute | None:
    for field, (kind, python) in _SCALARS.items():
        found = value.get(field)
        if isinstance(found, python) and isinstance(found, bool) == (python is bool):
            return Attribute(kind, found)
    for field, python in _LISTS.items():
        several = value.get(field)
        if isinstance(several, list) and all(isinstance(each, python) for each in several):
            return Attribute(Type.LIST, tuple(several))
    return None

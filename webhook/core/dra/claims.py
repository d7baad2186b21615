"""The one visitor over a ResourceClaim's requests, constraints and configuration (`resource.k8s.io/v1`).

The claim stays the raw dict it came as. Writes in older versions arrive converted to v1 (matchPolicy Equivalent).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from webhook.core.containers import Path
from webhook.core.dra.devices import Json
from webhook.core.wellformed import Problem

DEVICES: Final[Path] = ("spec", "devices")
TEMPLATE_DEVICES: Final[Path] = ("spec", "spec", "devices")
EXTENDED_RESOURCE: Final = "resource.kubernetes.io/extended-resource-claim"
MOST_REQUESTS: Final = 32
MOST_CONSTRAINTS: Final = 32
MOST_REFERENCES: Final = 32
MOST_RESULTS: Final = 32

_OWNERS: Final = frozenset({("v1", "Pod"), ("scheduling.k8s.io", "PodGroup")})


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One entry of `requests`.

    Attributes:
        raw: its `exactly`; empty where it has alternatives.
        count: of devices; 0 for All.
        alternatives: it is a prioritized list (`firstAvailable`).
    """

    index: int
    name: str
    raw: Json
    class_name: str = ""
    selectors: tuple[str, ...] = ()
    count: int = 1
    all: bool = False
    admin: bool = False
    alternatives: bool = False
    capacity: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Constraint:
    """One entry of `constraints`; no names: it is about every request."""

    names: frozenset[str]

    def touches(self, request: DeviceRequest) -> bool:
        """Tell whether it is about a request, or one of its alternatives."""
        return not self.names or any(name.partition("/")[0] == request.name for name in self.names)


def problems(claim: Any, path: Path = DEVICES) -> tuple[Problem, ...]:
    """Return what keeps us from reading a claim (or, with its path, a template); empty: nothing. Never raises."""
    return tuple(_problems(claim, path))


def _problems(claim: Any, path: Path) -> Iterator[Problem]:
    if not isinstance(claim, dict):
        yield Problem((), "expected an object")
        return
    yield from _metadata(claim.get("metadata"))
    node: Any = claim
    for depth, step in enumerate(path, start=1):
        node = node.get(step)
        if node is None:
            return
        if not isinstance(node, dict):
            yield Problem(path[:depth], "expected an object")
            return
    for name, check in (("requests", _request_problems), ("constraints", _reference_problems), ("config", _reference_problems)):
        entries = node.get(name)
        if entries is not None and not isinstance(entries, list):
            yield Problem((*path, name), "expected a list")
            continue
        for index, entry in enumerate(entries or ()):
            here = (*path, name, index)
            if isinstance(entry, dict):
                yield from check(entry, here)
            else:
                yield Problem(here, "expected an object")
    yield from _repeated(node.get("requests"), (*path, "requests"))


def _repeated(entries: Any, path: Path) -> Iterator[Problem]:
    names = [entry.get("name") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    if any(isinstance(name, str) and names.count(name) > 1 for name in names):
        yield Problem(path, "expected a different name for each request")


def _metadata(metadata: Any) -> Iterator[Problem]:
    if metadata is not None and not isinstance(metadata, dict):
        yield Problem(("metadata",), "expected an object")
        return
    for name, expected in (("annotations", dict), ("labels", dict), ("ownerReferences", list)):
        value = (metadata or {}).get(name)
        if value is not None and not isinstance(value, expected):
            yield Problem(("metadata", name), f"expected {'a list' if expected is list else 'an object'}")


def _request_problems(entry: Json, path: Path) -> Iterator[Problem]:
    if not isinstance(entry.get("name"), str) or not entry["name"]:
        yield Problem((*path, "name"), "expected a name")
    exactly, several = entry.get("exactly"), entry.get("firstAvailable")
    if several is not None:
        if not isinstance(several, list) or exactly is not None:
            yield Problem((*path, "firstAvailable"), "expected a list, and no exactly beside it")
        return
    if not isinstance(exactly, dict):
        yield Problem((*path, "exactly"), "expected an object")
        return
    yield from _exact_problems(exactly, (*path, "exactly"))


def _exact_problems(exactly: Json, path: Path) -> Iterator[Problem]:
    if not isinstance(exactly.get("deviceClassName"), str):
        yield Problem((*path, "deviceClassName"), "expected the name of a DeviceClass")
    count = exactly.get("count")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
        yield Problem((*path, "count"), "expected a whole number")
    if exactly.get("allocationMode") not in (None, "", "ExactCount", "All"):
        yield Problem((*path, "allocationMode"), "expected ExactCount or All")
    if exactly.get("adminAccess") not in (None, True, False):
        yield Problem((*path, "adminAccess"), "expected true or false")
    selectors = exactly.get("selectors") or []
    if not isinstance(selectors, list) or not all(map(_is_selector, selectors)):
        yield Problem((*path, "selectors"), "expected a list of {cel: {expression: text}}")
    capacity = exactly.get("capacity") or {}
    if not isinstance(capacity, dict) or not isinstance(capacity.get("requests") or {}, dict):
        yield Problem((*path, "capacity"), "expected {requests: {name: quantity}}")


def _is_selector(raw: Any) -> bool:
    return isinstance(raw, dict) and isinstance(raw.get("cel"), dict) and isinstance(raw["cel"].get("expression"), str)


def _reference_problems(entry: Json, path: Path) -> Iterator[Problem]:
    names = entry.get("requests")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        yield Problem((*path, "requests"), "expected a list of request names")


def visit(devices: Json) -> tuple[DeviceRequest, ...]:
    """Return the requests of `spec.devices` in their order; the claim must have passed `problems`."""
    return tuple(_request(index, entry) for index, entry in enumerate(devices.get("requests") or ()))


def _request(index: int, entry: Json) -> DeviceRequest:
    exactly = entry.get("exactly")
    if exactly is None:
        return DeviceRequest(index, entry["name"], {}, alternatives=True)
    everything = exactly.get("allocationMode") == "All"
    capacity = (exactly.get("capacity") or {}).get("requests") or {}
    return DeviceRequest(
        index,
        entry["name"],
        exactly,
        class_name=exactly["deviceClassName"],
        selectors=tuple(each["cel"]["expression"] for each in exactly.get("selectors") or ()),
        count=0 if everything else exactly.get("count") or 1,
        all=everything,
        admin=exactly.get("adminAccess") is True,
        capacity={name: str(quantity) for name, quantity in capacity.items()},
    )


def alternatives(entry: Json) -> tuple[DeviceRequest, ...] | None:
    """Return the alternatives of a prioritized list under their full names (`gpu/aligned`); None where they cannot be read."""
    several = entry.get("firstAvailable")
    if not isinstance(several, list) or not all(map(_is_alternative, several)):
        return None
    return tuple(
        _request(index, {"name": f"{entry['name']}/{each['name']}", "exactly": each}) for index, each in enumerate(several)
    )


def _is_alternative(raw: Any) -> bool:
    return isinstance(raw, dict) and isinstance(raw.get("name"), str) and not any(_exact_problems(raw, ()))


def constraints(devices: Json) -> tuple[Constraint, ...]:
    """Return the constraints of `spec.devices`."""
    return tuple(Constraint(frozenset(entry.get("requests") or ())) for entry in devices.get("constraints") or ())


def devices(claim: Json, path: Path = DEVICES) -> Json:
    """Return `spec.devices` of a claim (or, with its path, of a template), empty where absent."""
    node: Json = claim
    for step in path:
        node = node.get(str(step)) or {}
    return node


def annotations_of(claim: Json) -> Mapping[str, Any]:
    """Return a claim's annotations."""
    return (claim.get("metadata") or {}).get("annotations") or {}


def is_generated(claim: Json) -> bool:
    """Tell whether a controller made the claim from a template: a Pod or PodGroup owns it, and nobody will apply it again."""
    owners = (claim.get("metadata") or {}).get("ownerReferences") or ()
    return any(isinstance(owner, dict) and _kind(owner) in _OWNERS for owner in owners)


def _kind(owner: Json) -> tuple[str, str]:
    group, slash, _ = str(owner.get("apiVersion", "")).partition("/")
    return group if slash else str(owner.get("apiVersion", "")), str(owner.get("kind", ""))

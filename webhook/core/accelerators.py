"""Which resource names are accelerators and NICs, and how many devices a container asks for.

A name is an accelerator because an entry says so: by exact name or by a pattern anchored at both ends, never because of its
vendor's domain, which holds NICs, pseudo-resources and memory quantities too. The entries are data (`webhook/catalog`), and a
policy may add its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from webhook.core.containers import Container, Pod, visit
from webhook.core.quantities import InvalidQuantityError, parse, value

_MEMO_LIMIT = 4096
_LONGEST_NAME = 317
"""A domain of 253 characters, a slash and a name of 63: what the API server takes for a resource name."""


class Kind(StrEnum):
    """What one unit of a resource is."""

    DEVICE = "device"
    SHARED = "shared"
    PARTITION = "partition"
    MEMORY = "memory"
    CORES = "cores"
    PSEUDO = "pseudo"
    NIC = "nic"


class NumaHint(StrEnum):
    """Whether the device plugin tells the kubelet a device's NUMA node."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


COUNTED = frozenset({Kind.DEVICE, Kind.SHARED, Kind.PARTITION})
"""Kinds of which each unit is an accelerator, unless an entry counts otherwise."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one resource name, or of all names that match a pattern.

    Attributes:
        name: the exact name; empty where `pattern` is set.
        pattern: a regular expression that a name matches as a whole.
        hami: HAMi's webhook and scheduler manage it.
        implies: for quantities of memory or cores: the resource of which a container gets devices when it names no count
            of that resource itself (HAMi injects one; `pkg/device/nvidia/device.go`, MutateAdmission).
        units_per_device: how many units make one device: 1, each unit is a device; 2, two units are one; 0, any number of
            units sits on one device; None, it is no device at all and never counts.
    """

    kind: Kind
    vendor: str
    name: str = ""
    pattern: str = ""
    hint: NumaHint = NumaHint.UNKNOWN
    hami: bool = False
    implies: str = ""
    units_per_device: int | None = 1

    @property
    def is_accelerator(self) -> bool:
        """Tell whether a request for it makes a pod our business."""
        return self.units_per_device is not None and self.kind is not Kind.NIC

    def devices(self, units: int) -> int:
        """Return how many physical devices so many units take at most."""
        if units <= 0 or self.units_per_device is None:
            return 0
        return -(-units // self.units_per_device) if self.units_per_device else 1


@dataclass(frozen=True, slots=True)
class Ask:
    """What one container asks of one accelerator or NIC resource.

    Attributes:
        resource: the device resource; for an implied ask the one that HAMi will add.
        units: what the container's limits say (`quantity` as the kubelet counts it); 1 device's worth when implied.
        devices: physical devices, at most.
        named: the resource that the container names; differs from `resource` when implied.
    """

    container: Container
    resource: str
    units: int
    devices: int
    entry: Entry
    named: str

    @property
    def implied(self) -> bool:
        """Tell whether only memory or cores were named, and the device count follows from them."""
        return self.named != self.resource


@dataclass(frozen=True, slots=True)
class Asks:
    """Everything that a pod asks of accelerators and NICs, in the order of its containers.

    Attributes:
        unknown: names without an entry in a domain that holds accelerators, sorted: worth a warning, never counted.
    """

    accelerators: tuple[Ask, ...] = ()
    nics: tuple[Ask, ...] = ()
    unknown: tuple[str, ...] = ()


class Catalogue:
    """All entries, with lookup by name: exact names first, then patterns in their order."""

    __slots__ = ("_domains", "_exact", "_memo", "_patterns", "entries")

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Take the entries; of several with the same name or pattern the last one counts."""
        self.entries = tuple({entry.name or entry.pattern: entry for entry in entries}.values())
        self._exact = {entry.name: entry for entry in self.entries if entry.name}
        # Later entries extend the shipped ones, so theirs are tried first.
        self._patterns = tuple((re.compile(e.pattern), e) for e in reversed(self.entries) if e.pattern)
        self._domains = frozenset(e.name.partition("/")[0] for e in self.entries if e.name and e.is_accelerator)
        self._memo: dict[str, Entry | None] = {}

    def find(self, name: str) -> Entry | None:
        """Return what is known of a resource name, else None."""
        if "/" not in name or len(name) > _LONGEST_NAME:
            return None
        try:
            return self._memo[name]
        except KeyError:
            return self._remember(name)

    def _remember(self, name: str) -> Entry | None:
        found = self._exact.get(name) or next((e for pattern, e in self._patterns if pattern.fullmatch(name)), None)
        if len(self._memo) >= _MEMO_LIMIT:
            # Names come from pods: whoever invents millions must not fill our memory.
            self._memo.clear()
        self._memo[name] = found
        return found

    def is_suspicious(self, name: str) -> bool:
        """Tell whether a name has no entry though its domain holds accelerators."""
        return "/" in name and name.partition("/")[0] in self._domains and self.find(name) is None

    def extended(self, entries: Iterable[Entry]) -> Catalogue:
        """Return a catalogue in which these entries come on top: they add names or override them."""
        return Catalogue((*self.entries, *entries))


def asks(pod: Pod, catalogue: Catalogue) -> Asks:
    """Return what each container asks of accelerators and NICs; zero and unreadable quantities are no request.

    Limits count before requests: the API server wants both equal for these resources, and HAMi reads limits only.
    """
    accelerators: list[Ask] = []
    nics: list[Ask] = []
    unknown: set[str] = set()
    for container in visit(pod):
        named = extended_resources(container)
        for name, quantity in named.items():
            entry = catalogue.find(name)
            if entry is None:
                if quantity and catalogue.is_suspicious(name):
                    unknown.add(name)
            elif entry.kind is Kind.NIC and quantity:
                nics.append(Ask(container, name, quantity, entry.devices(quantity), entry, name))
            elif entry.is_accelerator and quantity:
                accelerators.extend(_ask(container, name, quantity, entry, named, catalogue))
    return Asks(tuple(_once(accelerators)), tuple(nics), tuple(sorted(unknown)))


def extended_resources(container: Container) -> dict[str, int]:
    """Return the container's names with a domain -> whole units, limits before requests; what cannot be read counts 0."""
    requests, limits = container.quantities("requests"), container.quantities("limits")
    if not requests and not limits:
        return {}
    return {name: _units(quantity) for name, quantity in {**requests, **limits}.items() if "/" in name}


def _units(quantity: Any) -> int:
    try:
        return max(value(parse(quantity)), 0)
    except InvalidQuantityError:
        return 0


def _ask(
    container: Container, name: str, units: int, entry: Entry, named: Mapping[str, int], catalogue: Catalogue
) -> Iterable[Ask]:
    if not entry.implies:
        yield Ask(container, name, units, entry.devices(units), entry, name)
    elif entry.implies not in named:
        # A count that is written out, even 0, is the author's own: HAMi then adds nothing.
        devices = entry.devices(units)
        yield Ask(container, entry.implies, devices, devices, catalogue.find(entry.implies) or entry, name)


def _once(found: list[Ask]) -> Iterable[Ask]:
    """Leave out what memory implies where cores implied the same already."""
    seen: set[tuple[Any, str]] = set()
    for ask in found:
        key = (ask.container.path, ask.resource)
        if key not in seen:
            seen.add(key)
            yield ask

"""What a pod asks of DRA, whatever the class: the demand of all its claims, and which container uses what of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from webhook.core.accelerators import Ask, Entry, Kind
from webhook.core.containers import Container, Pod, visit
from webhook.core.containers import Kind as ContainerKind
from webhook.core.dra import claims, decide
from webhook.core.dra.attributes import ACCELERATOR_DRIVERS
from webhook.core.dra.demand import Demand, Need, demand, together
from webhook.core.dra.devices import CPU_DRIVER, Device, Inventory, Json
from webhook.core.dra.reading import Found, ReadClaim
from webhook.core.dra.served import Uses
from webhook.core.policy import Mode
from webhook.core.quantities import InvalidQuantityError, is_whole, parse
from webhook.core.resource_names import CPU
from webhook.core.snapshot import Snapshot

_DEVICE: Final = Entry(Kind.DEVICE, "DRA")
_DEFAULT_SCHEDULER: Final = (None, "", "default-scheduler")

_Names = Mapping[tuple[str, str], tuple[str, ...]]
"""Claim and request -> the DeviceClasses that it names."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a pod asks of DRA.

    Attributes:
        uses: container that keeps running -> claims and requests that it uses.
        asks: the accelerators among them, with the need that each stands for; None: that cannot be told.
        cpu: containers whose CPUs come from a claim.
        why: why its containers cannot be sized by them, a clause; empty: nothing here is against it.
    """

    demand: Demand
    uses: Uses
    asks: tuple[tuple[Ask, Need | None], ...] = ()
    cpu: frozenset[str] = frozenset()
    why: str = ""

    @property
    def bearers(self) -> frozenset[str]:
        """Return the containers that keep running and get accelerators."""
        return frozenset(ask.container.name for ask, _ in self.asks if ask.container.kind is not ContainerKind.INIT)

    @property
    def places(self) -> Uses:
        """Return what the containers use whose places matter."""
        return {name: used for name, used in self.uses.items() if name in self.bearers}

    @property
    def pinned(self) -> frozenset[str]:
        """Return the containers with accelerators whose author wants CPUs of their own for them."""
        return frozenset(ask.container.name for ask, _ in self.asks if wants_own_cpus(ask.container))


def by_claims(pod: Pod, found: Found, mode: Mode, snapshot: Snapshot) -> Asked:
    """Return what a pod asks by its claims; `mode`: of the pod."""
    inventory = snapshot.inventory
    once = ((each, _is_named_before(each, found.claims)) for each in found.claims)
    everything = together(Demand(exact=False) if again else _demand(each, mode, snapshot) for each, again in once)
    uses = {container.name: tuple(_uses(container, found.claims)) for container in _running(pod)}
    uses = {name: used for name, used in uses.items() if used}
    names = _class_names_by_request(found.claims)
    asked = tuple(_asks(pod, uses, everything, names, inventory))
    cpu = frozenset(name for name, used in uses.items() if any(_gives_cpu(names.get(use, ()), inventory) for use in used))
    exact = found.complete and everything.exact
    return Asked(replace(everything, exact=exact), uses, asked, cpu, _why(pod, [ask for ask, _ in asked]))


def _why(pod: Pod, asked: list[Ask]) -> str:
    if len({ask.resource for ask in asked}) < len(asked):
        return "several of its containers share a claim"
    # The order in which devices are given out is the default scheduler's.
    return "" if pod["spec"].get("schedulerName") in _DEFAULT_SCHEDULER else "another scheduler chooses its devices"


def _is_named_before(each: ReadClaim, found: Iterable[ReadClaim]) -> bool:
    """Tell whether an earlier entry of the pod names the same claim: it gets its devices once, if it has them by then."""
    names = (other.reference for other in found if not other.is_made and not each.is_made)
    return any(other.name == each.reference.name and other.index < each.reference.index for other in names)


def _demand(each: ReadClaim, mode: Mode, snapshot: Snapshot) -> Demand:
    devices = claims.devices(each.claim)
    if each.is_allocated:
        return Demand(exact=False)
    if each.is_made and _is_changed(each.mode, mode):
        made = decide.planned(each.claim, devices, each.mode, snapshot)
        devices = made.encoding.devices if made.encoding else devices
    return demand(each.reference.entry, devices, snapshot.inventory)


def _is_changed(mode: Mode, pods: Mode) -> bool:
    """Tell whether our webhook changes claims in a mode; in audit it is asked what strict would do, of pods and claims alike."""
    return mode in {Mode.STRICT, Mode.BEST_EFFORT} or mode is pods is Mode.AUDIT


def _running(pod: Pod) -> Iterator[Container]:
    yield from (container for container in visit(pod) if container.kind is not ContainerKind.INIT)


def _uses(container: Container, found: Iterable[ReadClaim]) -> Iterator[tuple[str, str]]:
    """Yield claim and request of all that a container refers to; without a request it means every one of the claim."""
    entries = (container.raw.get("resources") or {}).get("claims")
    named = {
        (entry.get("name"), entry.get("request") or None)
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get("request"), str | None)
    }
    for each in found:
        for request in claims.visit(claims.devices(each.claim)):
            if {(each.reference.entry, None), (each.reference.entry, request.name)} & named:
                yield each.reference.entry, request.name


def _asks(pod: Pod, uses: Uses, everything: Demand, names: _Names, inventory: Inventory) -> Iterator[tuple[Ask, Need | None]]:
    """Yield what each container gets of accelerators; the count is that of the request, or of its smallest alternative."""
    needs = {(need.claim, need.name): need for need in everything.needs}
    for container in _running(pod):
        for use in uses.get(container.name, ()):
            if any(is_accelerators(name, inventory) for name in names.get(use, ())):
                need = needs.get(use)
                count = min((way.request.count for way in need.ways), default=1) if need else 1
                yield Ask(container, "/".join(use), count, count, _DEVICE, "/".join(use)), need


def _class_names_by_request(found: Iterable[ReadClaim]) -> _Names:
    return {
        (each.reference.entry, entry["name"]): tuple(_class_names(entry))
        for each in found
        for entry in claims.devices(each.claim).get("requests") or ()
    }


def _class_names(entry: Json) -> Iterator[str]:
    several = entry.get("firstAvailable")
    for each in (entry.get("exactly"), *(several if isinstance(several, list) else ())):
        name = each.get("deviceClassName") if isinstance(each, dict) else None
        if isinstance(name, str):
            yield name


def asks_for_accelerators(claim: Json, inventory: Inventory) -> bool:
    """Tell whether a request's DeviceClass is an accelerator's."""
    entries = claims.devices(claim).get("requests") or ()
    return any(is_accelerators(name, inventory) for entry in entries for name in _class_names(entry))


def is_accelerators(name: str, inventory: Inventory) -> bool:
    """Tell whether a DeviceClass is an accelerator's: by its devices, and where none is known by its name."""
    return any(name == driver or name.endswith(f".{driver}") for driver in ACCELERATOR_DRIVERS) or _kinds(name, inventory)[0]


def _gives_cpu(names: Iterable[str], inventory: Inventory) -> bool:
    """Tell whether a request of these DeviceClasses is for CPUs: by a class's name, and by its devices."""
    return any(name == CPU_DRIVER or _kinds(name, inventory)[1] for name in names)


def _kinds(name: str, inventory: Inventory) -> tuple[bool, bool]:
    """Tell whether a DeviceClass has accelerators, and devices that give CPUs."""

    def kinds() -> tuple[bool, bool]:
        devices = list(_devices_of(name, inventory))
        return any(each.driver in ACCELERATOR_DRIVERS for each in devices), any(each.gives_cpu for each in devices)

    found: tuple[bool, bool] = inventory.remembered.get(("kinds", name), kinds)
    return found


def _devices_of(name: str, inventory: Inventory) -> Iterator[Device]:
    """Yield the devices of a DeviceClass, where selectors tell them from others."""
    known = inventory.classes.get(name)
    if known is None or not known.selectors:
        return
    for devices in inventory.nodes.values():
        yield from (device for device in devices if all(inventory.matches(each, device) for each in known.selectors))


def wants_own_cpus(container: Container) -> bool:
    """Tell whether a container asks for whole CPUs, requests = limits: the static CPU Manager gives it CPUs of its own."""
    limit, request = (container.quantities(field).get(CPU) for field in ("limits", "requests"))
    try:
        amount = parse(limit) if limit is not None else 0
        return amount > 0 and is_whole(amount) and (request is None or parse(request) == amount)
    except InvalidQuantityError:
        return False

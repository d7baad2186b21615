"""The set in force as one pod with claims sees it: which classes have its devices, and where the first ones sit.

All claims of the pod count together, for a device is given out once; those that will be made from templates count as our own
webhook will have changed them. Extended resources that DRA serves (KEP-5004) are one more claim, which the scheduler makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from webhook.core import placement
from webhook.core.accelerators import Ask, Entry, Kind, asks
from webhook.core.containers import Container, Pod, visit
from webhook.core.containers import Kind as ContainerKind
from webhook.core.dra import claims, decide
from webhook.core.dra.allocation import Fits
from webhook.core.dra.attributes import ACCELERATOR_DRIVERS
from webhook.core.dra.candidates import wanted
from webhook.core.dra.claims import DeviceRequest
from webhook.core.dra.demand import Demand, Need, demand, together
from webhook.core.dra.devices import CPU_DRIVER, Device, Inventory, Json
from webhook.core.dra.extended import serving_classes
from webhook.core.dra.podclaims import PodClaims
from webhook.core.dra.reading import Found, ReadClaim
from webhook.core.dra.search import joint_fits
from webhook.core.dra.served import Served, Uses, numa_node, places
from webhook.core.dra.shortage import shortage
from webhook.core.policy import Mode
from webhook.core.quantities import InvalidQuantityError, is_whole, parse
from webhook.core.resource_names import CPU
from webhook.core.shape.candidate import Candidate, Home
from webhook.core.snapshot import Snapshot

_DEVICE: Final = Entry(Kind.DEVICE, "DRA")
_EXTENDED: Final = "extended resources"
"""Stands for the name of the claim that the scheduler makes; no entry of a pod can be called so."""

_EXTENDED_SINCE: Final = 36


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a pod asks of DRA, whatever the class.

    Attributes:
        uses: container that keeps running -> claims and requests that it uses.
        asks: the accelerators among them.
        why: why its containers cannot be sized by them, a clause.
    """

    demand: Demand
    uses: Uses
    asks: tuple[Ask, ...]
    cpu: frozenset[str]
    why: str = ""

    @property
    def bearers(self) -> frozenset[str]:
        """Return the containers that get accelerators."""
        return frozenset(ask.container.name for ask in self.asks if ask.container.kind is not ContainerKind.INIT)

    @property
    def places(self) -> Uses:
        """Return what the containers use whose places matter."""
        return {name: used for name, used in self.uses.items() if name in self.bearers}


def seen(pod: Pod, found: Found, mode: Mode, snapshot: Snapshot) -> Snapshot:
    """Return the set as the pod sees it; the set itself where DRA makes no difference to the pod."""
    by_plugin = asks(pod, snapshot.catalogue).accelerators
    asked = _by_claims(pod, found, mode, snapshot)
    if not by_plugin:
        return _seen(pod, asked, snapshot) if _ask_for_accelerators(found, snapshot.inventory) else snapshot
    extended = {ask.resource for ask in by_plugin}
    by_dra = {name for name in extended if serving_classes(name, snapshot.inventory)}
    if not found.claims and not by_dra:
        return snapshot
    return _beside_plugins(pod, asked, tuple(ask for ask in by_plugin if ask.resource in by_dra), snapshot)


def _ask_for_accelerators(found: Found, inventory: Inventory) -> bool:
    return any(is_accelerators(name, inventory) for each in found.claims for name in class_names_of(each.claim))


def _by_claims(pod: Pod, found: Found, mode: Mode, snapshot: Snapshot) -> _Asked:
    inventory = snapshot.inventory
    demands = {each.reference.entry: _demand(each, mode, snapshot) for each in found.claims}
    uses = {container.name: tuple(_uses(container, found.claims)) for container in _running(pod)}
    uses = {name: used for name, used in uses.items() if used}
    everything = together(demands.values())
    asked = tuple(_asks(pod, uses, {(need.claim, need.name): need for need in everything.needs}, found.claims, inventory))
    cpu = frozenset(name for name, used in uses.items() if any(gives_cpu(each, found.claims, inventory) for each in used))
    exact = found.complete and everything.exact
    shared = len({ask.resource for ask in asked}) < len(asked)
    why = "several of its containers share a claim" if shared else ""
    return _Asked(replace(everything, exact=exact), uses, asked, cpu, why)


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


def _asks(
    pod: Pod,
    uses: Uses,
    needs: Mapping[tuple[str, str], Need],
    found: Iterable[ReadClaim],
    inventory: Inventory,
) -> Iterator[Ask]:
    """Yield what each container gets of accelerators; the count is that of the request, or of its smallest alternative."""
    names = class_names(found)
    for container in _running(pod):
        for use in uses.get(container.name, ()):
            if any(is_accelerators(name, inventory) for name in names.get(use, ())):
                need = needs.get(use)
                count = min((way.request.count for way in need.ways), default=1) if need else 1
                yield Ask(container, "/".join(use), count, count, _DEVICE, "/".join(use))


def class_names(found: Iterable[ReadClaim]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return claim and request -> the DeviceClasses that it names."""
    return {
        (each.reference.entry, entry["name"]): tuple(_class_names(entry))
        for each in found
        for entry in claims.devices(each.claim).get("requests") or ()
    }


def class_names_of(claim: Json) -> Iterator[str]:
    """Yield the DeviceClasses that a claim names."""
    for entry in claims.devices(claim).get("requests") or ():
        yield from _class_names(entry)


def _class_names(entry: Json) -> Iterator[str]:
    several = entry.get("firstAvailable")
    for each in (entry.get("exactly"), *(several if isinstance(several, list) else ())):
        name = each.get("deviceClassName") if isinstance(each, dict) else None
        if isinstance(name, str):
            yield name


def is_accelerators(name: str, inventory: Inventory) -> bool:
    """Tell whether a DeviceClass is an accelerator's: by its devices, and where none is known by its name."""
    if any(name == driver or name.endswith(f".{driver}") for driver in ACCELERATOR_DRIVERS):
        return True
    return bool(_kinds(name, inventory)[0])


def gives_cpu(use: tuple[str, str], found: Iterable[ReadClaim], inventory: Inventory) -> bool:
    """Tell whether a claim's request is for CPUs: by its class's name, and by its devices."""
    names = class_names(found).get(use, ())
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


def _seen(pod: Pod, asked: _Asked, snapshot: Snapshot) -> Snapshot:
    """Return the set as a pod sees it that asks for accelerators by claims alone."""
    landing = [each for each in snapshot.candidates if placement.can_land(pod, each.node.node_class)]
    unserved = _unserved(landing, asked.demand)
    kept = [_served(each, asked, snapshot) for each in landing if each.name not in unserved]
    known = PodClaims(
        asks=asked.asks,
        lone=True,
        cpu=asked.cpu,
        pinned=frozenset(ask.container.name for ask in asked.asks if wants_own_cpus(ask.container)),
        unserved=unserved,
        tied=bool(asked.demand.ties),
        elsewhere=_elsewhere(asked.demand, snapshot),
    )
    return snapshot.seen_by(known, kept)


def wants_own_cpus(container: Container) -> bool:
    """Tell whether a container asks for whole CPUs, requests = limits: the static CPU Manager gives it CPUs of its own."""
    limit, request = (container.quantities(field).get(CPU) for field in ("limits", "requests"))
    try:
        amount = parse(limit) if limit is not None else 0
        return amount > 0 and is_whole(amount) and (request is None or parse(request) == amount)
    except InvalidQuantityError:
        return False


def _unserved(landing: Iterable[Candidate], wanted_: Demand) -> dict[str, str]:
    return {
        each.name: shortage(each.name, wanted_)
        for each in landing
        if each.node.node_class.devices is not None and joint_fits(each.name, wanted_) is Fits.NO
    }


def _elsewhere(wanted_: Demand, snapshot: Snapshot) -> bool:
    """Tell whether some node that no class describes may have the devices: then nothing is refused."""
    if not snapshot.inventory.complete:
        return True
    described = {each.name for each in snapshot.candidates}
    others = (node for node in snapshot.inventory.nodes if node not in described)
    return any(joint_fits(node, wanted_) is not Fits.NO for node in others)


def _served(each: Candidate, asked: _Asked, snapshot: Snapshot) -> Candidate:
    """Return a class with the accelerators that DRA gives the pod there."""
    node = each.node
    if node.node_class.devices is None:
        why = f"the DRA devices of {each.name} are not described"
        return replace(each, served=Served(by_dra=True, bearers=asked.bearers, why=why, cpu=asked.cpu))
    cells = frozenset(cell.id for cell in node.machine.cells)
    found, why = places(each.name, asked.demand, asked.places, node.minor, cells)
    served = Served(by_dra=True, bearers=asked.bearers, places=found, why=asked.why or why, cpu=asked.cpu)
    counts = {ask.resource: _by_numa_node(need, each.name) for ask in asked.asks for need in _needs(ask, asked.demand)}
    return _with_devices(each, served, counts, snapshot.inventory)


def _needs(ask: Ask, wanted_: Demand) -> Iterator[Need]:
    yield from (need for need in wanted_.needs if f"{need.claim}/{need.name}" == ask.resource)


def _by_numa_node(need: Need, node: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for key, device in {candidate.device.key: candidate.device for candidate in need.candidates(node)}.items():
        cell = numa_node(device) if key[0] in ACCELERATOR_DRIVERS else None
        if cell is not None:
            found[cell] = found.get(cell, 0) + 1
    return found


def _with_devices(each: Candidate, served: Served, counts: Mapping[str, Mapping[int, int]], inventory: Inventory) -> Candidate:
    """Return a class whose NUMA nodes have these devices, besides those of its plugins."""
    accelerators: dict[int, int] = {}
    for device in inventory.nodes.get(each.name, ()):
        cell = numa_node(device) if device.driver in ACCELERATOR_DRIVERS else None
        if cell is not None:
            accelerators[cell] = accelerators.get(cell, 0) + 1
    bound = frozenset(resource for resource, found in counts.items() if found)
    homes = tuple(_home(home, counts, accelerators) for home in each.homes)
    return replace(each, served=served, homes=homes, bound=each.bound | bound)


def _home(home: Home, counts: Mapping[str, Mapping[int, int]], accelerators: Mapping[int, int]) -> Home:
    """Where plugins and DRA both list accelerators, they are mostly the same ones."""
    mine = {resource: found[home.id] for resource, found in counts.items() if home.id in found}
    most = max(home.accelerators, accelerators.get(home.id, 0))
    return replace(home, devices={**home.devices, **mine}, accelerators=most)


def _beside_plugins(pod: Pod, asked: _Asked, by_dra: tuple[Ask, ...], snapshot: Snapshot) -> Snapshot:
    """Return the set as a pod sees it that names accelerators in its resources, too; class by class DRA may serve those."""
    landing = [each for each in snapshot.candidates if placement.can_land(pod, each.node.node_class)]
    unserved = _unserved(landing, asked.demand)
    kept = [_one_way(each, pod, asked, by_dra, snapshot) for each in landing if each.name not in unserved]
    known = PodClaims(asked.asks, cpu=asked.cpu, unserved=unserved, elsewhere=True)
    return snapshot.seen_by(known, kept)


def _one_way(each: Candidate, pod: Pod, asked: _Asked, by_dra: tuple[Ask, ...], snapshot: Snapshot) -> Candidate:
    """Return a class with what DRA serves of the pod's extended resources there: those that no plugin lists."""
    mine = tuple(ask for ask in by_dra if ask.resource not in each.offers)
    if not mine or not each.node.node_class.devices:
        return replace(each, served=Served(cpu=asked.cpu)) if asked.cpu else each
    extended = _extended(pod, mine, each, snapshot.inventory)
    wanted_ = together((asked.demand, extended.demand))
    if len(extended.asks) < len(mine) or joint_fits(each.name, wanted_) is Fits.NO:
        return each
    bearers = extended.bearers | asked.bearers
    uses = {name: (*asked.uses.get(name, ()), *extended.uses.get(name, ())) for name in sorted(bearers)}
    cells = frozenset(cell.id for cell in each.node.machine.cells)
    found, why = places(each.name, wanted_, uses, each.node.minor, cells)
    served = Served(by_dra=True, bearers=bearers, places=found, why=asked.why or why, cpu=asked.cpu)
    needs = zip(extended.demand.needs, extended.asks, strict=True)
    counts = {ask.resource: _by_numa_node(need, each.name) for need, ask in needs}
    with_devices = _with_devices(each, served, counts, snapshot.inventory)
    return replace(with_devices, offers=each.offers | {ask.resource for ask in mine})


def _extended(pod: Pod, mine: tuple[Ask, ...], each: Candidate, inventory: Inventory) -> _Asked:
    """Return what the scheduler's own claim will ask for: a request for each container and resource, in the order of their names.

    Init containers use again what others get, which is not followed; before 1.36 a gate that is off stands before it all.
    """
    names = [raw.get("name") for field in ("initContainers", "containers") for raw in pod["spec"].get(field) or ()]
    needs: list[tuple[str, Ask, Need]] = []
    classes = {ask.resource: serving_classes(ask.resource, inventory) for ask in mine}
    for ask in mine:
        name = f"container-{names.index(ask.container.name)}-{ask.resource}"
        request = DeviceRequest(0, name, {}, class_name=classes[ask.resource][0], count=ask.units)
        way = wanted(request, inventory)
        if way.nodes.get(each.name):
            needs.append((name, ask, Need(_EXTENDED, name, (way,))))
    needs.sort(key=lambda found: found[0])
    simple = all(ask.container.kind is not ContainerKind.INIT for ask in mine) and all(len(c) == 1 for c in classes.values())
    uses: dict[str, tuple[tuple[str, str], ...]] = {}
    for name, ask, _ in needs:
        uses[ask.container.name] = (*uses.get(ask.container.name, ()), (_EXTENDED, name))
    made = Demand(tuple(need for _, _, need in needs), (), simple and each.node.minor >= _EXTENDED_SINCE)
    return _Asked(made, uses, tuple(ask for _, ask, _ in needs), frozenset())

"""The set in force as one pod with claims sees it: which classes have its devices, and where the first ones sit.

All claims of the pod count together, for a device is given out once; those that will be made from templates count as our own
webhook will have changed them. Extended resources that DRA serves (KEP-5004) are one more claim, which the scheduler makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from webhook.core import placement
from webhook.core.accelerators import Ask, asks
from webhook.core.containers import Pod
from webhook.core.dra import asked
from webhook.core.dra.allocation import Fits
from webhook.core.dra.asked import Asked
from webhook.core.dra.attributes import ACCELERATOR_DRIVERS
from webhook.core.dra.demand import Demand, Need, together
from webhook.core.dra.devices import Device
from webhook.core.dra.extended import is_served_by, serving_classes
from webhook.core.dra.podclaims import PodClaims
from webhook.core.dra.reading import Found
from webhook.core.dra.scheduled import by_scheduler
from webhook.core.dra.search import joint_fits
from webhook.core.dra.served import Served, numa_node, places
from webhook.core.dra.shortage import shortage
from webhook.core.policy import Mode
from webhook.core.shape.candidate import Candidate, Home
from webhook.core.snapshot import Snapshot


def seen(pod: Pod, found: Found, mode: Mode, snapshot: Snapshot) -> Snapshot:
    """Return the set as the pod sees it; the set itself where DRA makes no difference to the pod."""
    by_plugin = asks(pod, snapshot.catalogue).accelerators
    if not by_plugin:
        ours = any(asked.asks_for_accelerators(each.claim, snapshot.inventory) for each in found.claims)
        return _alone(pod, asked.by_claims(pod, found, mode, snapshot), snapshot) if ours else snapshot
    # What HAMi implies is no request that the scheduler could make a claim of.
    by_dra = tuple(ask for ask in by_plugin if not ask.implied and serving_classes(ask.resource, snapshot.inventory))
    if not found.claims and not by_dra:
        return snapshot
    return _beside_plugins(pod, asked.by_claims(pod, found, mode, snapshot), by_dra, snapshot)


def _alone(pod: Pod, wants: Asked, snapshot: Snapshot) -> Snapshot:
    """Return the set as a pod sees it that asks for accelerators by claims alone."""
    kept, unserved = _kept(pod, wants.demand, snapshot)
    claims = PodClaims(
        asks=tuple(ask for ask, _ in wants.asks),
        lone=True,
        cpu=wants.cpu,
        pinned=wants.pinned,
        unserved=unserved,
        tied=bool(wants.demand.ties),
        elsewhere=_elsewhere(wants.demand, snapshot),
    )
    return snapshot.seen_by(claims, (_served(each, wants) for each in kept))


def _beside_plugins(pod: Pod, wants: Asked, by_dra: tuple[Ask, ...], snapshot: Snapshot) -> Snapshot:
    """Return the set as a pod sees it that names accelerators in its resources, too; class by class DRA may serve those."""
    kept, unserved = _kept(pod, wants.demand, snapshot)
    named = tuple(ask for ask, _ in wants.asks)
    claims = PodClaims(named, cpu=wants.cpu, unserved=unserved, elsewhere=True)
    return snapshot.seen_by(claims, (_one_way(each, pod, wants, by_dra, snapshot) for each in kept))


def _kept(pod: Pod, demand: Demand, snapshot: Snapshot) -> tuple[list[Candidate], dict[str, str]]:
    """Return the classes that have the devices, with all the accelerators of their NUMA nodes; and why others have them not."""
    landing = [each for each in snapshot.candidates if placement.can_land(pod, each.node.node_class)]
    unserved = {
        each.name: shortage(each.name, demand)
        for each in landing
        if each.node.node_class.devices is not None and joint_fits(each.name, demand) is Fits.NO
    }
    nodes = snapshot.inventory.nodes
    return [_equipped(each, nodes.get(each.name, ())) for each in landing if each.name not in unserved], unserved


def _elsewhere(demand: Demand, snapshot: Snapshot) -> bool:
    """Tell whether some node that no class describes may have the devices: then nothing is refused."""
    if not snapshot.inventory.complete:
        return True
    described = {each.name for each in snapshot.candidates}
    others = (node for node in snapshot.inventory.nodes if node not in described)
    return any(joint_fits(node, demand) is not Fits.NO for node in others)


def _equipped(each: Candidate, devices: Iterable[Device]) -> Candidate:
    """Where plugins and DRA both list accelerators, they are mostly the same ones."""
    found = _by_numa_node(devices)
    homes = (replace(home, accelerators=max(home.accelerators, found.get(home.id, 0))) for home in each.homes)
    return replace(each, homes=tuple(homes)) if found else each


def _by_numa_node(devices: Iterable[Device]) -> dict[int, int]:
    """Return NUMA node -> accelerators there."""
    counts: dict[int, int] = {}
    for device in devices:
        cell = numa_node(device) if device.driver in ACCELERATOR_DRIVERS else None
        if cell is not None:
            counts[cell] = counts.get(cell, 0) + 1
    return counts


def _served(each: Candidate, wants: Asked) -> Candidate:
    """Return a class with what DRA gives the pod there, which names no accelerator otherwise."""
    known = Served(by_dra=True, bearers=wants.bearers, cpu=wants.cpu)
    if each.node.node_class.devices is None:
        return replace(each, served=replace(known, why=f"the DRA devices of {each.name} are not described"))
    return _with_places(each, known, wants)


def _with_places(each: Candidate, known: Served, wants: Asked) -> Candidate:
    """Return a class with the devices that the pod could get there, and the places of those that it gets first."""
    cells = frozenset(cell.id for cell in each.node.machine.cells)
    found, why = places(each.name, wants.demand, wants.places, each.node.minor, cells)
    counts: dict[str, dict[int, int]] = {}
    for ask, need in wants.asks:
        devices = _devices(need, each.name)
        counts[ask.resource] = _by_numa_node(devices)
        if any(device.shared for device in devices):
            why = "its devices are given out in parts of unknown size"
    served = replace(known, places=found, why=wants.why or why)
    bound = frozenset(resource for resource, there in counts.items() if there)
    return replace(each, served=served, homes=tuple(_home(home, counts) for home in each.homes), bound=each.bound | bound)


def _devices(need: Need | None, node: str) -> list[Device]:
    candidates = need.candidates(node) if need else ()
    return list({candidate.device.key: candidate.device for candidate in candidates}.values())


def _home(home: Home, counts: Mapping[str, Mapping[int, int]]) -> Home:
    mine = {resource: there[home.id] for resource, there in counts.items() if home.id in there}
    return replace(home, devices={**home.devices, **mine})


def _one_way(each: Candidate, pod: Pod, wants: Asked, by_dra: tuple[Ask, ...], snapshot: Snapshot) -> Candidate:
    """Return a class with what DRA serves of the pod's extended resources there: those that no plugin lists."""
    mine = tuple(ask for ask in by_dra if ask.resource not in each.offers)
    as_it_is = replace(each, served=Served(cpu=wants.cpu)) if wants.cpu else each
    if not mine or not is_served_by(each.node):
        return as_it_is
    extended = by_scheduler(pod, mine, each.name, snapshot.inventory)
    both = _both(wants, extended)
    if len(extended.asks) < len(mine) or joint_fits(each.name, both.demand) is Fits.NO:
        return as_it_is
    known = Served(by_dra=True, bearers=both.bearers, cpu=wants.cpu)
    return replace(_with_places(each, known, both), offers=each.offers | {ask.resource for ask in mine})


def _both(wants: Asked, extended: Asked) -> Asked:
    """Return what a pod asks by its claims, and after them by its extended resources."""
    names = dict.fromkeys((*wants.uses, *extended.uses))
    uses = {name: (*wants.uses.get(name, ()), *extended.uses.get(name, ())) for name in names}
    demand = together((wants.demand, extended.demand))
    return Asked(demand, uses, (*wants.asks, *extended.asks), wants.cpu, wants.why)

"""What DRA gives a pod on one node class: whether it has the devices, and where the first ones that the scheduler takes sit.

The kubelet does not ask: its Topology Manager hears of no claims (`pkg/kubelet/cm/container_manager_linux.go`, up to 1.37). So
CPUs that it pins are near claimed devices by their order alone, and only where that order is known can that be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from webhook.core.dra.attributes import ORDER, PCIE_ROOT
from webhook.core.dra.demand import Demand
from webhook.core.dra.devices import Device, Type
from webhook.core.dra.search import Allocation, Certainty, TooLongError, first
from webhook.core.kubelet.aligned import NO_DEVICE_CONTAINER, SHARED_CPUS
from webhook.core.verdict import Gap, Verdict

CLAIMED: Final = "ClaimedDevices"
"""The gap of a container whose devices DRA gives out: nobody aligns them with anything of the kubelet's."""

MIXED: Final = "claimed devices and CPUs that the kubelet pins: no component aligns them with each other (up to 1.37)"
UNPINNED: Final = "its CPUs are the node's shared ones, its devices those that the scheduler takes"

_NUMA: Final = tuple(name for name in ORDER if name != PCIE_ROOT)
_POOLS_SORTED_SINCE: Final = 36
_UNCERTAIN: Final = "which devices it gets is not certain"

Uses = Mapping[str, tuple[tuple[str, str], ...]]
"""Container -> claim and request of each thing it uses."""


@dataclass(frozen=True, slots=True)
class Served:
    """What DRA gives a pod on one class.

    Attributes:
        by_dra: DRA, and no device plugin, gives the pod its accelerators there.
        bearers: containers that keep running and get some of them.
        places: container -> NUMA nodes of its devices on an idle node; empty: not known.
        why: why the places are not known, a clause.
        cpu: containers whose CPUs come from a claim.
    """

    by_dra: bool = False
    bearers: frozenset[str] = frozenset()
    places: Mapping[str, frozenset[int]] = field(default_factory=dict)
    why: str = ""
    cpu: frozenset[str] = frozenset()


def seen_by_claims(verdict: Verdict, served: Served, *, several: bool) -> Verdict:
    """Return the kubelet's verdict with what claims make of it: beside claimed devices nothing is aligned or unaligned.

    Args:
        verdict: of the kubelet.
        served: what DRA gives the pod there.
        several: the class has more than one NUMA node. On one, everything is aligned.
    """
    if not verdict.admitted:
        return verdict
    if served.by_dra:
        if not several:
            return replace(verdict, aligned=True, gaps=())
        gaps = tuple(_gap(name, verdict) for name in sorted(served.bearers or {""}))
        rest = tuple(gap for gap in verdict.gaps if gap.reason != NO_DEVICE_CONTAINER)
        return replace(verdict, aligned=False, gaps=(*gaps, *rest))
    return replace(verdict, gaps=tuple(_own(gap, served) for gap in verdict.gaps)) if served.cpu else verdict


def _gap(container: str, verdict: Verdict) -> Gap:
    return Gap(container, CLAIMED, MIXED if pins(verdict, container) else UNPINNED)


def _own(gap: Gap, served: Served) -> Gap:
    if gap.reason == SHARED_CPUS and gap.container in served.cpu:
        return Gap(
            gap.container, CLAIMED, "its CPUs come from a claim, and no component aligns them with its devices (up to 1.37)"
        )
    return gap


def pins(verdict: Verdict, container: str) -> bool:
    """Tell whether the kubelet gives a container CPUs of its own."""
    placement = verdict.placements.get(container)
    return placement is not None and bool(placement.cpus)


def is_claimed(verdict: Verdict) -> bool:
    """Tell whether the pod runs with devices that nobody aligns, so that alignment is no question."""
    return verdict.admitted and any(gap.reason == CLAIMED for gap in verdict.gaps)


def places(
    node: str, demand: Demand, uses: Uses, minor: int, numa_nodes: frozenset[int]
) -> tuple[dict[str, frozenset[int]], str]:
    """Return container -> the NUMA nodes of its devices on an idle node, or why they cannot be told.

    Args:
        node: of the inventory.
        demand: of all claims of the pod.
        uses: what each container uses of them.
        minor: of its Kubernetes: pools come in random order up to 1.35.
        numa_nodes: that it has.
    """
    found, why = first_allocation(node, demand, minor)
    if found is None:
        return {}, why or _UNCERTAIN
    there = {name: _sits_on(device for use in used for device in found.get(use, ())) for name, used in uses.items()}
    known = {name: cells for name, cells in there.items() if cells and cells <= numa_nodes}
    return (known, "") if known.keys() == there.keys() else ({}, "its devices do not say on which NUMA node they are")


def first_allocation(node: str, demand: Demand, minor: int) -> tuple[Allocation | None, str]:
    """Return the devices that the scheduler takes first on an idle node, or why they cannot be told; neither: it finds none."""
    why = _doubt(node, demand, minor)
    try:
        return (None, why) if why else (first(node, demand, Certainty.SURE), "")
    except TooLongError:
        return None, _UNCERTAIN


def _doubt(node: str, demand: Demand, minor: int) -> str:
    """Return why it is not certain which devices an idle node gives out first; empty: it is."""
    if not demand.exact:
        return "not all that its claims ask for is known"
    for need in demand.needs:
        candidates = list(need.candidates(node))
        if not all(candidate.sure for candidate in candidates):
            return _UNCERTAIN
        pools = {candidate.device.key[:2] for candidate in candidates}
        if not all(candidate.device.ordered for candidate in candidates) or (len(pools) > 1 and minor < _POOLS_SORTED_SINCE):
            return "the order of its devices is not certain"
        if any(candidate.device.shared for candidate in candidates) and _is_contended(node, demand):
            return _UNCERTAIN
    return ""


def _is_contended(node: str, demand: Demand) -> bool:
    """Tell whether several things are asked of devices that are given out in parts: capacities are not followed."""
    shared = [{candidate.device.key for candidate in need.candidates(node) if candidate.device.shared} for need in demand.needs]
    several = any(found and way.request.count > 1 for found, need in zip(shared, demand.needs, strict=True) for way in need.ways)
    return several or sum(map(len, shared)) != len(set[tuple[str, str, str]]().union(*shared))


def _sits_on(devices: Iterable[Device]) -> frozenset[int]:
    """Return the NUMA nodes of devices; empty where one of them does not say."""
    cells = [numa_node(device) for device in devices]
    return frozenset(cell for cell in cells if cell is not None) if None not in cells else frozenset()


def numa_node(device: Device) -> int | None:
    """Return the NUMA node that a device publishes, under whichever name; None where it publishes none."""
    for name in _NUMA:
        value = device.published(name)
        if value is not None and value.type is Type.INT and isinstance(value.value, int):
            return value.value
    return None

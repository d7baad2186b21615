"""The allocator's search on one idle node: depth first, and the first devices that will do are the ones.

Claims in the pod's order, requests and their alternatives in the claim's, devices as the node's pools list them
(`structured/internal/incubating/allocator_incubating.go`, `pools_incubating.go`: allocateOne, sortPoolsByID).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from webhook.core.dra.allocation import Fits, all_matched
from webhook.core.dra.candidates import Candidate, Wanted
from webhook.core.dra.demand import Demand, Need, Tie
from webhook.core.dra.devices import Attribute, Device, Type

_MOST_STEPS = 10_000
"""A search may be exponential; after so many devices tried nothing is said. It takes some ten milliseconds."""

_MOST_DEVICES = 128

Allocation = Mapping[tuple[str, str], tuple[Device, ...]]
"""Claim and request -> devices."""


class Certainty(Enum):
    """Which candidates count: those that match for sure and are given out once, or all that may match."""

    SURE = "sure"
    POSSIBLE = "possible"


class TooLongError(Exception):
    """The search was given up."""


def joint_fits(node: str, demand: Demand) -> Fits:
    """Return whether an idle node has the devices of all claims of a pod at once."""
    if not all_matched(slots(node, demand)):
        return Fits.NO
    try:
        if demand.exact and first(node, demand, Certainty.SURE) is not None:
            return Fits.YES
        return Fits.NO if first(node, demand, Certainty.POSSIBLE) is None else Fits.UNKNOWN
    except TooLongError:
        return Fits.UNKNOWN


def slots(node: str, demand: Demand) -> list[list[tuple[str, str, str]]]:
    """Return for each device that is needed at least, whatever the constraints, which devices it could be."""
    found: list[list[tuple[str, str, str]]] = []
    for need in demand.needs:
        candidates = list(need.candidates(node))
        if not any(candidate.device.shared for candidate in candidates):
            keys = list(dict.fromkeys(candidate.device.key for candidate in candidates))
            # One more than there are shows a shortage as well as millions do.
            found += [keys] * min(*(way.request.count for way in need.ways), len(keys) + 1)
    return found


def first(node: str, demand: Demand, certainty: Certainty) -> Allocation | None:
    """Return the first allocation that is found; None: there is none.

    Raises:
        TooLongError: it takes too long to tell.
    """
    if sum(max(way.request.count for way in need.ways) for need in demand.needs) > _MOST_DEVICES:
        raise TooLongError
    return _Search(node, demand, certainty).run()


class _Search:
    def __init__(self, node: str, demand: Demand, certainty: Certainty) -> None:
        self._node = node
        self._needs = demand.needs
        self._ties = demand.ties
        self._sure = certainty is Certainty.SURE
        self._steps = 0
        self._taken: set[tuple[str, str, str]] = set()
        self._values: dict[Tie, list[Attribute]] = {tie: [] for tie in demand.ties}
        self._chosen: list[tuple[Need, Device]] = []

    def run(self) -> Allocation | None:
        if not self._place(0):
            return None
        found: dict[tuple[str, str], tuple[Device, ...]] = {(need.claim, need.name): () for need in self._needs}
        for need, device in self._chosen:
            found[need.claim, need.name] += (device,)
        return found

    def _place(self, index: int) -> bool:
        if index == len(self._needs):
            return True
        return any(self._fill(index, way, self._usable(way), 0, way.request.count) for way in self._needs[index].ways)

    def _usable(self, way: Wanted) -> Sequence[Candidate]:
        candidates = way.nodes.get(self._node, ())
        if not self._sure:
            return candidates
        return sorted((candidate for candidate in candidates if candidate.sure), key=lambda each: each.device.key[:2])

    def _fill(self, index: int, way: Wanted, candidates: Sequence[Candidate], start: int, missing: int) -> bool:
        """Give a need the devices that it still misses, of the candidates from `start` on, and go on with the next need."""
        if not missing or (not self._sure and any(candidate.device.shared for candidate in candidates)):
            # A device in parts may serve many requests, and one request several times.
            return self._place(index + 1)
        for position in range(start, len(candidates) - missing + 1):
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise TooLongError
            device, need = candidates[position].device, self._needs[index]
            if device.key in self._taken or (bound := self._bound(need, way, device)) is None:
                continue
            self._take(need, device, bound)
            if self._fill(index, way, candidates, position + 1, missing - 1):
                return True
            self._give_back(device, bound)
        return False

    def _bound(self, need: Need, way: Wanted, device: Device) -> list[tuple[Tie, Attribute]] | None:
        """Return the values that a device brings into constraints; None where one does not hold with it."""
        found = []
        for tie in self._ties:
            if not tie.binds(need.claim, way.request.name):
                continue
            value = device.attributes.get(tie.attribute)
            if value is None:
                return None
            if value.type is Type.LIST:
                if self._sure:
                    return None
                continue  # what lists have in common hangs on a gate
            if self._values[tie] and self._values[tie][0] != value:
                return None
            found.append((tie, value))
        return found

    def _take(self, need: Need, device: Device, bound: Sequence[tuple[Tie, Attribute]]) -> None:
        self._taken.add(device.key)
        self._chosen.append((need, device))
        for tie, value in bound:
            self._values[tie].append(value)

    def _give_back(self, device: Device, bound: Sequence[tuple[Tie, Attribute]]) -> None:
        self._taken.remove(device.key)
        self._chosen.pop()
        for tie, _ in bound:
            self._values[tie].pop()

"""What a claim demands of a node, in the form in which the allocator searches for it: needs in order, and what ties them.

What is not understood is left out, and `exact` says that something was. A demand that leaves things out can still show that a
node does not have the devices; only an exact one can show that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from webhook.core.dra import claims
from webhook.core.dra.candidates import Candidate, Wanted, wanted
from webhook.core.dra.claims import MOST_RESULTS, DeviceRequest
from webhook.core.dra.devices import Inventory, Json


@dataclass(frozen=True, slots=True)
class Need:
    """One request of one claim.

    Attributes:
        claim: the pod's name for the claim.
        name: of the request.
        ways: how it can be satisfied, the first that works counts; several for a prioritized list.
    """

    claim: str
    name: str
    ways: tuple[Wanted, ...]

    def candidates(self, node: str) -> Iterator[Candidate]:
        """Yield the devices of a node that it could get in any way."""
        for way in self.ways:
            yield from way.nodes.get(node, ())


@dataclass(frozen=True, slots=True)
class Tie:
    """A `matchAttribute` constraint over requests, and alternatives of requests; without names: over all of its claim."""

    claim: str
    attribute: str
    names: frozenset[str]

    def binds(self, claim: str, way: str) -> bool:
        """Tell whether a device that a claim gets in this way (`gpu`, `gpu/aligned`) is bound."""
        if claim != self.claim:
            return False
        return not self.names or way in self.names or way.partition("/")[0] in self.names


@dataclass(frozen=True, slots=True)
class Demand:
    """What one claim, or all claims of a pod, ask for."""

    needs: tuple[Need, ...] = ()
    ties: tuple[Tie, ...] = ()
    exact: bool = True


def together(demands: Iterable[Demand]) -> Demand:
    """Return the demand of all claims of a pod."""
    found = list(demands)
    return Demand(
        tuple(need for each in found for need in each.needs),
        tuple(tie for each in found for tie in each.ties),
        all(each.exact for each in found),
    )


def demand(name: str, devices: Json, inventory: Inventory) -> Demand:
    """Return what a well-formed claim asks for; `name`: the pod's for it, `devices`: its `spec.devices`."""
    made = [_need(name, request, entry, inventory) for request, entry in _entries(devices)]
    needs = tuple(need for need in made if need is not None)
    ties, understood = _ties(name, devices)
    most = sum(max((way.request.count for way in need.ways), default=0) for need in needs)
    return Demand(needs, ties, understood and len(needs) == len(made) and most <= MOST_RESULTS)


def _entries(devices: Json) -> Iterator[tuple[DeviceRequest, Json]]:
    yield from zip(claims.visit(devices), devices.get("requests") or (), strict=True)


def _need(claim: str, request: DeviceRequest, entry: Json, inventory: Inventory) -> Need | None:
    """Return the need; None where it cannot be told, as with devices of which no node is known to have any."""
    requests = claims.alternatives(entry) if request.alternatives else (request,)
    if not requests or any(each.admin or each.all for each in requests):
        return None
    ways = tuple(wanted(each, inventory) for each in requests)
    return Need(claim, request.name, ways) if all(way.exists for way in ways) else None


def _ties(claim: str, devices: Json) -> tuple[tuple[Tie, ...], bool]:
    """Return the constraints that are understood, and whether those are all."""
    entries = devices.get("constraints") or ()
    found = [
        Tie(claim, entry["matchAttribute"], frozenset(entry.get("requests") or ()))
        for entry in entries
        if isinstance(entry.get("matchAttribute"), str)
    ]
    return tuple(found), len(found) == len(entries)

"""Whether an idle node can give a claim its devices, with and without one value of an attribute in common.

The scheduler's allocator searches all combinations (`dynamic-resource-allocation/structured`). Without counters, capacities and
several claims that comes down to a matching of requests with devices, which is decided here exactly: once with every device that
could match, for a certain no, and once with those that do for sure, for a certain yes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from webhook.core.dra.candidates import Candidate, Wanted
from webhook.core.dra.devices import Attribute


class Fits(StrEnum):
    """Whether a claim's devices can be had."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def fits(node: str, everything: Iterable[Wanted], together: frozenset[str] = frozenset(), attribute: str = "") -> Fits:
    """Return whether an idle node has the devices of all requests.

    Args:
        node: of the inventory.
        everything: each request of the claim.
        together: names of the requests whose devices must all have the same value of `attribute`.
        attribute: fully qualified; a device that does not publish it has no value in common with any.
    """
    offers = [(each, each.nodes.get(node, ())) for each in everything]
    if not together:
        return _answer([[(each, candidates) for each, candidates in offers]])
    values = {value for each, candidates in offers if each.request.name in together for value in _values(candidates, attribute)}
    narrowed = [
        [
            (each, _with(candidates, attribute, value) if each.request.name in together else candidates)
            for each, candidates in offers
        ]
        for value in sorted(values, key=repr)
    ]
    return _answer(narrowed)


_Offer = tuple[Wanted, Sequence[Candidate]]


def _answer(alternatives: Sequence[Sequence[_Offer]]) -> Fits:
    """Return the best answer among alternatives of which one is enough."""
    if any(_matches(offers, sure=True) for offers in alternatives):
        return Fits.YES
    return Fits.UNKNOWN if any(_matches(offers, sure=False) for offers in alternatives) else Fits.NO


def _values(candidates: Iterable[Candidate], attribute: str) -> Iterator[Attribute]:
    for candidate in candidates:
        value = candidate.device.published(attribute)
        if value is not None:
            yield value


def _with(candidates: Iterable[Candidate], attribute: str, value: Attribute) -> list[Candidate]:
    return [candidate for candidate in candidates if candidate.device.published(attribute) == value]


def _matches(offers: Sequence[_Offer], *, sure: bool) -> bool:
    """Tell whether every request gets as many devices as it wants, each device given once."""
    slots: list[list[_Key]] = []
    for each, candidates in offers:
        usable = [candidate for candidate in candidates if candidate.sure or not sure]
        if not sure and any(candidate.device.shared for candidate in usable):
            # A device in parts may serve many requests, and one request several times.
            continue
        keys = [candidate.device.key for candidate in usable]
        slots += [keys] * each.request.count
    return all_matched(slots)


_Key = tuple[str, str, str]


def all_matched(slots: Sequence[Sequence[_Key]]) -> bool:
    """Match each slot with a device of its own (augmenting paths)."""
    taken: dict[_Key, int] = {}

    def place(slot: int, seen: set[_Key]) -> bool:
        free = next((key for key in slots[slot] if key not in taken), None)
        if free is not None:
            taken[free] = slot
            return True
        for key in slots[slot]:
            if key in seen:
                continue
            seen.add(key)
            if place(taken[key], seen):
                taken[key] = slot
                return True
        return False

    return all(place(slot, set()) for slot in range(len(slots)))

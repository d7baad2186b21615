"""How long the scheduler searches before it gives up a node, with devices that must share a value.

Its allocator tries every combination of devices; 1.34 and 1.35 also the orders in which one request can get them
(`structured/internal/{stable,incubating}`, allocateOne). It takes some 15 µs for each, and after ten seconds the filter gives up
the node (gate DRASchedulerFilterTimeout, on by default): a claim that fits as written would not be placed for what we added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import perm, prod
from typing import Final

from webhook.core.dra.candidates import Wanted
from webhook.core.dra.devices import Attribute
from webhook.core.dra.encoding import Encoding

MOST_COMBINATIONS: Final = 30_000
"""Half a second a node, where it comes to that. Eight devices of one NUMA node, of two, are 27,400."""


def most_combinations(made: Encoding, everything: Iterable[Wanted], nodes: Iterable[str]) -> int:
    """Return how many combinations are tried at most on any of `nodes`, whatever is in use there, before it is given up.

    `everything`: the requests that some node has devices for.
    """
    by_name = {each.request.name: each for each in everything}
    order = [by_name[entry["name"]] for entry in made.devices["requests"] if entry["name"] in by_name]
    moved = order != list(by_name.values())
    return max((_with_one_value(node, order, made) + (moved and _as_written(node, order)) for node in nodes), default=0)


def _with_one_value(node: str, order: Sequence[Wanted], made: Encoding) -> int:
    sizes = [_sizes(each, node, made) for each in order]
    values = {value for found in sizes if isinstance(found, Counter) for value in found}
    return sum(_tried([found[value] if isinstance(found, Counter) else found for found in sizes], order) for value in values)


def _as_written(node: str, order: Sequence[Wanted]) -> int:
    """Return it for the second alternatives. In the author's order they are none of our doing, and may be very few."""
    return _tried([len(each.nodes.get(node, ())) for each in order], order)


def _sizes(each: Wanted, node: str, made: Encoding) -> Counter[Attribute] | int:
    """Return how many candidates a request has: by value if it is aligned."""
    candidates = each.nodes.get(node, ())
    if each.request.name not in made.names:
        return len(candidates)
    published = (candidate.device.published(made.attribute) for candidate in candidates)
    return Counter(value for value in published if value is not None)


def _tried(sizes: Sequence[int], order: Sequence[Wanted]) -> int:
    """Return what the requests can get of so many devices before one that comes off badly, times its attempts."""
    counts = [each.request.count for each in order]
    ways = [perm(size, count) for size, count in zip(sizes, counts, strict=True)]
    return max(
        prod(ways[:index]) * _attempts(min(size, count - 1))
        for index, (size, count) in enumerate(zip(sizes, counts, strict=True))
    )


def _attempts(devices: int) -> int:
    """Return in how many ways a request gets all or some of the devices that are left, which are not enough."""
    return sum(perm(devices, taken) for taken in range(devices + 1))

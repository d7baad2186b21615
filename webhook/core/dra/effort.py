"""How long the scheduler searches before it gives up a node, with devices that must share a value.

Its allocator tries every combination of devices; 1.34 and 1.35 also the orders in which one request can get them
(`structured/internal/{stable,incubating}`, allocateOne). It takes some 15 µs for each, and after ten seconds the filter gives up
the node (gate DRASchedulerFilterTimeout, on by default): a claim that fits as written would not be placed for what we added.
"""

from __future__ import annotations

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
    return max((_on(node, order, made) for node in nodes), default=0)


def _on(node: str, order: Sequence[Wanted], made: Encoding) -> int:
    values = {value for each in order if each.request.name in made.names for value in _values(each, node, made.attribute)}
    return sum(_with(value, node, order, made) for value in values)


def _values(each: Wanted, node: str, attribute: str) -> list[Attribute]:
    published = (candidate.device.published(attribute) for candidate in each.nodes.get(node, ()))
    return [value for value in published if value is not None]


def _with(value: Attribute, node: str, order: Sequence[Wanted], made: Encoding) -> int:
    """Return how many combinations have the value: all of the requests before the one that comes off badly, and its attempts."""
    sizes = [
        _values(each, node, made.attribute).count(value) if each.request.name in made.names else len(each.nodes.get(node, ()))
        for each in order
    ]
    ways = [perm(size, each.request.count) for size, each in zip(sizes, order, strict=True)]
    return max(prod(ways[:index]) * _attempts(min(sizes[index], each.request.count - 1)) for index, each in enumerate(order))


def _attempts(devices: int) -> int:
    """Return in how many ways a request gets all or some of the devices that are left, which are not enough."""
    return sum(perm(devices, taken) for taken in range(devices + 1))

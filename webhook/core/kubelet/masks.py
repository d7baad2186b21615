"""NUMA masks: bit i stands for the NUMA node with id i (`topologymanager/bitmask/bitmask.go`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import Final

WIDEST: Final = 20
"""NUMA nodes whose masks are still gone through, a million."""


def bits(mask: int) -> Iterator[int]:
    """Yield the ids of the nodes in a mask, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def of(ids: Iterable[int]) -> int:
    """Return the mask of some nodes."""
    mask = 0
    for node in ids:
        mask |= 1 << node
    return mask


def ids(mask: int) -> tuple[int, ...]:
    """Return the ids of the nodes in a mask, ascending."""
    return tuple(bits(mask))


class TooManyMasksError(Exception):
    """So many NUMA nodes that going through all their masks takes for ever, here and in the kubelet."""


@lru_cache(maxsize=64)
def subsets(mask: int) -> tuple[int, ...]:
    """Return every mask of one or more of the mask's nodes, narrow ones first.

    Raises:
        TooManyMasksError: beyond `WIDEST` nodes.
    """
    if mask.bit_count() > WIDEST:
        raise TooManyMasksError(f"the kubelet would go through all masks of {mask.bit_count()} NUMA nodes")
    singles = [1 << node for node in bits(mask)]
    return tuple(sum(chosen) for width in range(1, len(singles) + 1) for chosen in combinations(singles, width))


@lru_cache(maxsize=64)
def singles(mask: int) -> tuple[int, ...]:
    """Return the mask of each of its nodes alone, ascending."""
    return tuple(1 << node for node in bits(mask))

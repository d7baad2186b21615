"""Shares that LimitRanges accept: where the whole share is too much for them, the largest part of it that is not."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final, NamedTuple

from webhook.core.limitranges import MAX, POD, Bounds
from webhook.core.quantities import MI, MILLI_IN_NANO, NANO
from webhook.core.resource_names import CPU, MEMORY
from webhook.core.shape.amounts import Amounts

UNCAPPED: Final = Amounts(2**63, 2**63)


class Sizes(NamedTuple):
    """What a shape gives to the largest of its containers, and to the pod as a whole."""

    container: Amounts
    pod: Amounts


def cap(bounds: Bounds, sizes: Callable[[Amounts], Sizes | None], whole: Amounts) -> Amounts | None:
    """Return the most that each accelerator may bring its container, so that a shape is within every `max`; None: it is anyway.

    Where nothing is small enough it is nothing: whoever asked sees what is still too much.

    Args:
        bounds: of the namespace.
        sizes: what the shape has under a cap; None where there is no such shape.
        whole: at least what the shape has without one.
    """
    over = sizes(UNCAPPED)
    cpus, size = whole.cpu // 1000, whole.memory // MI
    too_many, too_large = _exceeds(bounds, CPU, over), _exceeds(bounds, MEMORY, over)
    if too_many:
        cpus = _largest(cpus, lambda most: _exceeds(bounds, CPU, sizes(Amounts(most * 1000, 0))))
    if too_large:
        size = _largest(size, lambda most: _exceeds(bounds, MEMORY, sizes(Amounts(0, most * MI))))
    return Amounts(cpus * 1000, size * MI) if too_many or too_large else None


def _largest(most: int, is_too_much: Callable[[int], bool]) -> int:
    return 0 if is_too_much(0) else bisect_left(range(most + 1), x=True, key=is_too_much) - 1


def _exceeds(bounds: Bounds, resource: str, sizes: Sizes | None) -> bool:
    return sizes is not None and any(
        _amount(resource, sizes.pod if bound.type == POD else sizes.container) > bound.amount
        for bound in bounds
        if bound.field == MAX and bound.resource == resource
    )


def _amount(resource: str, amounts: Amounts) -> int:
    return amounts.cpu * MILLI_IN_NANO if resource == CPU else amounts.memory * NANO

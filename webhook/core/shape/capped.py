"""Shares that LimitRanges accept: where the whole share is too much for them, the largest part of it that is not."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final, NamedTuple

from webhook.core.containers import Pod
from webhook.core.limitranges import MAX, breaches
from webhook.core.quantities import MI
from webhook.core.resource_names import CPU, MEMORY
from webhook.core.shape.scene import Scene


class Cap(NamedTuple):
    """The most that each accelerator brings its container: milli-CPUs, bytes."""

    cpu: int
    memory: int


UNCAPPED: Final = Cap(2**63, 2**63)

_Shaped = Callable[[Cap], Pod | None]


def cap(scene: Scene, shaped: _Shaped, whole: Cap) -> Cap | None:
    """Return the largest cap under which a shape is within every `max`; None where it needs none.

    Where nothing is small enough, the smallest: whoever asked sees what is still too much.

    Args:
        scene: with the bounds.
        shaped: the pod in the shape under a cap; None where there is no such shape.
        whole: at least what the shape has without a cap.
    """
    over = _over(scene, shaped(UNCAPPED))
    if not over:
        return None
    cpus, size = whole.cpu // 1000, whole.memory // MI
    if CPU in over:
        cpus = _largest(cpus, lambda most: CPU in _over(scene, shaped(UNCAPPED._replace(cpu=most * 1000))))
    if MEMORY in over:
        size = _largest(size, lambda most: MEMORY in _over(scene, shaped(UNCAPPED._replace(memory=most * MI))))
    return Cap(cpus * 1000, size * MI)


def _largest(most: int, is_too_much: Callable[[int], bool]) -> int:
    return max(bisect_left(range(most + 1), x=True, key=is_too_much) - 1, 0)


def _over(scene: Scene, pod: Pod | None) -> frozenset[str]:
    """Return the resources of which a shape has more than the LimitRanges accept, where its author's pod had not."""
    found = frozenset() if pod is None else breaches(pod, (bound for bound in scene.bounds if bound.field == MAX))
    return frozenset(breach.bound.resource for breach in found - scene.beyond)

"""What the kubelet leaves to chance: tried out, one choice after the other.

The Device Manager walks Go maps, whose order is random, so which of several equally good devices a container gets is luck.
A judgement asks a `Chooser` at each such point; `outcomes` runs it again until every sequence of choices was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

_MOST_OPTIONS: Final = 512
_MOST_RUNS: Final = 512

Spread = tuple[int, ...]
"""How many devices are taken of each group."""

_T = TypeVar("_T")


class Chooser:
    """Follows a script of choices, and takes the first option once the script ends.

    Attributes:
        path: for each choice so far the index taken and the number of options.
        complete: False once there were too many options to list them all.
    """

    def __init__(self, script: Sequence[int] = ()) -> None:
        self.path: list[tuple[int, int]] = []
        self.complete = True
        self._script = script

    def pick(self, capacities: Spread, count: int, *, support_only: bool) -> Spread:
        """Return one way to take `count` devices out of groups that have so many.

        `support_only`: it only matters which groups are taken from, not how many of each.
        """
        options = self._options(capacities, count, support_only=support_only)
        if len(options) == 1:
            return options[0]
        taken = self._script[len(self.path)] if len(self.path) < len(self._script) else 0
        self.path.append((taken, len(options)))
        return options[taken]

    def _options(self, capacities: Spread, count: int, *, support_only: bool) -> list[Spread]:
        options: dict[Spread, Spread] = {}
        for seen, option in enumerate(spreads(capacities, count)):
            if seen == _MOST_OPTIONS:
                self.complete = False
                break
            key = tuple(map(bool, option)) if support_only else option
            options.setdefault(key, option)
        return list(options.values())


def spreads(capacities: Spread, count: int) -> Iterator[Spread]:
    """Yield every way to take `count` devices out of groups of so many; the groups together have enough."""
    if not capacities:
        yield ()
        return
    rest = sum(capacities[1:])
    for taken in range(min(capacities[0], count), max(0, count - rest) - 1, -1):
        for others in spreads(capacities[1:], count - taken):
            yield (taken, *others)


def outcomes(run: Callable[[Chooser], _T], same: Callable[[_T, _T], bool]) -> tuple[_T, bool]:
    """Return the first outcome of `run`, and whether it is certain: all sequences of choices were tried and agree with it."""
    chooser = Chooser()
    first = run(chooser)
    certain = chooser.complete
    for _ in range(_MOST_RUNS):
        script = _next_script(chooser.path)
        if script is None or not certain:
            return first, certain
        chooser = Chooser(script)
        certain = same(first, run(chooser)) and chooser.complete
    return first, False


def _next_script(path: Sequence[tuple[int, int]]) -> list[int] | None:
    """Return the choices that follow these in depth-first order; None after the last ones."""
    indices = [taken for taken, _ in path]
    for position in reversed(range(len(path))):
        taken, options = path[position]
        if taken + 1 < options:
            return [*indices[:position], taken + 1]
    return None

"""What the kubelet leaves to chance: tried out, one choice after the other.

The Device Manager walks Go maps, whose order is random, so which of several equally good devices a container gets is luck.
A judgement asks a `Chooser` at each such point; `always` runs it again until every sequence of choices was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

_MOST_OPTIONS: Final = 256

Spread = tuple[int, ...]
"""How many devices are taken of each group."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Matters:
    """Which choices can change the outcome.

    Attributes:
        later: those on resources that a later container names too.
        last: those on resources that no later container names; only which groups are taken from matters then.
    """

    later: bool
    last: bool


class Chooser:
    """Follows a script of choices, and takes the first option once the script ends. Without a script it tries no others.

    Attributes:
        path: for each choice so far the index taken and the number of options.
        chances: how often there was a choice, tried out or not.
        complete: False once there were too many options to list them all.
    """

    def __init__(self, script: Sequence[int] | None = None, matters: Matters | None = None) -> None:
        self.path: list[tuple[int, int]] = []
        self.chances = 0
        self.complete = True
        self._script = script
        self._matters = matters or Matters(later=True, last=True)

    def pick(self, capacities: Spread, count: int, *, last: bool) -> Spread:
        """Return one way to take `count` devices out of groups that have so many; `last`: no later container wants any."""
        self.chances += 1
        if self._script is None or not (self._matters.last if last else self._matters.later):
            return next(spreads(capacities, count))
        options = self._options(capacities, count, last=last)
        taken = self._script[len(self.path)] if len(self.path) < len(self._script) else 0
        self.path.append((taken, len(options)))
        return options[taken]

    def _options(self, capacities: Spread, count: int, *, last: bool) -> list[Spread]:
        options: dict[Spread, Spread] = {}
        for option in islice(spreads(capacities, count), _MOST_OPTIONS):
            options.setdefault(tuple(map(bool, option)) if last else option, option)
        self.complete = self.complete and next(islice(spreads(capacities, count), _MOST_OPTIONS, None), None) is None
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


def always(agrees: Callable[[Chooser], bool], matters: Matters, most: int) -> bool:
    """Tell whether a run with every sequence of choices agrees with the first one; False also where `most` do not do.

    A run that ends early, at a choice that decides it, spares all sequences that go on from there.
    """
    script: Sequence[int] | None = ()
    for _ in range(most):
        chooser = Chooser(script, matters)
        if not agrees(chooser) or not chooser.complete:
            return False
        script = _next_script(chooser.path)
        if script is None:
            return True
    return False


def possible(run: Callable[[Chooser], _T], matters: Matters, most: int) -> tuple[frozenset[_T], bool]:
    """Return the outcomes that any sequence of choices may bring in `most` runs, and whether these are all of them."""
    found: set[_T] = set()
    script: Sequence[int] | None = ()
    for _ in range(most):
        chooser = Chooser(script, matters)
        found.add(run(chooser))
        script = _next_script(chooser.path)
        if script is None or not chooser.complete:
            return frozenset(found), script is None and chooser.complete
    return frozenset(found), False


def _next_script(path: Sequence[tuple[int, int]]) -> list[int] | None:
    """Return the choices that follow these in depth-first order; None after the last ones."""
    indices = [taken for taken, _ in path]
    for position in reversed(range(len(path))):
        taken, options = path[position]
        if taken + 1 < options:
            return [*indices[:position], taken + 1]
    return None

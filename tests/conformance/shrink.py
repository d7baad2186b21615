"""Reduce a case on which model and oracle disagree to a small one on which they still do."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

JSON = dict[str, Any]
Path = tuple[str | int, ...]

MAX_ROUNDS = 60
_KEPT = {"apiVersion", "kind", "metadata", "selector", "kubernetes", "name", "image", "id"}


def shrink(case: JSON, differences: Callable[[list[JSON]], list[str]]) -> JSON:
    """Return a smaller case; `differences` tells for each of a list of cases in what the two differ on it (empty: they agree)."""
    (wanted,) = differences([case])
    for _ in range(MAX_ROUNDS):
        candidates = list(simpler(case))
        kinds = differences(candidates)
        found = [candidate for candidate, kind in zip(candidates, kinds, strict=True) if kind and kind == wanted]
        if not found:
            return case
        case = min(found, key=_weight)
    return case


def _weight(case: JSON) -> int:
    return len(str(case))


def simpler(case: JSON) -> Iterator[JSON]:
    """Yield every case that lacks one thing of this one, or has a plainer value at one place."""
    for path, value in _walk(case, ()):
        if len(path) < 3 or (path[0] == "nodeClass" and path[1] != "spec"):
            continue
        key = path[-1]
        if isinstance(key, str) and key in _KEPT:
            continue
        yield from _without(case, path)
        if key != "id" and isinstance(value, str | int):
            yield from _plainer(case, path, value)


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, (*path, index))


def _without(case: JSON, path: Path) -> Iterator[JSON]:
    smaller = copy.deepcopy(case)
    parent = _at(smaller, path[:-1])
    del parent[path[-1]]
    yield smaller


def _plainer(case: JSON, path: Path, value: str | int) -> Iterator[JSON]:
    plainer: list[str | int] = []
    if isinstance(value, int) and not isinstance(value, bool) and value > 1:
        plainer = [1, value // 2, value - 1]
    elif path[-1] in ("memory", "cpu") or str(path[-1]).startswith("hugepages"):
        plainer = [simple for simple in ("1", "2", "1Mi", "1Gi", "2Gi", "4Gi") if len(simple) < len(str(value))]
    for simple in plainer:
        smaller = copy.deepcopy(case)
        _at(smaller, path[:-1])[path[-1]] = simple
        yield smaller


def _at(case: Any, path: Path) -> Any:
    for key in path:
        case = case[key]
    return case

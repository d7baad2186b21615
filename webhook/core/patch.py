"""From a pod before and after to a JSON patch (RFC 6902), over the few paths that may ever change.

There is no generic diff on purpose: what `changes` does not yield cannot come into a patch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.core.containers import Path, Pod, visit
from webhook.core.edit import get
from webhook.core.placement import PREFERRED, REQUIRED
from webhook.core.resource_names import CPU, MEMORY, is_hugepages

Operation = Mapping[str, Any]

ANNOTATIONS: Final[Path] = ("metadata", "annotations")
INJECTED: Final = "numalign.io/injected"
VERDICT: Final = "numalign.io/verdict"
HAMI_ALIGNMENT: Final = "hami.io/numa-alignment"
NODE_AFFINITY: Final[Path] = ("spec", "affinity", "nodeAffinity")

MISSING: Final[Any] = object()
"""Stands for a value that is not there, which in JSON is not the same as null."""


def operations(before: Pod, after: Pod) -> tuple[Operation, ...]:
    """Return the operations that turn `before` into `after`; both have the same containers in the same places."""
    found: list[Operation] = []
    made: set[Path] = set()
    for path, old, new in changes(before, after):
        if new is MISSING:
            found.append({"op": "remove", "path": pointer(path)})
        elif old is MISSING:
            found.extend(_parents(before, path, made))
            found.append({"op": "add", "path": pointer(path), "value": new})
        else:
            found.append({"op": "replace", "path": pointer(path), "value": new})
    return tuple(found)


def changes(before: Pod, after: Pod) -> Iterator[tuple[Path, Any, Any]]:
    """Yield each path that may change and does, with the value before and after; MISSING where there is none."""
    for path in _changeable(before, after):
        old, new = get(before, path, MISSING), get(after, path, MISSING)
        if old is not new and old != new:
            yield path, old, new


def pointer(path: Path) -> str:
    """Return a path as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _changeable(before: Pod, after: Pod) -> Iterator[Path]:
    for container in visit(after):
        if get(before, container.path) is not container.raw:
            yield from _quantities(before, after, (*container.path, "resources"))
    yield from _quantities(before, after, ("spec", "resources"))
    for key in (HAMI_ALIGNMENT, INJECTED, VERDICT):
        yield (*ANNOTATIONS, key)
    yield (*NODE_AFFINITY, REQUIRED)
    yield (*NODE_AFFINITY, PREFERRED)


def _quantities(before: Pod, after: Pod, path: Path) -> Iterator[Path]:
    for field in ("requests", "limits"):
        here = (*path, field)
        old, new = get(before, here) or {}, get(after, here) or {}
        if old is not new:
            yield from ((*here, name) for name in sorted({*old, *new}) if name in {CPU, MEMORY} or is_hugepages(name))


def _parents(before: Pod, path: Path, made: set[Path]) -> Iterator[Operation]:
    """Create what is missing on the way, each once; a null on the way counts as missing, and `add` overwrites it."""
    for end in range(1, len(path)):
        parent = path[:end]
        if parent not in made and get(before, parent) is None:
            made.add(parent)
            yield {"op": "add", "path": pointer(parent), "value": {}}

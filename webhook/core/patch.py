"""From a pod before and after to a JSON patch (RFC 6902), over the few paths that may ever change.

There is no generic diff on purpose: what is not in `_changeable` cannot come into a patch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.core.containers import Path, Pod, visit
from webhook.core.edit import get

Operation = Mapping[str, Any]

INJECTED = "numalign.io/injected"
VERDICT = "numalign.io/verdict"
HAMI_ALIGNMENT = "hami.io/numa-alignment"
NODE_AFFINITY: Path = ("spec", "affinity", "nodeAffinity")

_MISSING: Any = object()


def operations(before: Pod, after: Pod) -> tuple[Operation, ...]:
    """Return the operations that turn `before` into `after`; both must have the same containers."""
    found: list[Operation] = []
    made: set[Path] = set()
    for path in _changeable(before, after):
        found.extend(_step(before, after, path, made))
    return tuple(found)


def pointer(path: Path) -> str:
    """Return a path as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _changeable(before: Pod, after: Pod) -> Iterator[Path]:
    for container in visit(after):
        yield from _quantities(before, after, (*container.path, "resources"))
    yield from _quantities(before, after, ("spec", "resources"))
    for key in (HAMI_ALIGNMENT, INJECTED, VERDICT):
        yield ("metadata", "annotations", key)
    yield NODE_AFFINITY


def _quantities(before: Pod, after: Pod, path: Path) -> Iterator[Path]:
    for field in ("requests", "limits"):
        here = (*path, field)
        old, new = get(before, here) or {}, get(after, here) or {}
        if old is not new:
            yield from ((*here, name) for name in sorted({*old, *new}) if _is_ours(name))


def _is_ours(resource: str) -> bool:
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")


def _step(before: Pod, after: Pod, path: Path, made: set[Path]) -> Iterator[Operation]:
    old, new = get(before, path, _MISSING), get(after, path, _MISSING)
    if old is new or old == new:
        return
    if new is _MISSING:
        yield {"op": "remove", "path": pointer(path)}
    elif old is not _MISSING:
        yield {"op": "replace", "path": pointer(path), "value": new}
    else:
        yield from _parents(before, path, made)
        yield {"op": "add", "path": pointer(path), "value": new}


def _parents(before: Pod, path: Path, made: set[Path]) -> Iterator[Operation]:
    """Create what is missing on the way, each once; a null on the way counts as missing, and `add` overwrites it."""
    for end in range(1, len(path)):
        parent = path[:end]
        if parent not in made and get(before, parent) is None:
            made.add(parent)
            yield {"op": "add", "path": pointer(parent), "value": {}}

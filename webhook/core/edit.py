"""Changes to a pod that leave the original as it is: only the objects on the way to what changes are copied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.core.containers import Path, Pod

_MISSING: Any = object()


def put(pod: Pod, path: Path, value: Any) -> dict[str, Any]:
    """Return the pod with `value` at `path`; missing objects on the way are created, list elements must exist."""
    changed = _put(pod, path, value)
    assert isinstance(changed, dict)  # noqa: S101 - a pod is an object, and a path never empty
    return changed


def _put(node: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return [*node[:step], _put(node[step], rest, value), *node[step + 1 :]]
    node = node or {}
    return {**node, step: _put(node.get(step), rest, value)}


def drop(pod: Pod, path: Path) -> Pod:
    """Return the pod without what is at `path`; the same pod where there is nothing."""
    if get(pod, path, _MISSING) is _MISSING:
        return pod
    parent = get(pod, path[:-1])
    return put(pod, path[:-1], {key: value for key, value in parent.items() if key != path[-1]}) if path[:-1] else pod


def get(pod: Pod, path: Path, default: Any = None) -> Any:
    """Return what is at `path`, else `default`."""
    node: Any = pod
    for step in path:
        if isinstance(step, int):
            node = node[step] if isinstance(node, list) and 0 <= step < len(node) else _MISSING
        else:
            node = node.get(step, _MISSING) if isinstance(node, Mapping) else _MISSING
        if node is _MISSING:
            return default
    return node

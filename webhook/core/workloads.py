"""Pod templates inside workloads of any kind.

A pod spec is known by its `containers`, a template by having a pod spec at `spec`. That finds the templates of Deployment,
StatefulSet, DaemonSet, Job, CronJob and JobSet, and those of kinds that we have never heard of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webhook.core.containers import Path, Pod

_MAX_DEPTH = 24
_MAX_OBJECTS = 20_000


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template: the path of the object that stands for the pod, and that object.

    Where a kind has a pod spec under another name than `spec`, `pod` is made up around it, and `in_spec` is False: paths below
    `path` then lack the leading `spec`.
    """

    path: Path
    pod: Pod
    in_spec: bool = True


def templates(workload: Any) -> tuple[Template, ...]:
    """Return the pod templates of a workload in a stable order; a Pod is its own template. Never raises."""
    return tuple(_search(workload))


def _search(workload: Any) -> Iterator[Template]:
    queue: deque[tuple[Path, Any]] = deque([((), workload)])
    seen = 0
    while queue and seen < _MAX_OBJECTS:
        path, node = queue.popleft()
        seen += 1
        if isinstance(node, dict):
            if _is_pod_spec(node.get("spec")):
                # Without the kind: a Deployment-like kind may have containers right under its spec.
                yield Template(path, {key: value for key, value in node.items() if key in {"metadata", "spec"}})
                continue
            if path and _is_pod_spec(node):
                yield Template(path, {"spec": node}, in_spec=False)
                continue
        if len(path) < _MAX_DEPTH:
            queue.extend(((*path, step), child) for step, child in _children(node))


def _children(node: Any) -> Iterator[tuple[str | int, Any]]:
    pairs: Any = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return ((step, child) for step, child in pairs if isinstance(child, (dict, list)))


def _is_pod_spec(node: Any) -> bool:
    containers = node.get("containers") if isinstance(node, dict) else None
    return isinstance(containers, list) and bool(containers) and all(_is_container(each) for each in containers)


def _is_container(node: Any) -> bool:
    return isinstance(node, dict) and ("name" in node or "image" in node)

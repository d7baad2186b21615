"""The one visitor over a pod's containers.

The pod stays the raw dict it came as. Everything that looks at containers goes through `visit`, so that init, sidecar and
app containers are never treated by three different loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Pod = Mapping[str, Any]
Path = tuple[str | int, ...]


class Kind(StrEnum):
    """What a container is to the kubelet."""

    INIT = "init"
    SIDECAR = "sidecar"
    APP = "app"


@dataclass(frozen=True, slots=True)
class Container:
    """One container as it stands in the pod, with the path of its object: `("spec", "containers", 0)`."""

    kind: Kind
    path: Path
    name: str
    raw: Mapping[str, Any]

    def quantities(self, field: str) -> Mapping[str, Any]:
        """Return `resources.requests` or `resources.limits` as written, empty where absent."""
        return (self.raw.get("resources") or {}).get(field) or {}


def visit(pod: Pod) -> tuple[Container, ...]:
    """Return init and sidecar containers in declared order, then app containers: the kubelet's own order.

    A restartable init container (restartPolicy Always) is a sidecar (KEP-753). Ephemeral containers carry no resources and
    are left out. The pod must have passed `wellformed.problems`.
    """
    spec = pod.get("spec") or {}
    found = [_init(raw, index) for index, raw in enumerate(spec.get("initContainers") or ())]
    for index, raw in enumerate(spec.get("containers") or ()):
        found.append(Container(Kind.APP, ("spec", "containers", index), str(raw.get("name", "")), raw))
    return tuple(found)


def _init(raw: Mapping[str, Any], index: int) -> Container:
    kind = Kind.SIDECAR if raw.get("restartPolicy") == "Always" else Kind.INIT
    return Container(kind, ("spec", "initContainers", index), str(raw.get("name", "")), raw)


def field_path(path: Path) -> str:
    """Return a path as the API server writes it: `spec.containers[0].resources.limits[nvidia.com/gpu]`."""
    text = ""
    for step in path:
        if isinstance(step, int) or "/" in step or "." in step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text

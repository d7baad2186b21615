"""Quality-of-service classes (`pkg/apis/core/helper/qos/qos.go`): who may have CPUs and memory of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

Resources = Mapping[str, int]
"""Resource -> nano units."""


def of_requirements(requests: Resources, limits: Resources) -> str:
    """Return the class of one set of requirements; only CPU and memory count, an absent amount is zero."""
    cpu = _of_resource(requests.get("cpu", 0), limits.get("cpu", 0))
    memory = _of_resource(requests.get("memory", 0), limits.get("memory", 0))
    return cpu if cpu == memory else BURSTABLE


def _of_resource(request: int, limit: int) -> str:
    if request != limit:
        return BURSTABLE
    return GUARANTEED if request else BEST_EFFORT


def of_containers(containers: Iterable[tuple[Resources, Resources]]) -> str:
    """Return the class of a pod by the (requests, limits) of all its init, sidecar and app containers."""
    classes = {of_requirements(requests, limits) for requests, limits in containers}
    if len(classes) > 1:
        return BURSTABLE
    return classes.pop() if classes else BEST_EFFORT


def equivalent_guaranteed(requests: Resources, limits: Resources) -> bool:
    """Tell whether a container of a pod with pod-level resources counts as Guaranteed (`pkg/kubelet/cm/qos/helpers.go`)."""
    return of_requirements(requests, limits) == GUARANTEED

"""What the API server refuses of a pod's resources (`pkg/apis/core/validation/validation.go`, `ValidatePodCreate`).

Only what names, restart policies and resources decide; images, volumes, claims and the rest are taken to be in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.core import quantities
from webhook.core.containers import Kind, Pod
from webhook.core.kubelet.contract import ContainerView, PodView
from webhook.core.kubelet.totals import pod_total
from webhook.core.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    is_extended,
    is_hugepages,
    is_memory,
    is_native,
    is_qualified,
    overcommit_allowed,
    page_size,
    pod_level_supported,
)

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_LABEL: Final = 63
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_RESTART_RULES_SINCE: Final = 35
_CONTAINER_RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


def problems(pod: Pod, stored: PodView, minor: int) -> Iterator[str]:
    """Yield what the API server refuses: a field path, the value, and what it wants instead.

    `stored` is the view of `pod` with all defaults applied.
    """
    spec = pod.get("spec") or {}
    if not spec.get("containers"):
        yield "spec.containers: at least one container is required"
    if minor >= _RESTART_RULES_SINCE:
        yield from _restart_policies(spec)
    yield from _containers(stored)
    if spec.get("resources") is not None:
        yield from _pod_level(stored)
    if stored.overhead:
        yield from _requirements("spec.overhead", {}, stored.overhead, pod_level=False)


def _restart_policies(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield unknown restart policies of containers; before 1.35 the API server dropped them."""
    for field in ("initContainers", "containers"):
        for index, raw in enumerate(spec.get(field) or ()):
            policy = raw.get("restartPolicy")
            if policy is not None and policy not in _RESTART_POLICIES:
                yield f"spec.{field}[{index}].restartPolicy: {policy!r} is none of {', '.join(_RESTART_POLICIES)}"


def _containers(stored: PodView) -> Iterator[str]:
    seen: set[str] = set()
    for path, container in _paths(stored):
        if len(container.name) > _LONGEST_LABEL or not _LABEL.fullmatch(container.name):
            yield f"{path}.name: {container.name!r} is no lowercase DNS label"
        if container.name in seen:
            yield f"{path}.name: {container.name!r} names another container too"
        seen.add(container.name)
        yield from _requirements(f"{path}.resources", container.requests, container.limits, pod_level=False)


def _paths(stored: PodView) -> Iterator[tuple[str, ContainerView]]:
    inits = sum(container.kind is not Kind.APP for container in stored.containers)
    for index, container in enumerate(stored.containers):
        path = f"spec.initContainers[{index}]" if index < inits else f"spec.containers[{index - inits}]"
        yield path, container


def _requirements(path: str, requests: Mapping[str, int], limits: Mapping[str, int], *, pod_level: bool) -> Iterator[str]:
    for name, amount in limits.items():
        yield from _amount(f"{path}.limits[{name}]", name, amount, pod_level=pod_level)
    for name, amount in requests.items():
        yield from _amount(f"{path}.requests[{name}]", name, amount, pod_level=pod_level)
        yield from _against_limit(path, name, amount, limits.get(name))
    names = {*requests, *limits}
    if any(is_hugepages(name) for name in names) and not names & {CPU, MEMORY}:
        yield f"{path}: hugepages need cpu or memory beside them"


def _amount(path: str, name: str, amount: int, *, pod_level: bool) -> Iterator[str]:
    if not (_pod_level_name(name) if pod_level else _container_name(name)):
        yield f"{path}: no resource that may stand here"
    if amount < 0:
        yield f"{path}: {_text(name, amount)} is negative"
    if is_extended(name) and quantities.milli(amount) % 1000:
        yield f"{path}: {_text(name, amount)} is not whole"
    if is_hugepages(name) and not _whole_pages(name, amount):
        yield f"{path}: {_text(name, amount)} is no whole number of pages"


def _against_limit(path: str, name: str, request: int, limit: int | None) -> Iterator[str]:
    if limit is None:
        if not overcommit_allowed(name):
            yield f"{path}.limits[{name}]: must be set, and equal to the request"
    elif request != limit and not overcommit_allowed(name):
        yield f"{path}.requests[{name}]: {_text(name, request)} must equal the limit {_text(name, limit)}"
    elif request > limit:
        yield f"{path}.requests[{name}]: {_text(name, request)} is more than the limit {_text(name, limit)}"


def _container_name(name: str) -> bool:
    if not is_qualified(name):
        return False
    if "/" in name:
        return is_native(name) or is_extended(name)
    return name in _CONTAINER_RESOURCES or is_hugepages(name)


def _pod_level_name(name: str) -> bool:
    return is_qualified(name) and "/" not in name and pod_level_supported(name)


def _whole_pages(name: str, amount: int) -> bool:
    size = page_size(name)
    return size > 0 and quantities.value(amount) % size == 0


def _pod_level(stored: PodView) -> Iterator[str]:
    """Yield faults of `spec.resources` itself, then what the containers ask beyond it."""
    path = "spec.resources"
    yield from _requirements(path, stored.requests, stored.limits, pod_level=True)
    for name, amount in pod_total((c.kind, c.requests) for c in stored.containers).items():
        if amount > stored.requests.get(name, amount):
            yield _short(f"{path}.requests[{name}]", name, stored.requests[name], amount)
    for where, container in _paths(stored):
        for name, limit in container.limits.items():
            if container.kind is Kind.APP and limit > stored.limits.get(name, limit):
                pods = _text(name, stored.limits[name])
                yield f"{where}.resources.limits[{name}]: {_text(name, limit)} is more than the pod's {pods}"


def _short(path: str, name: str, have: int, need: int) -> str:
    return f"{path}: {_text(name, have)} is less than the containers' {_text(name, need)}"


def _text(name: str, nano: int) -> str:
    if is_memory(name) and quantities.is_whole(nano):
        return quantities.format_bytes(quantities.value(nano))
    return quantities.format_cpu(quantities.milli(nano))

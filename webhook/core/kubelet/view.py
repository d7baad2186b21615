"""The pod as the API server of a class's minor stores it: quantities made canonical, create-time defaults applied.

Sources: `pkg/apis/core/v1/defaults.go` (requests from limits; pod-level requests up to 1.36) and, from 1.37,
`pkg/api/pod/util.go` (pod-level requests and limits, after mutating and before validating webhooks).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.core import containers, quantities
from webhook.core.containers import Pod
from webhook.core.kubelet import qos, validate
from webhook.core.kubelet.contract import ContainerView, PodView, Refusal
from webhook.core.kubelet.totals import pod_total
from webhook.core.resource_names import is_hugepages, overcommit_allowed, pod_level_supported

INVALID: Final = "Invalid"
"""The reason of a verdict on a pod that the API server itself refuses."""

_LATE_DEFAULTS_SINCE: Final = 37


class _UndecodableError(ValueError):
    """The API server could not decode the field; `args[0]` says which and why."""


def view(pod: Pod, minor: int) -> PodView | Refusal:
    """Return the pod as it is stored, or why the API server refuses it.

    It depends on the minor only: one view serves all classes of a minor. Feature gates of the API server have their defaults.
    """
    try:
        parsed = _parse(pod)
    except _UndecodableError as error:
        return Refusal(INVALID, str(error))
    stored = _default(parsed, late=minor >= _LATE_DEFAULTS_SINCE)
    problem = next(validate.problems(pod, stored, minor), None)
    return Refusal(INVALID, problem) if problem else stored


def _parse(pod: Pod) -> PodView:
    """Return the view as written, requests taken from limits, with exact amounts and without a QoS class."""
    spec = pod.get("spec") or {}
    pod_level = spec.get("resources") or {}
    return PodView(
        containers=tuple(_parse_container(found) for found in containers.visit(pod)),
        qos="",
        pod_level=spec.get("resources") is not None,
        requests=_amounts(pod_level, "requests", "spec.resources"),
        limits=_amounts(pod_level, "limits", "spec.resources"),
        overhead=_amounts(spec, "overhead", "spec"),
    )


def _parse_container(found: containers.Container) -> ContainerView:
    resources = found.raw.get("resources") or {}
    path = f"{containers.field_path(found.path)}.resources"
    limits = _amounts(resources, "limits", path)
    return ContainerView(found.name, found.kind, limits | _amounts(resources, "requests", path), limits)


def _amounts(resources: Mapping[str, Any], field: str, path: str) -> dict[str, int]:
    written = resources.get(field) or {}
    amounts = {}
    for name, amount in written.items():
        try:
            # JSON's null decodes as zero
            amounts[name] = 0 if amount is None else quantities.parse(amount)
        except quantities.InvalidQuantityError as error:
            raise _UndecodableError(f"{path}.{field}[{name}]: {error}") from error
    return amounts


def _default(parsed: PodView, *, late: bool) -> PodView:
    """Fill in pod-level resources and round to thousandths; up to 1.36 in this order, from 1.37 the other way round."""
    if late:
        return _classed(_pod_level_defaults(_rounded(parsed), late=True), late=True)
    return _classed(_rounded(_pod_level_defaults(parsed, late=False)), late=False)


def _rounded(parsed: PodView) -> PodView:
    rounded = tuple(ContainerView(c.name, c.kind, _milli(c.requests), _milli(c.limits)) for c in parsed.containers)
    return PodView(rounded, "", parsed.pod_level, _milli(parsed.requests), _milli(parsed.limits), _milli(parsed.overhead))


def _milli(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: quantities.round_to_milli(amount) for name, amount in amounts.items()}


def _pod_level_defaults(parsed: PodView, *, late: bool) -> PodView:
    if not parsed.requests and not parsed.limits:
        return parsed
    total_limits = pod_total((c.kind, c.limits) for c in parsed.containers)
    pages = {name: amount for name, amount in total_limits.items() if is_hugepages(name) and name not in parsed.requests}
    limits = pages | dict(parsed.limits)
    requests = dict(parsed.requests)
    if limits or late:
        requests = _default_requests(parsed, limits)
    if late:
        limits = _default_limits(parsed, requests, total_limits) | limits
    return PodView(parsed.containers, "", parsed.pod_level, requests, limits, parsed.overhead)


def _default_requests(parsed: PodView, limits: Mapping[str, int]) -> dict[str, int]:
    """Return the author's pod-level requests; what is absent comes from the containers' sum, then from the pod-level limit."""
    total = pod_total((c.kind, c.requests) for c in parsed.containers)
    summed = {name: amount for name, amount in total.items() if pod_level_supported(name) and overcommit_allowed(name)}
    limited = {name: amount for name, amount in limits.items() if pod_level_supported(name)}
    return limited | summed | dict(parsed.requests)


def _default_limits(parsed: PodView, requests: Mapping[str, int], total_limits: Mapping[str, int]) -> dict[str, int]:
    """Return limits for the requested resources that every container limits: their sum, at least the pod-level request."""
    return {
        name: max(total_limits[name], amount)
        for name, amount in requests.items()
        if pod_level_supported(name) and all(name in c.limits for c in parsed.containers)
    }


def _classed(stored: PodView, *, late: bool) -> PodView:
    """Set the QoS class and whether pod-level resources count; up to 1.36 even an empty `spec.resources` decides the class."""
    counts = any(pod_level_supported(name) for name in (*stored.requests, *stored.limits))
    if counts or (stored.pod_level and not late):
        found = qos.of_requirements(stored.requests, stored.limits)
    else:
        found = qos.of_containers((c.requests, c.limits) for c in stored.containers)
    return PodView(stored.containers, found, counts, stored.requests, stored.limits, stored.overhead)

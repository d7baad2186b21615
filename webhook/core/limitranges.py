"""What a namespace's LimitRanges let a pod have: the API server checks them after all webhooks, and refuses what is beyond.

The rules are those of the LimitRanger plugin (`plugin/pkg/admission/limitranger/admission.go`): it gives containers their
defaults before webhooks are called, again where one changed the pod, and compares with `min`, `max` and `maxLimitRequestRatio`
when all have answered. Only CPU, memory and hugepages count here: nothing else is ever ours to set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook.core import wording
from webhook.core.containers import Container, Path, Pod, field_path, visit
from webhook.core.edit import put
from webhook.core.kubelet.totals import pod_total
from webhook.core.quantities import NANO, InvalidQuantityError, milli, parse, value
from webhook.core.resource_names import CPU, MEMORY, pod_level_supported

CONTAINER: Final = "Container"
POD: Final = "Pod"
MIN: Final = "min"
MAX: Final = "max"
RATIO: Final = "maxLimitRequestRatio"

_MAX_MILLI: Final = (2**63 - 1) // 1000
_POD_LEVEL: Final = frozenset({CPU, MEMORY})
"""What the plugin takes from `spec.resources` in place of the containers' total; hugepages there do not count."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One amount of one LimitRange.

    Attributes:
        owner: the LimitRange, as `namespace/name`.
        type: `Container` (each one, init containers too) or `Pod` (all of them together).
        field: `min`, `max` or `maxLimitRequestRatio`.
        amount: nano units.
    """

    owner: str
    type: str
    field: str
    resource: str
    amount: int

    def __str__(self) -> str:
        return f"LimitRange {self.owner}: {self.field} {self.resource} per {self.type} is {_written(self, self.amount)}"


Bounds = tuple[Bound, ...]
"""All bounds of one namespace."""

Limits = Mapping[str, Bounds]
"""Namespace -> its bounds; a namespace without any has none."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A bound that a pod does not keep, and what the plugin compares with it, in nano units; None: it is not set.

    Attributes:
        container: its name, empty for the pod; `path`: of its object.
    """

    bound: Bound
    container: str
    path: Path
    request: int | None
    limit: int | None

    @property
    def compared(self) -> int | None:
        """Return the amount that does not fit: of a `min` the request, else the limit."""
        return self.request if self.bound.field == MIN else self.limit

    @property
    def excess(self) -> float:
        """Return how far beyond the bound that is, in parts of it."""
        return abs((self.compared or 0) - self.bound.amount) / max(self.bound.amount, 1)

    @property
    def field(self) -> str:
        """Return the field that stands against the bound."""
        side = "requests" if self.bound.field == MIN else "limits"
        return field_path((*self.path, "resources", side, self.bound.resource)) if self.path else "spec"

    def __str__(self) -> str:
        who = self.container or "the pod"
        if self.bound.field == RATIO or self.compared is None:
            return f"{self.bound}, {who} has {_sides(self)}"
        return f"{self.bound}, {who} would get {_written(self.bound, self.compared)}"


def limits_of(items: Iterable[Any]) -> Limits:
    """Return the bounds of LimitRange objects as an API server lists them; what is none of them is left out."""
    found: dict[str, list[Bound]] = {}
    for item in items:
        metadata, spec = (_object(_object(item).get(key)) for key in ("metadata", "spec"))
        namespace, name = (str(metadata.get(key, "")) for key in ("namespace", "name"))
        bounds = list(_bounds(f"{namespace}/{name}" if namespace else name, spec))
        if bounds:
            found.setdefault(namespace, []).extend(bounds)
    return {namespace: tuple(sorted(set(bounds), key=repr)) for namespace, bounds in found.items()}


def _bounds(owner: str, spec: Mapping[str, Any]) -> Iterator[Bound]:
    for item in _items(spec):
        for field in (MIN, MAX, RATIO) if item.get("type") in (CONTAINER, POD) else ():
            for resource, amount in _object(item.get(field)).items():
                if pod_level_supported(str(resource)):
                    try:
                        yield Bound(owner, item["type"], field, str(resource), parse(amount))
                    except InvalidQuantityError:
                        continue


def _items(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    limits = spec.get("limits")
    return map(_object, limits if isinstance(limits, list) else ())


def with_defaults(pod: Pod, items: Iterable[Any]) -> Pod:
    """Return a well-formed pod as the plugin completes it, by the LimitRange objects of its namespace.

    The API server makes a default of a `max`, and default requests of defaults and of a `min` (`pkg/apis/core/v1/defaults.go`).
    """
    for item in (each for obj in items for each in _items(_object(_object(obj).get("spec"))) if each.get("type") == CONTAINER):
        limits = {**_object(item.get(MAX)), **_object(item.get("default"))}
        requests = {**_object(item.get(MIN)), **limits, **_object(item.get("defaultRequest"))}
        for container in visit(pod):
            for side, defaults in (("limits", limits), ("requests", requests)):
                written = container.quantities(side)
                if defaults.keys() - written.keys():
                    pod = put(pod, (*container.path, "resources", side), {**defaults, **written})
    return pod


def _object(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def breaches(pod: Pod, bounds: Iterable[Bound]) -> frozenset[Breach]:
    """Return the bounds that a well-formed pod does not keep; none: the plugin accepts it."""
    return frozenset(breach for bound in bounds for breach in _compared(pod, bound) if not _is_kept(breach))


def distance(found: frozenset[Breach]) -> tuple[int, float]:
    """Return how far from being accepted a pod with these breaches is."""
    return len(found), sum(breach.excess for breach in found)


def _compared(pod: Pod, bound: Bound) -> Iterator[Breach]:
    if bound.type == POD:
        yield Breach(bound, "", (), *_of_pod(pod, bound.resource))
        return
    for container in visit(pod):
        yield Breach(bound, container.name, container.path, *_of_container(container, bound.resource))


def _of_container(container: Container, resource: str) -> tuple[int | None, int | None]:
    return _pair(container.quantities("requests"), container.quantities("limits"), resource)


def _pair(requests: Mapping[str, Any], limits: Mapping[str, Any], resource: str) -> tuple[int | None, int | None]:
    """Return request and limit; the API server has made the request of a limit that stands alone."""
    limit = parse(limits[resource]) if resource in limits else None
    return parse(requests[resource]) if resource in requests else limit, limit


def _of_pod(pod: Pod, resource: str) -> tuple[int | None, int | None]:
    """Return what all containers have that have any, or what the pod itself says of CPU or memory."""
    whole = _object(pod["spec"].get("resources")) if resource in _POD_LEVEL else {}
    request, limit = _pair(_object(whole.get("requests")), _object(whole.get("limits")), resource)
    each = [(container.kind, _of_container(container, resource)) for container in visit(pod)]
    requests = pod_total((kind, {resource: asked}) for kind, (asked, _) in each if asked is not None).get(resource)
    limits = pod_total((kind, {resource: most}) for kind, (_, most) in each if most is not None).get(resource)
    return requests if request is None else request, limits if limit is None else limit


def _is_kept(breach: Breach) -> bool:
    """Compare as the plugin does: in thousandths, unless one of the amounts is too large for that."""
    bound, request, limit = breach.bound, breach.request, breach.limit
    asked, most, amount = _comparable(request or 0, limit or 0, bound.amount)
    if bound.field == MIN:
        return request is not None and asked >= amount and (limit is None or most >= amount)
    if bound.field == MAX:
        return limit is not None and most <= amount and (request is None or asked <= amount)
    return bool(asked and most) and _ratio_is_kept(asked, most, bound.amount)


def _comparable(*amounts: int) -> tuple[int, ...]:
    whole = [value(amount) for amount in amounts]
    return tuple(map(milli, amounts)) if max(whole) <= _MAX_MILLI else tuple(whole)


def _ratio_is_kept(asked: int, most: int, amount: int) -> bool:
    """The plugin divides floating-point numbers, and so must we."""
    if value(amount) <= _MAX_MILLI:
        return most / asked * 1000 <= float(milli(amount))
    return most / asked <= float(value(amount))


def _sides(breach: Breach) -> str:
    if breach.limit is None and breach.bound.field != MIN:
        return f"no {breach.bound.resource} limit"
    if not breach.request or breach.limit is None:
        return f"no {breach.bound.resource} request"
    return f"{wording.bare(breach.bound.resource, breach.limit)} for {wording.bare(breach.bound.resource, breach.request)}"


def _written(bound: Bound, amount: int) -> str:
    return f"{amount / NANO:g}" if bound.field == RATIO else wording.bare(bound.resource, amount)

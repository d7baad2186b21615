"""What makes a pod unusable for us: everything that the rest of the core reads has the type that it expects.

The API server's own validation comes after mutating webhooks, and whoever replays a review may send anything. So a pod is
checked once, here; everywhere else the pod may be read without looking twice. Nothing here raises, whatever JSON it is given,
and nothing descends into parts that we do not read.

Rules of quantities: `pkg/apis/core/validation/validation.go`, ValidateContainerResourceRequirements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.core.containers import Path, field_path
from webhook.core.placement import PREFERRED, REQUIRED
from webhook.core.quantities import InvalidQuantityError, is_whole, parse


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a pod: where, and what was expected there."""

    path: Path
    message: str

    def __str__(self) -> str:
        return f"{field_path(self.path) or 'object'}: {self.message}"


Problems = Iterator[Problem]


def problems(pod: Any) -> tuple[Problem, ...]:
    """Return what keeps us from judging a pod (or the template of one), in the order of its fields; empty: nothing."""
    if not isinstance(pod, dict):
        return (Problem((), f"expected a Pod, got {_kind(pod)}"),)
    if pod.get("kind") not in (None, "Pod"):
        return (Problem(("kind",), f"expected Pod, got {pod.get('kind')!r:.40}"),)
    return (*_metadata(pod), *_spec(pod))


def _metadata(pod: Mapping[str, Any]) -> Problems:
    metadata = pod.get("metadata")
    yield from _optional(metadata, dict, ("metadata",))
    if isinstance(metadata, dict):
        for field in ("labels", "annotations"):
            yield from _optional(metadata.get(field), dict, ("metadata", field))


def _spec(pod: Mapping[str, Any]) -> Problems:
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        yield Problem(("spec",), f"expected an object, got {_kind(spec)}")
        return
    yield from _all_containers(spec)
    yield from _resources(spec, ("spec",), pod_level=True)
    yield from _quantities(spec.get("overhead"), ("spec", "overhead"))
    yield from _optional(spec.get("os"), dict, ("spec", "os"))
    for field in ("nodeName", "schedulerName", "runtimeClassName"):
        yield from _optional(spec.get(field), str, ("spec", field))
    yield from _strings(spec.get("nodeSelector"), ("spec", "nodeSelector"))
    yield from _node_affinity(spec)
    for path, toleration in _objects(spec.get("tolerations"), ("spec", "tolerations")):
        if isinstance(toleration, Problem):
            yield toleration
        else:
            yield from _strings(toleration, path, only=("key", "operator", "value", "effect"))
    yield from _volumes(spec)


def _all_containers(spec: Mapping[str, Any]) -> Problems:
    seen: set[str] = set()
    if not spec.get("containers"):
        yield Problem(("spec", "containers"), "expected a list of at least one container")
    for field in ("initContainers", "containers"):
        for path, container in _objects(spec.get(field), ("spec", field)):
            if isinstance(container, Problem):
                yield container
            else:
                yield from _name(container.get("name"), path, seen)
                yield from _resources(container, path)
                mounts = _objects(container.get("volumeMounts"), (*path, "volumeMounts"))
                yield from (mount for _, mount in mounts if isinstance(mount, Problem))


def _name(name: Any, path: Path, seen: set[str]) -> Problems:
    if not isinstance(name, str) or not name:
        yield Problem((*path, "name"), f"expected a name, got {_kind(name)}")
    elif name in seen:
        yield Problem((*path, "name"), f"{name!r:.80} names two containers")
    else:
        seen.add(name)


def _resources(owner: Mapping[str, Any], path: Path, *, pod_level: bool = False) -> Problems:
    resources = owner.get("resources")
    if resources is None:
        return
    path = (*path, "resources")
    if not isinstance(resources, dict):
        yield Problem(path, f"expected an object, got {_kind(resources)}")
        return
    found = False
    for field in ("requests", "limits"):
        for problem in _quantities(resources.get(field), (*path, field)):
            found = True
            yield problem
    if not found:
        yield from _pairs(resources.get("requests") or {}, resources.get("limits") or {}, path, pod_level=pod_level)


def _pairs(requests: Mapping[str, Any], limits: Mapping[str, Any], path: Path, *, pod_level: bool) -> Problems:
    """Requests above limits; for what cannot be overcommitted (devices, hugepages), requests that differ from limits."""
    for name, quantity in requests.items():
        if name not in limits:
            continue
        request, limit = parse(quantity), parse(limits[name])
        if request > limit:
            yield Problem((*path, "requests", name), f"{quantity} is more than the limit {limits[name]}")
        elif request != limit and not pod_level and ("/" in name or name.startswith("hugepages-")):
            yield Problem(
                (*path, "requests", name), f"{quantity} differs from the limit {limits[name]}; this resource wants both equal"
            )


def _quantities(values: Any, path: Path) -> Problems:
    if values is None:
        return
    if not isinstance(values, dict):
        yield Problem(path, f"expected an object, got {_kind(values)}")
        return
    for name, quantity in values.items():
        message = _wrong_quantity(name, quantity) if isinstance(name, str) else f"expected a name, got {_kind(name)}"
        if message:
            yield Problem((*path, str(name)), message)


def _wrong_quantity(name: str, quantity: Any) -> str:
    try:
        nano = parse(quantity)
    except InvalidQuantityError as error:
        return str(error)
    if nano < 0:
        return f"expected a quantity of at least 0, got {quantity!r:.40}"
    return f"expected a whole number of devices, got {quantity!r:.40}" if "/" in name and not is_whole(nano) else ""


def _node_affinity(spec: Mapping[str, Any]) -> Problems:
    path: Path = ("spec", "affinity")
    affinity = spec.get("affinity")
    yield from _optional(affinity, dict, path)
    if not isinstance(affinity, dict):
        return
    path, node = (*path, "nodeAffinity"), affinity.get("nodeAffinity")
    yield from _optional(node, dict, path)
    if not isinstance(node, dict):
        return
    yield from (item for _, item in _objects(node.get(PREFERRED), (*path, PREFERRED)) if isinstance(item, Problem))
    path, required = (*path, REQUIRED), node.get(REQUIRED)
    yield from _optional(required, dict, path)
    if isinstance(required, dict):
        for where, term in _objects(required.get("nodeSelectorTerms"), (*path, "nodeSelectorTerms")):
            yield from [term] if isinstance(term, Problem) else _term(term, where)


def _term(term: Mapping[str, Any], path: Path) -> Problems:
    for field in ("matchExpressions", "matchFields"):
        for where, expression in _objects(term.get(field), (*path, field)):
            if isinstance(expression, Problem):
                yield expression
                continue
            for part in ("key", "operator"):
                if not isinstance(expression.get(part), str):
                    yield Problem((*where, part), f"expected a text, got {_kind(expression.get(part))}")
            values = expression.get("values")
            if values is not None and not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
                yield Problem((*where, "values"), "expected a list of texts")


def _volumes(spec: Mapping[str, Any]) -> Problems:
    for path, volume in _objects(spec.get("volumes"), ("spec", "volumes")):
        if isinstance(volume, Problem):
            yield volume
            continue
        source = volume.get("emptyDir")
        yield from _optional(source, dict, (*path, "emptyDir"))
        if isinstance(source, dict) and source.get("sizeLimit") is not None:
            message = _wrong_quantity("memory", source["sizeLimit"])
            if message:
                yield Problem((*path, "emptyDir", "sizeLimit"), message)


def _objects(values: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any] | Problem]]:
    """Yield each element with its path: an object, or the problem where it is none; the list itself may be absent."""
    if values is None:
        return
    if not isinstance(values, list):
        yield path, Problem(path, f"expected a list, got {_kind(values)}")
        return
    for index, value in enumerate(values):
        here = (*path, index)
        yield here, value if isinstance(value, dict) else Problem(here, f"expected an object, got {_kind(value)}")


def _strings(values: Any, path: Path, only: tuple[str, ...] = ()) -> Problems:
    yield from _optional(values, dict, path)
    if isinstance(values, dict):
        for key in only or values:
            # A key that is no text can come from YAML only.
            yield from _optional(key, str, path)
            yield from _optional(values.get(key), str, (*path, str(key)))


def _optional(value: Any, expected: type, path: Path) -> Problems:
    if value is not None and not isinstance(value, expected):
        yield Problem(path, f"expected {_NAMES[expected]}, got {_kind(value)}")


_NAMES: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


def _kind(value: Any) -> str:
    return _NAMES.get(type(value), "a number")

"""Node affinity that keeps a pod off the classes that do not serve it, and on those that do.

Strict mode requires it: `NotIn` the label values of the classes to avoid, so that nodes without the key pass, and autoscaled and
undescribed nodes stay possible. Where the selector of such a class has several keys and none of them alone tells it from the
classes that serve the pod, a node need only differ in one of them, which takes alternative terms. Best-effort mode prefers `In`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from webhook.core.containers import Pod
from webhook.core.edit import get, put
from webhook.core.model import NodeClass
from webhook.core.patch import NODE_AFFINITY
from webhook.core.placement import PREFERRED, REQUIRED, names_nodes, required_terms

Expression = Mapping[str, Any]
Alternatives = Sequence[Sequence[Expression]]
"""What a node must satisfy: all expressions of at least one element."""

_Label = tuple[str, str]
_WEIGHT = 100
_MOST_ALTERNATIVES = 8


def keep_off(pod: Pod, keep: Sequence[NodeClass], avoid: Sequence[NodeClass], *, complete: bool) -> Alternatives | None:
    """Return what keeps a pod off the classes to avoid and off no other node; None where nothing does, or need be done.

    Without `complete` other nodes may share a label with a described class, so only its whole selector tells its nodes.
    """
    if not keep or not avoid or names_nodes(pod) or required_terms(pod) == () or not all(each.selector for each in avoid):
        return None
    single: list[_Label] = []
    several: list[list[_Label]] = []
    for each in avoid:
        key = next(iter(each.selector)) if len(each.selector) == 1 else _telling_key(each, keep) if complete else None
        if key is None:
            several.append(sorted(each.selector.items()))
        else:
            single.append((key, each.selector[key]))
    alternatives = [_none_of([*single, *choice]) for choice in product(*several)]
    return alternatives if len(alternatives) <= _MOST_ALTERNATIVES else None


def _none_of(labels: Sequence[_Label]) -> list[Expression]:
    """Return what a node without any of the labels satisfies, one expression for each key."""
    values: dict[str, set[str]] = {}
    for key, value in labels:
        values.setdefault(key, set()).add(value)
    return [{"key": key, "operator": "NotIn", "values": sorted(found)} for key, found in sorted(values.items())]


def preference(pod: Pod, keep: Sequence[NodeClass], avoid: Sequence[NodeClass]) -> Expression | None:
    """Return the preferred term for the classes that serve a pod, where one label key tells them from the others."""
    if not keep or not avoid or names_nodes(pod):
        return None
    for key in sorted(set[str]().union(*(_labels(each) for each in keep))):
        good, bad = {_labels(each).get(key) for each in keep}, {_labels(each).get(key) for each in avoid}
        if None not in good | bad and not good & bad:
            expression = {"key": key, "operator": "In", "values": sorted(value for value in good if value)}
            return {"weight": _WEIGHT, "preference": {"matchExpressions": [expression]}}
    return None


def required(pod: Pod, ours: Alternatives) -> Pod:
    """Return the pod with the alternatives ANDed into every required term; an empty term matches nothing, and stays so."""
    terms = required_terms(pod)
    added = _anded({}, ours) if terms is None else [term for each in terms for term in _anded_unless_empty(each, ours)]
    return put(pod, (*NODE_AFFINITY, REQUIRED, "nodeSelectorTerms"), added)


def preferred(pod: Pod, ours: Expression) -> Pod:
    """Return the pod with one more preferred term."""
    path = (*NODE_AFFINITY, PREFERRED)
    return put(pod, path, [*(get(pod, path) or ()), ours])


def without_required(terms: Sequence[Mapping[str, Any]], ours: Alternatives) -> list[Mapping[str, Any]] | None:
    """Return the terms as they were before `required`; None where they are not as it left them."""
    restored: list[Mapping[str, Any]] = []
    rest = list(terms)
    while rest:
        if not rest[0].get("matchExpressions"):
            restored.append(rest.pop(0))
            continue
        group, rest = rest[: len(ours)], rest[len(ours) :]
        origin = _stripped(group[0], ours[0])
        if origin is None or group != _anded(origin, ours):
            return None
        if origin:
            restored.append(origin)
    return restored


def _stripped(term: Mapping[str, Any], expressions: Sequence[Expression]) -> Mapping[str, Any] | None:
    """Return a term without the expressions at its end, empty where there was nothing else."""
    found = term["matchExpressions"]
    if list(found[-len(expressions) :]) != list(expressions):
        return None
    others = {key: value for key, value in term.items() if key != "matchExpressions"}
    kept = found[: -len(expressions)]
    return {**others, "matchExpressions": kept} if kept else others


def _anded_unless_empty(term: Mapping[str, Any], ours: Alternatives) -> list[Mapping[str, Any]]:
    return _anded(term, ours) if term.get("matchExpressions") else [term]


def _anded(term: Mapping[str, Any], ours: Alternatives) -> list[Mapping[str, Any]]:
    return [{**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *each]} for each in ours]


def _telling_key(avoid: NodeClass, keep: Sequence[NodeClass]) -> str | None:
    """Return a key of the selector for which all classes to keep state another value."""
    for key, value in sorted(avoid.selector.items()):
        if all(_labels(each).get(key, value) != value for each in keep):
            return key
    return None


def _labels(node_class: NodeClass) -> Mapping[str, str]:
    return {**node_class.labels, **node_class.selector}

"""Node affinity that keeps a pod on the classes that serve it, where one label key tells them from the others.

Required `NotIn` in strict mode: nodes without the key pass, so autoscaled and undescribed nodes stay possible. Preferred `In`
in best-effort mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.core.containers import Pod
from webhook.core.edit import get, put
from webhook.core.model import NodeClass
from webhook.core.patch import NODE_AFFINITY
from webhook.core.placement import PREFERRED, REQUIRED, names_nodes, required_terms

_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class Steering:
    """Where to: a label key, the values of the classes to keep, and of those to avoid."""

    key: str
    keep: tuple[str, ...]
    avoid: tuple[str, ...]

    def added(self, kind: str) -> Mapping[str, Any]:
        """Return what stands in the pod: an expression in each required term, or a preferred term."""
        if kind == REQUIRED:
            return {"key": self.key, "operator": "NotIn", "values": list(self.avoid)}
        expression = {"key": self.key, "operator": "In", "values": list(self.keep)}
        return {"weight": _WEIGHT, "preference": {"matchExpressions": [expression]}}


def steering(pod: Pod, keep: Sequence[NodeClass], avoid: Sequence[NodeClass], *, complete: bool) -> Steering | None:
    """Return how to tell the classes apart, None where nothing can or need be done.

    The key must be stated by all of them with values that only one side has, and be a selector's key of all those to avoid.
    Without `complete` other nodes may exist that share a label with a described class; then nothing but the key may be in the
    selectors of the classes to avoid.
    """
    if not keep or not avoid or names_nodes(pod) or required_terms(pod) == ():
        return None
    for key in sorted(set[str]().union(*(each.selector for each in avoid))):
        good, bad = _values(keep, key), _values(avoid, key)
        if good is None or bad is None or good & bad or not all(key in each.selector for each in avoid):
            continue
        if complete or all(set(each.selector) == {key} for each in avoid):
            return Steering(key, tuple(sorted(good)), tuple(sorted(bad)))
    return None


def _values(classes: Iterable[NodeClass], key: str) -> set[str] | None:
    values = [each.selector.get(key, each.labels.get(key)) for each in classes]
    return None if None in values else {value for value in values if value is not None}


def steered(pod: Pod, way: Steering, kind: str) -> Pod:
    """Return the pod with the affinity: ANDed into every required term, or as one more preferred term.

    An empty required term matches nothing, and stays so.
    """
    path = (*NODE_AFFINITY, kind)
    if kind == PREFERRED:
        return put(pod, path, [*(get(pod, path) or ()), way.added(kind)])
    ours = way.added(REQUIRED)
    terms = required_terms(pod)
    added = [{"matchExpressions": [ours]}] if terms is None else [_anded(term, ours) for term in terms]
    return put(pod, (*path, "nodeSelectorTerms"), added)


def _anded(term: Mapping[str, Any], ours: Mapping[str, Any]) -> Mapping[str, Any]:
    expressions = term.get("matchExpressions")
    return {**term, "matchExpressions": [*expressions, ours]} if expressions else term

"""Which node classes a pod can land on, as far as its own words say (DESIGN section 4.2).

Three-valued: a class states only some labels of its nodes. A label that it does not state may have any value or be absent, so
what hangs on it is *unknown*, and unknown never excludes a class.

Rules: `component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go`, `apimachinery/pkg/labels/selector.go`,
`api/core/v1/toleration.go`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from webhook.core.containers import Pod
from webhook.core.model import NodeClass, Taint

Tri = bool | None
"""True, False, or None for unknown."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_INTEGER = re.compile(r"[+-]?\d{1,19}")
_DECIMAL_INTEGER = re.compile(r"0|-?[1-9]\d{0,18}")
_MAX_ALTERNATIVES = 64


def selected(pod: Pod, node_class: NodeClass) -> Tri:
    """Tell whether nodeSelector and required node affinity let the pod onto the class's nodes."""
    labels = {**node_class.labels, **node_class.selector}
    spec = pod["spec"]
    return _all(
        [
            _all(_equal(labels, key, value) for key, value in (spec.get("nodeSelector") or {}).items()),
            _any_term(required_terms(pod), labels),
        ]
    )


def tolerated(pod: Pod, taints: Iterable[Taint]) -> bool:
    """Tell whether the pod bears a class's taints. With nodeName no scheduler looks, and the kubelet minds NoExecute only."""
    effects = {"NoExecute"} if pod["spec"].get("nodeName") else {"NoExecute", "NoSchedule"}
    tolerations = pod["spec"].get("tolerations") or ()
    return all(any(_tolerates(each, taint) for each in tolerations) for taint in taints if taint.effect in effects)


def can_land(pod: Pod, node_class: NodeClass) -> bool:
    """Tell whether a node of the class may take the pod, its devices left aside. A nodeName says nothing about the class."""
    return selected(pod, node_class) is not False and tolerated(pod, node_class.taints)


def required_terms(pod: Pod) -> Sequence[Mapping[str, Any]] | None:
    """Return the terms of the required node affinity, ORed; None: the pod has none, an empty sequence matches nothing."""
    required = node_affinity(pod).get(REQUIRED)
    return None if required is None else required.get("nodeSelectorTerms") or ()


def node_affinity(pod: Pod) -> Mapping[str, Any]:
    """Return the pod's node affinity, empty where it has none."""
    return (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}


def names_nodes(pod: Pod) -> bool:
    """Tell whether the pod picks nodes by name: nodeName, or matchFields as the pods of a DaemonSet have."""
    return bool(pod["spec"].get("nodeName")) or any(term.get("matchFields") for term in required_terms(pod) or ())


def implies_a_class(pod: Pod, classes: Iterable[NodeClass]) -> bool:
    """Tell whether whatever node the pod's own required selectors allow carries the selector of one of the classes.

    This is what coverage `partial` asks before it believes that the pod can land nowhere else.
    """
    selectors = [node_class.selector for node_class in classes if node_class.selector]
    fixed = pod["spec"].get("nodeSelector") or {}
    terms = required_terms(pod)
    if terms is None:
        return _implied(fixed, selectors)
    live = [term for term in terms if not _is_empty(term)]
    return bool(live) and all(_term_implies(term, fixed, selectors) for term in live)


def _term_implies(term: Mapping[str, Any], fixed: Mapping[str, str], selectors: list[Mapping[str, str]]) -> bool:
    """Each combination of the values that the term's In expressions leave must carry some selector."""
    choices = [
        [(expression["key"], value) for value in expression.get("values") or ()]
        for expression in term.get("matchExpressions") or ()
        if expression["operator"] == "In"
    ]
    alternatives = list(islice(product(*choices), _MAX_ALTERNATIVES + 1))
    if len(alternatives) > _MAX_ALTERNATIVES:
        return False
    return all(_implied({**dict(pairs), **fixed}, selectors) for pairs in alternatives)


def _implied(labels: Mapping[str, str], selectors: list[Mapping[str, str]]) -> bool:
    return any(all(labels.get(key) == value for key, value in selector.items()) for selector in selectors)


def _any_term(terms: Sequence[Mapping[str, Any]] | None, labels: Mapping[str, str]) -> Tri:
    return True if terms is None else _any(_term(term, labels) for term in terms)


def _term(term: Mapping[str, Any], labels: Mapping[str, str]) -> Tri:
    if _is_empty(term):
        return False
    return _all([*_fields(term), *(_expression(each, labels) for each in term.get("matchExpressions") or ())])


def _is_empty(term: Mapping[str, Any]) -> bool:
    return not term.get("matchExpressions") and not term.get("matchFields")


def _fields(term: Mapping[str, Any]) -> Iterator[Tri]:
    """The only field is metadata.name, and a class says nothing about its nodes' names."""
    return (None for _ in term.get("matchFields") or ())


def _expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> Tri:
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or ()
    if key not in labels:
        return None
    match operator:
        case "In":
            return labels[key] in values
        case "NotIn":
            return labels[key] not in values
        case "Exists":
            return True
        case "DoesNotExist":
            return False
        case "Gt" | "Lt":
            return _compare(labels[key], operator, values)
    # No operator of ours: the API server refuses the pod, or knows more than we do.
    return None


def _compare(label: str, operator: str, values: Sequence[str]) -> bool:
    if len(values) != 1 or not _INTEGER.fullmatch(label) or not _INTEGER.fullmatch(values[0]):
        return False
    return int(label) > int(values[0]) if operator == "Gt" else int(label) < int(values[0])


def _equal(labels: Mapping[str, str], key: str, value: str) -> Tri:
    return labels[key] == value if key in labels else None


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    effect, key, value = toleration.get("effect"), toleration.get("key"), toleration.get("value") or ""
    if (effect and effect != taint.effect) or (key and key != taint.key):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(value == taint.value)
        case "Gt" | "Lt" as operator if _DECIMAL_INTEGER.fullmatch(value) and _DECIMAL_INTEGER.fullmatch(taint.value):
            # Off by default until its gate is on; a class cannot say so, and unknown does not exclude.
            return int(taint.value) > int(value) if operator == "Gt" else int(taint.value) < int(value)
    return False


def _all(values: Iterable[Tri]) -> Tri:
    result: Tri = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def _any(values: Iterable[Tri]) -> Tri:
    result: Tri = False
    for value in values:
        if value:
            return True
        if value is None:
            result = None
    return result

"""Whatever JSON comes, there is an answer: pods with any part replaced by anything."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.worlds import PODS, world
from webhook.core import decide
from webhook.core.decision import Request

KNOWN = world(7)
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "a", "1", "-1", "0.5", "1e400", "Always", "In"])
)
_KEYS = st.sampled_from(
    ["name", "limits", "requests", "cpu", "memory", "nvidia.com/gpu", "key", "operator", "values", "resources"]
)
_ANYTHING = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=12
)


def _places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(place for step, child in inside for place in _places(child, (*path, step)))]


def _replaced(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made = copy.copy(node)
    made[path[0]] = _replaced(node[path[0]], path[1:], value)
    return made


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(PODS, st.lists(st.tuples(st.integers(0, 10_000), _ANYTHING), min_size=1, max_size=3), st.sampled_from(["strict", "audit"]))
def test_any_part_may_be_anything(pod: Any, changes: list[tuple[int, Any]], mode: str) -> None:
    for where, value in changes:
        places = _places(pod)
        pod = _replaced(pod, places[where % len(places)], value)
    for handler in (decide.mutate, decide.validate, decide.advise):
        decision = handler(pod, Request(label=mode, namespace="a"), KNOWN)
        assert decision.allowed or decision.message
        assert all(len(warning) < 120 for warning in decision.warnings)
    resized = decide.validate(pod, Request(label=mode, old=pod), KNOWN)
    assert resized.allowed

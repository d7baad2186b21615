"""The promise about LimitRanges, over random pods, sets of node classes and bounds."""

from __future__ import annotations

from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from tests.property.test_promises import common
from tests.property.worlds import PODS, SEEDS, world
from tests.unit.core.setting import JSON
from webhook.core import decide
from webhook.core.decision import Decision, Request
from webhook.core.limitranges import breaches, limits_of
from webhook.core.snapshot import Snapshot

AMOUNTS = {
    "cpu": st.sampled_from(["500m", "1", "2", "3", "4", "7500m", "12", "16", "40"]),
    "memory": st.sampled_from(["512Mi", "1Gi", "3Gi", "8Gi", "20Gi", "64Gi", "200Gi"]),
}
RATIOS = dict.fromkeys(AMOUNTS, st.sampled_from(["1", "1500m", "2", "10"]))


def item(type_: str) -> st.SearchStrategy[JSON]:
    most = st.fixed_dictionaries({}, optional=AMOUNTS)
    ratio = st.fixed_dictionaries({}, optional=RATIOS)
    return st.fixed_dictionaries({"type": st.just(type_)}, optional={"max": most, "min": most, "maxLimitRequestRatio": ratio})


ITEMS = st.lists(st.one_of(item("Pod"), item("Container")), min_size=1, max_size=3)
MODES = st.sampled_from(["strict", "best-effort"])


def mutated(pod: JSON, known: Snapshot, mode: str) -> tuple[JSON, Decision]:
    decision = decide.mutate(pod, Request("team", label=mode), known)
    return jsonpatch.apply_patch(pod, list(decision.patch)), decision


def bounded(seed: int, items: list[Any]) -> Snapshot:
    return world(seed).knowing(limits_of([{"metadata": {"namespace": "team", "name": "bounds"}, "spec": {"limits": items}}]))


@common
@given(PODS, SEEDS, MODES, ITEMS)
def test_what_they_accept_as_written_they_accept_shaped(pod: JSON, seed: int, mode: str, items: list[Any]) -> None:
    known = bounded(seed, items)
    bounds = known.limits.get("team", ())
    made, decision = mutated(pod, known, mode)
    assert breaches(made, bounds) <= breaches(pod, bounds)
    assert mutated(made, known, mode)[1].patch == ()
    assert all(len(warning) < 120 for warning in decision.warnings)


@common
@given(PODS, SEEDS, MODES, ITEMS)
def test_what_is_aligned_without_them_is_aligned_or_said_to_be_held_by_them(
    pod: JSON, seed: int, mode: str, items: list[Any]
) -> None:
    known = bounded(seed, items)
    bounds = known.limits.get("team", ())
    free, _ = mutated(pod, world(seed), mode)
    made, decision = mutated(pod, known, mode)
    if breaches(free, bounds) <= breaches(pod, bounds):
        assert made == free
    elif made == pod:
        assert any("not shaped: LimitRange team/bounds: " in warning for warning in decision.warnings)
    else:
        assert any("less than its share: LimitRange team/bounds: " in warning for warning in decision.warnings)

"""The promises of the mutation, over random pods and sets of node classes."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.property.worlds import MODES, PODS, SEEDS, SIDECARS, world
from tests.unit.core.setting import JSON, mutated, validated
from webhook.core import judging, placement
from webhook.core.accelerators import asks
from webhook.core.containers import visit
from webhook.core.edit import get, put
from webhook.core.kubelet import admit
from webhook.core.patch import INJECTED
from webhook.core.quantities import parse
from webhook.core.snapshot import Snapshot

EXAMPLES = int(os.environ.get("NUMALIGN_EXAMPLES", "0"))
"""More examples than usual, and others each time; 0: the usual ones."""

common = settings(
    max_examples=EXAMPLES or 60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not EXAMPLES,
    database=None,
)


@common
@given(PODS, SEEDS, MODES)
def test_idempotent(pod: JSON, seed: int, mode: str) -> None:
    known = world(seed)
    once, _ = mutated(pod, known, mode)
    twice, decision = mutated(once, known, mode)
    assert decision.patch == ()
    assert twice == once


@common
@given(PODS, SEEDS, MODES, SIDECARS, st.sampled_from(["first", "last", "init"]))
def test_a_sidecar_that_comes_in_between_changes_nothing_but_itself(
    pod: JSON, seed: int, mode: str, sidecar: JSON, where: str
) -> None:
    known = world(seed)
    once, _ = mutated(pod, known, mode)
    again, _ = mutated(_with(once, sidecar, where), known, mode)
    at_once, _ = mutated(_with(pod, sidecar, where), known, mode)
    assert _settled(again) == _settled(at_once)
    assert mutated(again, known, mode)[1].patch == ()


def _with(pod: JSON, sidecar: JSON, where: str) -> JSON:
    made = copy.deepcopy(pod)
    if where == "init":
        made["spec"]["initContainers"] = [sidecar | {"restartPolicy": "Always"}, *made["spec"].get("initContainers", [])]
    else:
        at = 0 if where == "first" else len(made["spec"]["containers"])
        made["spec"]["containers"].insert(at, sidecar)
    return made


def _settled(node: Any) -> Any:
    """Leave out what is empty: objects made on the way to a value stay when it is taken back."""
    if isinstance(node, dict):
        return {key: value for key, each in node.items() if (value := _settled(each)) not in ({}, [], None)}
    return [_settled(each) for each in node] if isinstance(node, list) else node


@common
@given(PODS, SEEDS, MODES)
def test_never_worse_on_any_class(pod: JSON, seed: int, mode: str) -> None:
    known = world(seed)
    made, _ = mutated(pod, known, mode)
    _assert_not_worse(pod, made, known)


@common
@given(PODS, SEEDS, MODES, st.dictionaries(st.integers(0, 5), st.sampled_from([None, "1", "1Gi", "100Gi"]), max_size=4))
def test_never_worse_whatever_a_record_says(pod: JSON, seed: int, mode: str, lies: dict[int, str | None]) -> None:
    known = world(seed)
    made, _ = mutated(pod, known, mode)
    text = get(made, ("metadata", "annotations", INJECTED))
    assume(text is not None)
    entries = json.loads(text)
    keys = sorted(entries)
    for index, theirs in lies.items():
        entries[keys[index % len(keys)]][0] = theirs
    forged = put(made, ("metadata", "annotations", INJECTED), json.dumps(entries))
    _assert_not_worse(forged, mutated(forged, known, mode)[0], known)


def _assert_not_worse(before: JSON, after: JSON, known: Snapshot) -> None:
    wanted = asks(before, known.catalogue)
    for each in judging.candidates(before, wanted, known):
        was = admit.judge(each.node, judging.completed_by_hami(before, wanted))
        kept_off = placement.selected(after, each.node.node_class) is False
        if was.surely_admitted and not kept_off:
            verdict = admit.judge(each.node, judging.completed_by_hami(after, wanted))
            assert verdict.surely_admitted, (each.name, verdict)


@common
@given(PODS, SEEDS, MODES, st.randoms(use_true_random=False))
def test_independent_of_the_order_of_dicts_and_classes(pod: JSON, seed: int, mode: str, random: Any) -> None:
    known = world(seed)
    classes = list(known.classes)
    random.shuffle(classes)
    one, first = mutated(pod, known, mode)
    other, second = mutated(_shuffled(pod, random), Snapshot(known.policy, known.catalogue, tuple(classes)), mode)
    assert one == other
    assert list(first.verdicts) == list(second.verdicts)
    assert (first.outcome, first.warnings) == (second.outcome, second.warnings)


def _shuffled(node: Any, random: Any) -> Any:
    if isinstance(node, dict):
        items = [(key, _shuffled(value, random)) for key, value in node.items()]
        random.shuffle(items)
        return dict(items)
    return [_shuffled(each, random) for each in node] if isinstance(node, list) else node


@common
@given(PODS, SEEDS, MODES)
def test_nothing_else_ever_changes(pod: JSON, seed: int, mode: str) -> None:
    known = world(seed)
    made, _ = mutated(pod, known, mode)
    assert _others(made) == _others(pod)


def _others(pod: JSON) -> Any:
    """The pod without what we may change."""
    rest = copy.deepcopy(pod)
    annotations = rest["metadata"].pop("annotations", None) or {}
    ours = {"numalign.io/injected", "numalign.io/verdict", "hami.io/numa-alignment"}
    rest["metadata"]["annotations"] = {key: value for key, value in annotations.items() if key not in ours}
    (rest["spec"].get("affinity") or {}).pop("nodeAffinity", None)
    owners = [rest["spec"], *rest["spec"]["containers"], *rest["spec"].get("initContainers", [])]
    for owner in owners:
        resources = owner.pop("resources", None) or {}
        owner["devices"] = {
            side: {name: value for name, value in (resources.get(side) or {}).items() if "/" in name}
            for side in ("requests", "limits")
        }
    return _settled(rest)


@common
@given(PODS, SEEDS, MODES)
def test_declared_numbers_move_only_as_promised(pod: JSON, seed: int, mode: str) -> None:
    known = world(seed)
    made, _ = mutated(pod, known, mode)
    for before, after in zip(visit(pod), visit(made), strict=True):
        for name in ("memory", "hugepages-1Gi"):
            limit = before.quantities("limits").get(name)
            if limit is not None:
                assert parse(after.quantities("limits")[name]) >= parse(limit)
        _assert_cpu(
            before.quantities("requests"), before.quantities("limits"), after.quantities("limits"), after.quantities("requests")
        )


def _assert_cpu(requests: JSON, limits: JSON, after: JSON, requested: JSON) -> None:
    width = 2 * 10**9  # whole cores of two threads
    limit = limits.get("cpu")
    request = requests.get("cpu", limit)
    if request is not None:
        assert parse(requested.get("cpu", after.get("cpu"))) >= parse(request) - 10**6
    if limit is not None:
        assert parse(after["cpu"]) < max(parse(limit), parse(request)) + width


@common
@given(PODS, SEEDS, MODES)
def test_the_patched_pod_has_the_verdicts_that_the_decision_states(pod: JSON, seed: int, mode: str) -> None:
    known = world(seed)
    made, decision = mutated(pod, known, mode)
    assume(decision.verdicts)
    wanted = asks(made, known.catalogue)
    for each in judging.candidates(made, wanted, known):
        found = judging.judge_all(made, wanted, [each])[each.name]
        assert (found.outcome, found.reason) == (decision.verdicts[each.name].outcome, decision.verdicts[each.name].reason)


@common
@given(PODS, SEEDS)
def test_strict_refuses_only_what_is_certainly_aligned_nowhere(pod: JSON, seed: int) -> None:
    known = world(seed)
    made, decision = mutated(pod, known)
    answer = validated(made, known)
    outcomes = {str(verdict.outcome) for verdict in answer.verdicts.values()}
    if not answer.allowed:
        assert "unknown" not in outcomes
        assert "aligned" not in outcomes or known.policy.require_enforcement
        assert answer.message
        assert answer.causes
    if any(verdict.outcome == "aligned" for verdict in decision.verdicts.values()) and not known.policy.require_enforcement:
        assert answer.allowed
    assert all(len(warning) < 120 for warning in (*decision.warnings, *answer.warnings))

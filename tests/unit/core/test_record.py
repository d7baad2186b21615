"""Our record: what it says, that undoing it gives the author's pod back, and that no forgery hurts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.setting import JSON, SINGLE, bare, kubelet, m128, mutated, named, pod, snapshot
from webhook.core import record
from webhook.core.edit import get, put
from webhook.core.patch import INJECTED, VERDICT, operations
from webhook.core.wellformed import problems

KNOWN = snapshot(named(m128(kubelet(SINGLE)), "a"))
AUTHOR = pod(bare(), bare("side", gpu=None, requests={"cpu": "100m"}))
ANNOTATION = ("metadata", "annotations", INJECTED)


def recorded(made: JSON) -> dict[str, Any]:
    return json.loads(get(made, ANNOTATION))


def with_record(made: JSON, entries: Any) -> JSON:
    return put(made, ANNOTATION, entries if isinstance(entries, str) else json.dumps(entries))


def test_says_path_author_and_ours() -> None:
    made, _ = mutated(AUTHOR, KNOWN)
    found = recorded(made)
    assert found["/spec/containers/main/resources/limits/cpu"] == [None, "15"]
    assert found["/spec/containers/side/resources/limits/cpu"] == [None, "100m"]
    assert "/spec/containers/side/resources/requests/cpu" not in found, "that one did not change"
    assert get(made, ("metadata", "annotations", VERDICT)) == "aligned on a"


def test_undone_it_is_the_authors_pod_again() -> None:
    made, _ = mutated(AUTHOR, KNOWN)
    undone = record.undo(made)
    assert undone.recorded
    assert not undone.warning
    assert operations(AUTHOR, undone.pod) == ()


def test_finds_containers_by_name_when_another_webhook_shifted_them() -> None:
    made, _ = mutated(AUTHOR, KNOWN)
    shifted = put(made, ("spec", "containers"), [bare("proxy", gpu=None), *made["spec"]["containers"]])
    undone = record.undo(shifted).pod
    assert [get(undone, ("spec", "containers", i, "resources", "limits", "cpu")) for i in range(3)] == [None, None, None]


def test_what_somebody_else_changed_since_stays() -> None:
    made, _ = mutated(AUTHOR, KNOWN)
    changed = put(made, ("spec", "containers", 0, "resources", "limits", "cpu"), "20")
    assert get(record.undo(changed).pod, ("spec", "containers", 0, "resources", "limits", "cpu")) == "20"


def test_a_value_in_canonical_form_is_still_ours() -> None:
    made = with_record(pod(bare(limits={"cpu": "2"})), {"/spec/containers/main/resources/limits/cpu": [None, "2000m"]})
    assert get(record.undo(made).pod, ("spec", "containers", 0, "resources", "limits", "cpu")) is None


FIXED = pod(bare(limits={"cpu": "2", "memory": "4Gi"}, requests={"cpu": "2", "memory": "4Gi"}))


@pytest.mark.parametrize(
    "entries",
    [
        "",
        "no JSON",
        "[" * 100_000,
        "[]",
        "{}",
        "null",
        {"/spec/containers/main/resources/limits/cpu": "2"},
        {"/spec/containers/main/resources/limits/cpu": [None]},
        # what we never write: another memory limit, other resources, other fields, values that are none
        {"/spec/containers/main/resources/limits/memory": ["1Mi", "4Gi"]},
        {"/spec/containers/main/resources/limits/nvidia.com~1gpu": [None, "1"]},
        {"/spec/containers/main/image": ["evil", "registry.example/work"]},
        {"/metadata/labels/a": [None, "b"]},
        {"/spec/containers/main/resources/limits/cpu": ["-3", "2"]},
        {"/spec/containers/main/resources/limits/cpu": [{}, "2"]},
        {"/spec/containers/main/resources/limits/cpu": [None, {}]},
        {"/metadata/annotations/hami.io~1numa-alignment": ["x", "strict"]},
        {"/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution": [None, "x"]},
        {"/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution": [None, [[{"operator": "In"}]]]},
        # what would leave a request above its limit
        {"/spec/containers/main/resources/requests/cpu": ["9", "2"]},
    ],
)
def test_forged_and_broken_records_change_nothing_and_are_named(entries: Any) -> None:
    forged = with_record(FIXED, entries)
    undone = record.undo(forged)
    assert undone.warning
    assert undone.pod["spec"] == FIXED["spec"]


def test_a_record_that_is_no_text_is_ignored() -> None:
    assert record.undo(put(FIXED, ANNOTATION, ["x"])).warning


def test_a_container_that_went_away_is_no_forgery() -> None:
    gone = with_record(FIXED, {"/spec/containers/gone/resources/limits/cpu": [None, "2"]})
    assert record.undo(gone).warning == ""


_VALUES = st.none() | st.sampled_from(["1", "2", "4Gi", "8Gi", "x", 3, {}, [[{"operator": "NotIn"}]]])
_PATHS = st.sampled_from(
    [
        "/spec/containers/main/resources/limits/cpu",
        "/spec/containers/main/resources/requests/cpu",
        "/spec/containers/main/resources/limits/memory",
        "/spec/containers/main/resources/requests/memory",
        "/spec/containers/main/resources/requests/hugepages-1Gi",
        "/spec/resources/limits/cpu",
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
        "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution",
        "/metadata/annotations/hami.io~1numa-alignment",
        "/spec/containers/main",
        "",
        "/",
    ]
)


@given(st.dictionaries(_PATHS, st.lists(_VALUES, min_size=1, max_size=3), min_size=1))
def test_undoing_any_record_leaves_a_pod_that_can_be_judged(entries: dict[str, Any]) -> None:
    assert problems(record.undo(with_record(FIXED, entries)).pod) == ()

"""From before and after to RFC 6902: only our own paths, parents made once, pointers escaped."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest

from webhook.core.edit import drop, get, put
from webhook.core.patch import operations, pointer

BARE: dict[str, Any] = {"spec": {"containers": [{"name": "a"}, {"name": "b", "resources": None}]}}


def test_pointers_are_escaped() -> None:
    assert pointer(("metadata", "annotations", "hami.io/x~y", 0)) == "/metadata/annotations/hami.io~1x~0y/0"


def test_missing_parents_are_made_once_and_in_order() -> None:
    after = put(put(BARE, ("spec", "containers", 0, "resources", "limits", "cpu"), "1"), ("metadata", "annotations"), {})
    after = put(after, ("spec", "containers", 0, "resources", "limits", "memory"), "1Gi")
    assert [(each["op"], each["path"]) for each in operations(BARE, after)] == [
        ("add", "/spec/containers/0/resources"),
        ("add", "/spec/containers/0/resources/limits"),
        ("add", "/spec/containers/0/resources/limits/cpu"),
        ("add", "/spec/containers/0/resources/limits/memory"),
    ]


CHANGES = [
    {("spec", "containers", 1, "resources", "requests", "cpu"): "1"},
    {("spec", "containers", 0, "resources", "limits", "hugepages-1Gi"): "1Gi"},
    {("spec", "resources", "limits", "cpu"): "1", ("spec", "resources", "requests", "cpu"): "1"},
    {("metadata", "annotations", "numalign.io/injected"): "{}", ("metadata", "annotations", "numalign.io/verdict"): "x"},
    {("metadata", "annotations", "hami.io/numa-alignment"): "strict"},
    {("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"): {"nodeSelectorTerms": []}},
    {("spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"): [{"weight": 1}]},
]


@pytest.mark.parametrize("wanted", CHANGES)
@pytest.mark.parametrize(
    "before", [BARE, BARE | {"metadata": None}, BARE | {"metadata": {"annotations": None, "name": "x"}}, BARE | {"metadata": {}}]
)
def test_applied_it_gives_the_intended_pod(before: dict[str, Any], wanted: dict[Any, Any]) -> None:
    after = before
    for path, value in wanted.items():
        after = put(after, path, value)
    forth, back = operations(before, after), operations(after, before)
    assert jsonpatch.apply_patch(before, list(forth)) == after
    restored = jsonpatch.apply_patch(after, list(back))
    assert all(get(restored, path) == get(before, path) for path in wanted)


def test_what_is_not_ours_never_comes_into_a_patch() -> None:
    after = put(BARE, ("spec", "schedulerName"), "x")
    after = put(after, ("metadata", "annotations", "other"), "x")
    after = put(after, ("spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"), "1")
    assert operations(BARE, after) == ()


def test_an_edit_leaves_the_original_and_shares_the_rest() -> None:
    before = {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "volumes": []}}
    after = put(before, ("spec", "containers", 0, "resources", "limits", "cpu"), "1")
    assert before == {"spec": {"containers": [{"name": "a"}, {"name": "b"}], "volumes": []}}
    assert after["spec"]["containers"][1] is before["spec"]["containers"][1]
    assert get(drop(after, ("spec", "containers", 0, "resources", "limits", "cpu")), ("spec", "containers", 0, "resources")) == {
        "limits": {}
    }
    assert drop(before, ("metadata", "annotations", "x")) is before

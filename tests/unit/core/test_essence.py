"""What is remembered, and by what."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest

from tests.unit.core.setting import SINGLE, bare, kubelet, m112, mutated, named, pod, snapshot
from webhook.core.edit import put
from webhook.core.essence import essence
from webhook.core.memo import Memo

KNOWN = snapshot(named(m112(kubelet(SINGLE)), "a"))


def test_only_what_decisions_read() -> None:
    made = pod(bare(env=[{"name": "A"}], volumeMounts=[{"name": "shm", "mountPath": "/x"}, {"name": "data", "mountPath": "/y"}]))
    made["metadata"] |= {"labels": {"app": "x", "hami.io/webhook": "ignore"}, "annotations": {"a": "b"}, "uid": "1"}
    made["spec"] |= {
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}, {"name": "data", "hostPath": {}}],
        "affinity": {"podAffinity": {}, "nodeAffinity": {}},
        "serviceAccountName": "x",
    }
    assert essence(made) == {
        "metadata": {"annotations": {}, "labels": {"hami.io/webhook": "ignore"}},
        "spec": {
            "containers": [
                {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}, "volumeMounts": [{"name": "shm"}]},
            ],
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
            "affinity": {"nodeAffinity": {}},
        },
    }


SHAPES: list[dict[str, Any]] = [
    pod(bare()),
    put(pod(bare()), ("metadata", "annotations"), None),
    put(pod(bare()), ("metadata", "annotations"), {"a": "b"}),
    {"spec": pod(bare())["spec"]},
    put(pod(bare()), ("metadata",), None),
    put(pod(bare()), ("spec", "initContainers"), None),
    put(pod(bare()), ("spec", "affinity"), {"podAffinity": {"a": 1}}),
    put(pod(bare()), ("spec", "containers", 0, "resources", "requests"), None),
    pod(bare("first", gpu=None, resources=None), bare()),
]


@pytest.mark.parametrize("made", SHAPES)
def test_a_patch_for_the_essence_is_a_patch_for_the_pod(made: dict[str, Any]) -> None:
    before = json.loads(json.dumps(made))
    final, decision = mutated(made, KNOWN)
    assert made == before
    assert decision.outcome == "mutated"
    assert jsonpatch.apply_patch(essence(made), list(decision.patch)) == essence(final)


def test_a_memory_of_two() -> None:
    memo: Memo[int] = Memo(2)
    made: list[str] = []

    def number(key: str) -> int:
        return memo.get(key, lambda: made.append(key) or len(made))

    assert [number(key) for key in "aabacab"] == [1, 1, 2, 1, 3, 1, 4]
    assert made == ["a", "b", "c", "b"]

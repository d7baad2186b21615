"""What the API server refuses of a pod's resources."""

from typing import Any

import pytest

from webhook.core.kubelet.contract import Refusal
from webhook.core.kubelet.view import view

JSON = dict[str, Any]
EQUAL = {"limits": {"cpu": "1", "memory": "1Gi"}}
GPU = "nvidia.com/gpu"


def one(limits: JSON | None = None, requests: JSON | None = None, **container: Any) -> JSON:
    return {"spec": {"containers": [{"name": "main", "resources": {"limits": limits, "requests": requests}, **container}]}}


def two(first: str, second: str, field: str = "containers") -> JSON:
    if field == "containers":
        return {"spec": {"containers": [{"name": first}, {"name": second}]}}
    return {"spec": {field: [{"name": first}], "containers": [{"name": second}]}}


def pod_level(resources: JSON, **limits: str) -> JSON:
    return {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}], "resources": resources}}


def problem(pod: JSON, minor: int = 37) -> str | None:
    found = view(pod, minor)
    return found.message if isinstance(found, Refusal) else None


@pytest.mark.parametrize(
    "pod",
    [
        one({"cpu": "2"}, {"cpu": "1"}),
        one({GPU: "1"}),
        one({GPU: 0, "cpu": "0"}),
        one({"hugepages-1Gi": "2Gi", "cpu": "1"}),
        one({"kubernetes.io/batch": "1"}),
        one({"ephemeral-storage": "1Gi"}, {"ephemeral-storage": "1Mi"}),
        one({GPU: "1000m"}),
        one({GPU: "20E"}),
        one({"cpu": "1", "memory": "20000000000000000001"}, {"memory": "10E"}),
        two("a", "b"),
        pod_level({"limits": {"cpu": "2", "memory": "2Gi"}}, cpu="2", memory="1Gi"),
        pod_level({}),
        one(EQUAL["limits"], restartPolicy="Never"),
    ],
)
def test_accepted(pod: JSON):
    assert problem(pod) is None


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        (one({"cpu": "1"}, {"cpu": "2"}), "spec.containers[0].resources.requests[cpu]"),
        (one({GPU: "2"}, {GPU: "1"}), f"spec.containers[0].resources.requests[{GPU}]"),
        (one(None, {GPU: "1"}), f"spec.containers[0].resources.limits[{GPU}]"),
        (one({GPU: "1.5"}), f"spec.containers[0].resources.limits[{GPU}]"),
        # the API server looks at thousandths, and of so many an int64 holds the lowest bits only
        (one({GPU: "20000000000000000001"}), f"spec.containers[0].resources.limits[{GPU}]"),
        (one({"cpu": "-1"}), "spec.containers[0].resources.limits[cpu]"),
        (one({"hugepages-1Gi": "1Gi"}), "spec.containers[0].resources"),
        (one({"hugepages-1Gi": "512Mi", "cpu": "1"}), "spec.containers[0].resources.limits[hugepages-1Gi]"),
        (one({"hugepages-odd": "0", "cpu": "1"}), "spec.containers[0].resources.limits[hugepages-odd]"),
        (
            one({"hugepages-1Gi": "2Gi", "cpu": "1"}, {"hugepages-1Gi": "1Gi"}),
            "spec.containers[0].resources.requests[hugepages-1Gi]",
        ),
        (one({"gpus": "1"}), "spec.containers[0].resources.limits[gpus]"),
        (one({"bad name": "1"}), "spec.containers[0].resources.limits[bad name]"),
        (one({"requests.example.com/a": "1"}), "spec.containers[0].resources.limits[requests.example.com/a]"),
        (one({"Upper.example.com/a": "1"}), "spec.containers[0].resources.limits[Upper.example.com/a]"),
        (two("a", "a"), "spec.containers[1].name"),
        (two("a", "a", "initContainers"), "spec.containers[0].name"),
        (two("Upper", "b"), "spec.containers[0].name"),
        (two("", "b"), "spec.containers[0].name"),
        ({"spec": {"initContainers": [{"name": "i"}], "containers": [{"name": "a"}, {"name": "B"}]}}, "spec.containers[1].name"),
        ({"spec": {"containers": []}}, "spec.containers"),
        (one(restartPolicy="Sometimes"), "spec.containers[0].restartPolicy"),
        (pod_level({"limits": {GPU: "1"}}), f"spec.resources.limits[{GPU}]"),
        (pod_level({"limits": {"ephemeral-storage": "1"}}), "spec.resources.limits[ephemeral-storage]"),
        (pod_level({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}), "spec.resources.requests[cpu]"),
        (pod_level({"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}, cpu="2"), "spec.resources.requests[cpu]"),
        (pod_level({"limits": {"cpu": "1", "memory": "4Gi"}}, memory="1Gi", cpu="2"), "spec.resources.requests[cpu]"),
        (
            pod_level({"limits": {"cpu": "4", "hugepages-1Gi": "1Gi"}}, **{"cpu": "1", "hugepages-1Gi": "2Gi"}),
            "spec.resources.requests[hugepages-1Gi]",
        ),
        ({"spec": {"containers": [{"name": "main"}], "overhead": {"gpus": "1"}}}, "spec.overhead.limits[gpus]"),
    ],
)
def test_refused(pod: JSON, path: str):
    found = problem(pod)

    assert found is not None
    assert found.startswith(path)


def test_a_limit_may_not_exceed_the_pods():
    raw = pod_level({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})
    raw["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}

    assert (problem(raw) or "").startswith("spec.containers[0].resources.limits[cpu]")


def test_unknown_restart_policies_were_dropped_before_1_35():
    assert problem(one(restartPolicy="Sometimes"), 34) is None

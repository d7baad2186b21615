"""What makes a pod unusable for us, with the path; and that nothing raises, whatever comes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.setting import GPU
from webhook.core.wellformed import problems


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main"}]} | fields}


def resources(**sides: Any) -> dict[str, Any]:
    return spec(containers=[{"name": "main", "resources": sides}])


def affinity(required: Any) -> dict[str, Any]:
    return spec(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


def term(**expression: Any) -> dict[str, Any]:
    return affinity({"nodeSelectorTerms": [{"matchExpressions": [expression]}]})


GOOD = [
    spec(),
    spec(initContainers=None, volumes=None, tolerations=None, affinity=None, nodeSelector=None),
    resources(limits={GPU: 1, "cpu": "500m", "memory": "1e3"}, requests={"cpu": 0.25}),
    resources(limits=None, requests={}),
    resources(limits={GPU: "0"}),
    spec(affinity={"nodeAffinity": {}, "podAffinity": "whatever"}),
    term(key="a", operator="Exists"),
    spec(volumes=[{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}, {"name": "x", "hostPath": {}}]),
    {"kind": "Pod"} | spec(),
]

BAD = [
    (None, "object"),
    ([], "object"),
    ({"kind": "Deployment"} | spec(), "kind"),
    ({}, "spec"),
    ({"spec": []}, "spec"),
    ({"metadata": 3} | spec(), "metadata"),
    ({"metadata": {"annotations": ["a"]}} | spec(), "metadata.annotations"),
    ({"metadata": {"labels": "a"}} | spec(), "metadata.labels"),
    ({"spec": {}}, "spec.containers"),
    (spec(containers=[]), "spec.containers"),
    (spec(containers="main"), "spec.containers"),
    (spec(containers={"name": "main"}), "spec.containers"),
    (spec(containers=["main"]), "spec.containers[0]"),
    (spec(containers=[{}]), "spec.containers[0].name"),
    (spec(containers=[{"name": "a"}, {"name": "a"}]), "spec.containers[1].name"),
    (spec(initContainers=[{"name": "main"}]), "spec.containers[0].name"),
    (spec(containers=[{"name": "a", "volumeMounts": "x"}]), "spec.containers[0].volumeMounts"),
    (spec(containers=[{"name": "a", "resources": []}]), "spec.containers[0].resources"),
    (resources(limits=[]), "spec.containers[0].resources.limits"),
    (resources(limits={"cpu": "0.5.1"}), "spec.containers[0].resources.limits.cpu"),
    (resources(limits={"cpu": None}), "spec.containers[0].resources.limits.cpu"),
    (resources(limits={"cpu": {}}), "spec.containers[0].resources.limits.cpu"),
    (resources(limits={"cpu": True}), "spec.containers[0].resources.limits.cpu"),
    (resources(limits={"cpu": "-1"}), "spec.containers[0].resources.limits.cpu"),
    (resources(limits={GPU: "0.5"}), f"spec.containers[0].resources.limits[{GPU}]"),
    (resources(limits={GPU: -1}), f"spec.containers[0].resources.limits[{GPU}]"),
    (resources(limits={GPU: 1}, requests={GPU: 0}), f"spec.containers[0].resources.requests[{GPU}]"),
    (resources(limits={"cpu": 1}, requests={"cpu": 2}), "spec.containers[0].resources.requests.cpu"),
    (
        resources(limits={"cpu": 1, "hugepages-1Gi": "2Gi"}, requests={"hugepages-1Gi": "1Gi"}),
        "spec.containers[0].resources.requests.hugepages-1Gi",
    ),
    (spec(resources={"limits": {"cpu": "x"}}), "spec.resources.limits.cpu"),
    (spec(overhead={"cpu": "x"}), "spec.overhead.cpu"),
    (spec(nodeSelector={"a": 1}), "spec.nodeSelector.a"),
    (spec(nodeName=1), "spec.nodeName"),
    # YAML's keys are not always texts
    (resources(limits={1: "2"}), "spec.containers[0].resources.limits.1"),
    (spec(nodeSelector={True: "a"}), "spec.nodeSelector"),
    (spec(runtimeClassName=["a"]), "spec.runtimeClassName"),
    (spec(os="linux"), "spec.os"),
    (spec(tolerations=[{"key": 1}]), "spec.tolerations[0].key"),
    (spec(tolerations=["a"]), "spec.tolerations[0]"),
    (spec(affinity=[]), "spec.affinity"),
    (spec(affinity={"nodeAffinity": 1}), "spec.affinity.nodeAffinity"),
    (affinity([]), "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"),
    (
        term(operator="In"),
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key",
    ),
    (
        term(key="a", operator="In", values="b"),
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values",
    ),
    (spec(volumes=[{"emptyDir": {"sizeLimit": "x"}}]), "spec.volumes[0].emptyDir.sizeLimit"),
    (spec(volumes=[{"emptyDir": 1}]), "spec.volumes[0].emptyDir"),
]


@pytest.mark.parametrize("pod", GOOD)
def test_nothing_wrong(pod: Any) -> None:
    assert problems(pod) == ()


@pytest.mark.parametrize(("pod", "path"), BAD)
def test_wrong_with_its_path(pod: Any, path: str) -> None:
    assert [str(problem).split(": ")[0] for problem in problems(pod)] == [path]


def test_says_what_was_expected() -> None:
    (problem,) = problems(resources(limits={"cpu": "0.5.1"}))
    assert "expected a quantity such as 500m" in problem.message
    assert "'0.5.1'" in problem.message


def test_names_every_problem() -> None:
    assert len(problems(spec(containers=[{"name": "a", "resources": {"limits": {"cpu": "x", "memory": "y"}}}, {}]))) == 3


_KEYS = st.sampled_from(
    [
        "spec",
        "metadata",
        "annotations",
        "containers",
        "initContainers",
        "name",
        "resources",
        "limits",
        "requests",
        "cpu",
        "affinity",
        "nodeAffinity",
        "nodeSelectorTerms",
        "matchExpressions",
        "volumes",
        "emptyDir",
        "tolerations",
        "requiredDuringSchedulingIgnoredDuringExecution",
    ]
)
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=30,
)


@given(_ANY, _ANY)
def test_never_raises(anything: Any, part: Any) -> None:
    problems(anything)
    problems({"spec": part})
    problems({"spec": {"containers": [{"name": "a", "resources": part}], "affinity": part, "volumes": part}})

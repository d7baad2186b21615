"""Pod templates wherever a kind may keep them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.core.containers import field_path
from webhook.core.workloads import templates

SPEC: dict[str, Any] = {"containers": [{"name": "a"}]}
TEMPLATE = {"metadata": {"labels": {}}, "spec": SPEC}


@pytest.mark.parametrize(
    ("workload", "paths"),
    [
        ({"kind": "Pod", "spec": SPEC}, [""]),
        ({"kind": "Deployment", "spec": {"replicas": 1, "template": TEMPLATE}}, ["spec.template"]),
        ({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": TEMPLATE}}}}, ["spec.jobTemplate.spec.template"]),
        (
            {"kind": "JobSet", "spec": {"replicatedJobs": [{"template": {"spec": {"template": TEMPLATE}}}] * 2}},
            ["spec.replicatedJobs[0].template.spec.template", "spec.replicatedJobs[1].template.spec.template"],
        ),
        ({"kind": "InferenceService", "spec": {"predictor": SPEC}}, ["spec.predictor"]),
        (
            {"kind": "PyTorchJob", "spec": {"replicas": {"Worker": {"template": TEMPLATE}, "Master": {"template": TEMPLATE}}}},
            ["spec.replicas.Worker.template", "spec.replicas.Master.template"],
        ),
        ({"kind": "Job", "spec": {"template": {"spec": {"containers": []}}}}, []),
        ({"kind": "ConfigMap", "data": {"containers": "x"}}, []),
        ({"kind": "Node", "status": {"containers": [{"size": 1}]}}, []),
        (None, []),
        ([{"spec": SPEC}], ["[0]"]),
    ],
)
def test_found(workload: Any, paths: list[str]) -> None:
    assert [field_path(found.path) for found in templates(workload)] == paths


def test_a_template_stands_for_a_pod() -> None:
    (found,) = templates({"kind": "Deployment", "spec": {"template": TEMPLATE}})
    assert found.pod == TEMPLATE
    assert found.in_spec
    (made_up,) = templates({"kind": "InferenceService", "spec": {"predictor": SPEC}})
    assert made_up.pod == {"spec": SPEC}
    assert not made_up.in_spec


def test_the_kind_around_it_is_not_taken_for_the_pod_s() -> None:
    (found,) = templates({"kind": "Service", "spec": SPEC})
    assert "kind" not in found.pod


def test_endless_nesting_ends() -> None:
    nested: Any = {"spec": SPEC}
    for _ in range(10_000):
        nested = {"a": nested}
    assert templates(nested) == ()
    while "a" in nested:
        nested = nested.pop("a")


_ANY = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["spec", "containers", "template", "name"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_ANY)
def test_never_raises(anything: Any) -> None:
    templates(anything)

"""Workloads: advice when they are applied, and what becomes of their pods."""

import pytest

from tests.e2e.controlplane.plane import until
from tests.e2e.rig.cluster import pod

LABELS = {"app": "work"}


def template(gpus, **spec):
    made = pod("x", gpus, **spec)
    return {"metadata": {"labels": LABELS}, "spec": made["spec"]}


def impossible(**spec):
    return template(8, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, **spec)


def workload(kind, name, pods):
    selector = {"selector": {"matchLabels": LABELS}, "template": pods}
    never = {"template": {**pods, "spec": {**pods["spec"], "restartPolicy": "Never"}}, "backoffLimit": 2}
    versions = {
        "Deployment": ("apps/v1", {"replicas": 2, **selector}),
        "StatefulSet": ("apps/v1", {"replicas": 1, "serviceName": name, **selector}),
        "DaemonSet": ("apps/v1", selector),
        "Job": ("batch/v1", never),
        "CronJob": ("batch/v1", {"schedule": "* * * * *", "suspend": True, "jobTemplate": {"spec": never}}),
    }
    version, spec = versions[kind]
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")


@pytest.fixture
def namespace(plane, cluster, request):  # noqa: ARG001
    name = f"work-{abs(hash(request.node.name)) % 10**8}"
    yield plane.namespace(name)
    plane.must("delete", "namespace", name, "--wait=false")


def apply(plane, namespace, manifest):
    return plane.kubectl("apply", "-n", namespace, "-f", "-", manifest=manifest)


def pods_of(plane, namespace):
    return plane.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]


@pytest.mark.parametrize("kind", KINDS)
def test_applying_an_impossible_workload_warns_and_goes_through(plane, namespace, kind):
    done = apply(plane, namespace, workload(kind, "work", impossible()))
    assert done.code == 0, done.err
    assert "Warning: " in done.err
    assert "dgx-h100" in done.err


@pytest.mark.parametrize("kind", KINDS)
def test_applying_a_fine_workload_is_quiet_about_refusals(plane, namespace, kind):
    done = apply(plane, namespace, workload(kind, "work", template(1)))
    assert done.code == 0, done.err
    assert "refuse" not in done.err


def test_a_change_that_leaves_the_template_alone_costs_no_call(plane, namespace, cluster):
    apply(plane, namespace, workload("CronJob", "work", template(1)))
    before = cluster.calls(handler="advise")
    plane.must("annotate", "cronjob", "work", "note=1", "-n", namespace)
    assert cluster.calls(handler="advise") == before


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job"])
def test_pods_of_workloads_are_shaped(plane, namespace, kind):
    apply(plane, namespace, workload(kind, "work", template(1)))
    pods = until(lambda: pods_of(plane, namespace), what=f"pods of the {kind}")
    for each in pods:
        given = each["spec"]["containers"][0]["resources"]
        assert given["limits"] == given["requests"]
        assert given["limits"]["cpu"].isdigit()


def test_a_cron_jobs_pod_is_shaped(plane, namespace):
    apply(plane, namespace, workload("CronJob", "work", template(1)))
    plane.must("create", "job", "now", "--from=cronjob/work", "-n", namespace)
    (made,) = until(lambda: pods_of(plane, namespace), what="the job's pod")
    assert made["spec"]["containers"][0]["resources"]["limits"]["cpu"].isdigit()


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job"])
def test_a_refused_pod_is_an_event_of_its_controller_and_no_runaway(plane, namespace, cluster, kind):
    before = cluster.calls(handler="validate", outcome="refused")
    apply(plane, namespace, workload(kind, "work", impossible()))

    def failures():
        events = plane.api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
        return [each for each in events if each["reason"] == "FailedCreate" and "denied the request" in each["message"]]

    (event, *_) = until(failures, what="the controller's event")
    assert "dgx-h100" in event["message"]
    assert pods_of(plane, namespace) == []
    # controllers back off: 5 ms, 10 ms, ... a dozen tries in the first 20 s, not hundreds
    assert cluster.calls(handler="validate", outcome="refused") - before < 40

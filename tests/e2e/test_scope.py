"""Whom the webhook concerns, and how it is switched off."""

import json

import pytest

from tests.e2e.controlplane.plane import until
from tests.e2e.rig.cluster import OVERLAY, pod
from webhook.cluster.errors import ClusterError

MODE = "numalign.io/mode"


@pytest.fixture
def create(plane, cluster):  # noqa: ARG001
    def run(namespace, manifest, *, dry_run=True):
        query = {"dryRun": "All"} if dry_run else {}
        return plane.api.create(f"/api/v1/namespaces/{namespace}/pods", manifest, **query)

    return run


def cpu(obj):
    return obj["spec"]["containers"][0]["resources"].get("requests", {}).get("cpu")


def impossible(name, **spec):
    return pod(name, 8, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, **spec)


def annotated(manifest, mode):
    manifest["metadata"]["annotations"] = {MODE: mode}
    return manifest


def test_pods_without_accelerators_never_reach_us(create, cluster, plane):
    before = cluster.calls()
    for namespace in ("strict", "audit", "default"):
        create(namespace, pod("plain", 0, cpu=1))
    plane.must("create", "deployment", "plain", "--image=example.invalid/web:1", "-n", "strict", "--replicas=3")
    until(lambda: len(plane.api.get("/api/v1/namespaces/strict/pods?labelSelector=app%3Dplain")["items"]) == 3)
    assert cluster.calls() == before
    create("strict", pod("ours"))
    until(lambda: cluster.calls() > before, what="our calls to be counted")


@pytest.mark.parametrize(
    ("namespace", "shaped", "refuses"),
    [
        ("strict", True, True),
        ("best-effort", True, False),
        ("audit", False, False),
        ("off", False, False),
        ("default", True, True),
    ],
)
def test_the_namespaces_label_sets_the_mode(create, namespace, shaped, refuses):
    assert (cpu(create(namespace, pod("one"))) is not None) == shaped
    if refuses:
        with pytest.raises(ClusterError, match="denied the request"):
            create(namespace, impossible("eight"))
    else:
        create(namespace, impossible("eight"))


def test_an_annotation_makes_a_pod_stricter_but_not_laxer(create):
    with pytest.raises(ClusterError, match="denied the request"):
        create("best-effort", annotated(impossible("eight"), "strict"))
    with pytest.raises(ClusterError, match="denied the request"):
        create("strict", annotated(impossible("eight"), "audit"))
    create("off", annotated(impossible("eight"), "strict"))


def test_an_exempt_namespace_is_left_alone(create, plane, cluster):
    plane.namespace("gpu-operator")
    before = cluster.calls()
    for namespace in ("gpu-operator", "kube-system"):
        assert cpu(create(namespace, pod("one"))) is None
    assert cluster.calls() == before


def test_a_label_switches_a_namespace_off_and_on_again(create, plane):
    plane.namespace("switched")
    with pytest.raises(ClusterError, match="denied the request"):
        create("switched", impossible("eight"))
    plane.must("label", "namespace", "switched", f"{MODE}=off")
    until(lambda: _admitted(create, "switched"), what="the label to count")
    plane.must("label", "namespace", "switched", f"{MODE}-")
    until(lambda: not _admitted(create, "switched"), what="its absence to count")


def _admitted(create, namespace):
    try:
        create(namespace, impossible("eight"))
    except ClusterError:
        return False
    return True


def test_the_conditions_cost_little_and_never_fail(plane, create):
    for _ in range(20):
        create("strict", pod("plain", 0, cpu=1))
    text = plane.must("get", "--raw", "/metrics")
    lines = [line for line in text.splitlines() if "match_condition" in line and not line.startswith("#")]
    errors = [line for line in lines if "evaluation_errors_total" in line and not line.endswith(" 0")]
    assert errors == []
    calls = sum(float(line.split()[-1]) for line in lines if "evaluation_seconds_count" in line)
    quick = sum(float(line.split()[-1]) for line in lines if "evaluation_seconds_bucket" in line and 'le="0.001"' in line)
    assert calls > 20
    assert quick / calls > 0.5  # the median; the rest is whatever else this machine does


class TestDown:
    """The server is not reachable at all."""

    @pytest.fixture(scope="class", autouse=True)
    @staticmethod
    def down(plane, cluster):
        cluster.service.stop()
        # connections that are still open would carry on: the API server keeps them for 90 s
        for replica in cluster.replicas:
            replica.stop()
        yield
        for replica in cluster.replicas:
            replica.start()
        cluster.service.start()
        until(lambda: _reached(plane), what="the webhook to be reached again")

    def test_other_pods_are_created_as_ever(self, create):
        for namespace in ("strict", "default", "kube-system"):
            create(namespace, pod("plain", 0, cpu=1))

    def test_strict_waits_for_the_webhook_and_says_so(self, create):
        with pytest.raises(ClusterError, match="failed calling webhook"):
            create("strict", pod("one"))

    @pytest.mark.parametrize("namespace", ["best-effort", "audit", "off"])
    def test_other_modes_admit(self, create, namespace):
        assert cpu(create(namespace, pod("one"))) is None

    def test_workloads_are_applied(self, plane):
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "trains"},
            "spec": {"template": {"spec": {**pod("x")["spec"], "restartPolicy": "Never"}}},
        }
        plane.must("create", "--dry-run=server", "-n", "strict", "-f", "-", manifest=job)

    def test_ignore_lets_gpu_pods_in(self, plane, create, cluster):
        """The emergency switch-off of docs/operations.md, and its way back."""
        entries = [each["name"] for each in cluster.configurations.registered()[1]["webhooks"]]
        patch = {"webhooks": [{"name": name, "failurePolicy": "Ignore"} for name in entries]}
        plane.must("patch", "validatingwebhookconfiguration", "numalign", "-p", json.dumps(patch))
        until(lambda: _admits_gpus(create), what="Ignore to count")
        plane.must("apply", "-k", str(OVERLAY / "webhooks"))
        until(lambda: not _admits_gpus(create), what="Fail to count")

    def test_deleting_the_validating_configuration_lets_gpu_pods_in(self, plane, create):
        plane.must("delete", "validatingwebhookconfiguration", "numalign")
        until(lambda: _admits_gpus(create), what="the webhook to be gone")
        plane.must("apply", "-k", str(OVERLAY / "webhooks"))


def _admits_gpus(create):
    try:
        create("strict", pod("one"))
    except ClusterError:
        return False
    return True


def _reached(plane):
    done = plane.kubectl("create", "--dry-run=server", "-n", "strict", "-f", "-", "-o", "json", manifest=pod("one"))
    return done.code == 0 and "numalign.io/injected" in done.out

"""Pods in a strict namespace, as kubectl and the API server show them."""

import json

import pytest

from tests.e2e.rig.cluster import pod
from webhook.cluster.errors import ClusterError

pytestmark = pytest.mark.usefixtures("cluster")
PODS = "/api/v1/namespaces/strict/pods"


def create(plane, manifest, *args, namespace="strict"):
    return plane.kubectl("create", "-n", namespace, "-f", "-", "-o", "json", *args, manifest=manifest)


def made(done):
    assert done.code == 0, done.err
    return json.loads(done.out)


def without_chance(obj):
    """Drop what differs between two creates of one manifest."""
    text = json.dumps(
        {"spec": obj["spec"], "annotations": obj["metadata"].get("annotations"), "labels": obj["metadata"]["labels"]}
    )
    for volume in obj["spec"]["volumes"]:
        text = text.replace(volume["name"], "token")
    return json.loads(text)


def resources(obj, container="main"):
    everything = (*obj["spec"].get("initContainers", ()), *obj["spec"]["containers"])
    return next(each["resources"] for each in everything if each["name"] == container)


def test_a_dry_run_shows_what_a_create_does_and_leaves_nothing(plane):
    shown = made(create(plane, pod("twice"), "--dry-run=server"))
    with pytest.raises(ClusterError) as missing:
        plane.api.get(f"{PODS}/twice")
    assert missing.value.is_missing
    assert without_chance(made(create(plane, pod("twice")))) == without_chance(shown)


def test_a_pod_gets_whole_cpus_of_its_own(plane):
    obj = made(create(plane, pod("whole")))
    given = resources(obj)
    assert given["requests"] == given["limits"]
    assert given["limits"]["cpu"].isdigit()
    assert int(given["limits"]["cpu"]) > 1
    assert obj["status"]["qosClass"] == "Guaranteed"
    assert "cpu" in obj["metadata"]["annotations"]["numalign.io/injected"]
    assert obj["metadata"]["annotations"]["numalign.io/verdict"]


def test_a_refusal_exits_with_1_and_says_what_to_do(plane):
    done = create(plane, pod("eight", 8, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}))
    assert done.code == 1
    assert 'admission webhook "strict.pods.numalign.io" denied the request: ' in done.err
    assert "dgx-h100" in done.err
    assert "nvidia.com/gpu" in done.err


def test_a_refusal_carries_field_paths(plane):
    with pytest.raises(ClusterError) as refused:
        plane.api.create(PODS, pod("eight", 8, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}))
    assert refused.value.status in {400, 403, 422}
    assert "denied the request" in str(refused.value)


def test_a_warning_reaches_kubectl(plane):
    done = create(plane, pod("eight", 8), "--dry-run=server", namespace="audit")
    assert done.code == 0
    assert "Warning: " in done.err


def test_a_generated_name(plane):
    assert made(create(plane, pod("some-")))["metadata"]["name"].startswith("some-")
    refused = create(plane, pod("some-", 8, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}))
    assert refused.code == 1
    assert "denied the request" in refused.err


def test_a_pod_with_a_node_name_is_shaped_for_it_and_not_steered(plane):
    obj = made(create(plane, pod("placed", nodeName="l40s-1")))
    assert obj["spec"]["nodeName"] == "l40s-1"
    assert "affinity" not in obj["spec"]
    assert resources(obj)["limits"]["cpu"].isdigit()


def test_the_scheduler_finds_a_node_for_a_shaped_pod(plane):
    made(create(plane, pod("scheduled", 2)))
    plane.must("wait", "-n", "strict", "--for=condition=PodScheduled", "pod/scheduled", "--timeout=30s")
    assert plane.api.get(f"{PODS}/scheduled")["spec"]["nodeName"] in {"dgx-1", "l40s-1"}


def test_a_mirror_pod_is_left_alone(plane, cluster):
    before = cluster.calls()
    manifest = pod("mirrored", nodeName="dgx-1", automountServiceAccountToken=False)
    manifest["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "0" * 32}
    obj = made(create(plane, manifest))
    assert resources(obj) == {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
    assert cluster.calls() == before


def test_an_ephemeral_container_passes_without_a_call(plane, cluster):
    made(create(plane, pod("debugged")))
    before = cluster.calls()
    container = {"name": "debugger", "image": "example.invalid/sh:1", "targetContainerName": "main"}
    patch = json.dumps({"spec": {"ephemeralContainers": [container]}})
    plane.must("patch", "pod", "debugged", "-n", "strict", "--subresource=ephemeralcontainers", "-p", patch)
    assert cluster.calls() == before


def test_pod_level_resources_are_judged(plane):
    manifest = pod("pod-level")
    manifest["spec"]["resources"] = {"requests": {"cpu": "8", "memory": "32Gi"}, "limits": {"cpu": "8", "memory": "32Gi"}}
    done = create(plane, manifest)
    assert "Internal error" not in done.err
    assert "failed calling webhook" not in done.err
    if done.code == 0:
        assert made(done)["spec"]["resources"]["limits"]["cpu"] == "8"
    else:
        assert "denied the request" in done.err


def test_a_resize_that_would_end_the_alignment_is_refused(plane):
    obj = made(create(plane, pod("resized", nodeName="dgx-1")))
    cpu = int(resources(obj)["limits"]["cpu"])
    plane.api.call(
        "PATCH",
        f"{PODS}/resized/status",
        {"status": {"phase": "Running"}},
        content_type="application/merge-patch+json",
    )

    def resize(value):
        values = {"requests": {"cpu": value}, "limits": {"cpu": value}}
        patch = json.dumps({"spec": {"containers": [{"name": "main", "resources": values}]}})
        return plane.kubectl("patch", "pod", "resized", "-n", "strict", "--subresource=resize", "-p", patch)

    refused = resize(f"{cpu * 1000 - 500}m")
    assert refused.code == 1
    assert "denied the request" in refused.err
    allowed = resize(str(cpu - 2))
    assert allowed.code == 0, allowed.err

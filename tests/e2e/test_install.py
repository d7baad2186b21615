"""The manifests, as a real API server takes them, and the order of installing them."""

import itertools
import json
import re

import pytest
import yaml

from tests.e2e.controlplane.plane import until
from tests.e2e.rig.cluster import CERTS, DEPLOY, NAMESPACE, OVERLAY, metric, pod
from tests.e2e.rig.replica import Replica
from tests.server.reviews import encoded
from tests.server.running import post
from webhook.cluster.drift import drift

OVERLAYS = sorted(path.parent for path in DEPLOY.glob("**/kustomization.yaml"))
_NUMBERS = itertools.count(21)
_OTHERS = {"cert-manager.io"}
"""API groups of other projects, which this control plane does not serve."""


def rendered(plane, overlay):
    return [each for each in yaml.safe_load_all(plane.must("kustomize", str(overlay))) if each]


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_manifest_passes_the_api_server(plane, cluster, overlay):  # noqa: ARG001  its namespace must be there
    ours = [each for each in rendered(plane, overlay) if each["apiVersion"].split("/")[0] not in _OTHERS]
    done = plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", manifest=ours)
    assert done.code == 0, done.err
    assert not re.search(r"(?m)^Warning", done.err), done.err
    assert len(done.out.splitlines()) == len(ours)


@pytest.mark.parametrize("overlay", ["base", "overlays/audit"])
def test_without_node_classes_it_serves_and_says_so(plane, cluster, overlay):  # noqa: ARG001
    """What these overlays make of the ConfigMaps starts as it is; the Deployment itself is not replaced."""
    made = rendered(plane, DEPLOY / overlay)
    plane.must("apply", "-f", "-", manifest=[each for each in made if each["kind"] == "ConfigMap"])
    (template,) = (each["spec"]["template"] for each in made if each["kind"] == "Deployment")
    replica = Replica(plane, template, next(_NUMBERS), {"certs": CERTS})
    try:
        replica.start()
        connection = replica.connect()
        _, body = post(connection, "/mutate/pods/strict", encoded(pod("one")))
        connection.close()
    finally:
        replica.stop()
    assert "no node class offers nvidia.com/gpu" in json.loads(body)["response"]["warnings"][0]


def test_the_namespace_admits_the_deployments_pods(plane, cluster):  # noqa: ARG001
    """Pod Security `restricted`, the priority class and the quota of nothing: the controller could create both replicas."""

    def created():
        pods = plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return [each for each in pods if each["metadata"]["labels"].get("app.kubernetes.io/name") == "numalign"]

    pods = until(lambda: len(created()) == 2 and created(), what="the Deployment's pods")
    assert {each["spec"]["priority"] for each in pods} == {2_000_000_000}


def test_what_is_registered_is_what_the_policy_says(plane, cluster):
    expected = rendered(plane, OVERLAY / "webhooks")
    assert drift(expected, cluster.configurations.registered()) == ()


def test_a_metric_tells_when_what_is_registered_differs(plane, cluster):
    def drifts(value):
        return all(metric(replica, "numalign_webhook_drift", {}) == value for replica in cluster.replicas)

    until(lambda: drifts(0.0), what="the sidecars' first look")
    patch = {"webhooks": [{"name": "audit.pods.numalign.io", "timeoutSeconds": 9}]}
    plane.must("patch", "validatingwebhookconfiguration", "numalign", "-p", json.dumps(patch))
    until(lambda: drifts(1.0), what="the drift to show")
    plane.must("apply", "-k", str(OVERLAY / "webhooks"))
    until(lambda: drifts(0.0), what="the drift to be gone")


def test_ca_bundles_are_ours_and_stay_when_the_manifests_are_applied_again(plane, cluster):
    plane.must("apply", "-k", str(OVERLAY / "webhooks"))
    assert cluster.trusted()
    plane.must("apply", "--server-side", "--force-conflicts", "-k", str(OVERLAY / "webhooks"))
    assert cluster.trusted()
    for configuration in cluster.configurations.registered():
        owners = {
            owner["manager"]
            for owner in configuration["metadata"]["managedFields"]
            if "f:caBundle" in json.dumps(owner["fieldsV1"])
        }
        assert owners == {"numalign"}


def test_a_bundle_that_is_taken_away_comes_back(plane, cluster):
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/numalign"
    operation = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
    plane.must("patch", "mutatingwebhookconfiguration", "numalign", "--type=json", "-p", json.dumps(operation))
    until(cluster.trusted, what="the caBundle to come back")
    assert all(each["clientConfig"].get("caBundle") for each in plane.api.get(path)["webhooks"])


def test_the_service_account_may_do_what_the_sidecar_does_and_no_more(plane, cluster):  # noqa: ARG001
    account = f"system:serviceaccount:{NAMESPACE}:numalign"

    def may(verb, resource, *where):
        return plane.kubectl("auth", "can-i", verb, resource, f"--as={account}", *where).out.strip() == "yes"

    inside = ("-n", NAMESPACE)
    assert may("update", "secrets/numalign-authority", *inside)
    assert may("patch", "mutatingwebhookconfigurations/numalign")
    assert may("watch", "limitranges", "-A")
    assert may("get", "resourceclaimtemplates.resource.k8s.io", "-A")
    assert may("get", "resourceclaims.resource.k8s.io", "-A")
    for verb, resource, *where in (
        ("get", "secrets/other", *inside),
        ("list", "secrets", *inside),
        ("delete", "secrets/numalign-authority", *inside),
        ("create", "secrets", "-n", "default"),
        ("patch", "mutatingwebhookconfigurations/other"),
        ("create", "mutatingwebhookconfigurations"),
        ("get", "pods", "-A"),
        ("update", "limitranges", "-A"),
        ("list", "resourceclaims.resource.k8s.io", "-A"),
        ("create", "resourceclaims.resource.k8s.io", "-A"),
        ("create", "serviceaccounts/token", *inside),
    ):
        assert not may(verb, resource, *where), (verb, resource)

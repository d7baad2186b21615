"""deploy/overlays/cert-manager with cert-manager's own controllers: it signs, injects and renews, and we serve what it signed."""

import base64

import pytest
import yaml
from cryptography import x509

from tests.e2e.controlplane import binaries
from tests.e2e.controlplane.plane import ControlPlane, until
from tests.e2e.controlplane.processes import Process
from tests.e2e.rig.cluster import DEPLOY, NAMESPACE, pod
from tests.e2e.rig.replica import Replica
from tests.e2e.rig.service import Service, has_haproxy
from tls.certificates import signed_by
from webhook.cluster.bundles import Configurations
from webhook.cluster.errors import ClusterError

OVERLAY = DEPLOY / "overlays" / "cert-manager"
GROUP = f"/apis/cert-manager.io/v1/namespaces/{NAMESPACE}"
FIRST_REPLICA = 11
"""Replicas of another control plane may run beside these, on addresses of their own."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """A control plane of its own: cert-manager and our sidecar keep the same Secret."""
    try:
        found, (_, crds) = binaries.find(), binaries.find_cert_manager()
    except binaries.MissingError as error:
        pytest.skip(f"NO CERT-MANAGER: {error}")
    if not has_haproxy():
        pytest.skip("NO SERVICE: install haproxy (Debian's package of that name)")
    with ControlPlane(found, tmp_path_factory.mktemp("plane"), audit=False) as started:
        files = [f"--filename={file}" for file in crds]
        started.must("apply", "--server-side", *files)
        started.must("wait", "--for=condition=Established", *files)
        yield started


@pytest.fixture(scope="module")
def cert_manager(plane):
    program, _ = binaries.find_cert_manager()
    process = Process("cert-manager", [program, "--kubeconfig", plane.kubeconfig], plane.logs)
    yield process
    process.stop()


@pytest.fixture(scope="module")
def replicas(plane, cert_manager):
    """Our server, installed as docs/operations.md says: first the overlay, when it is ready its webhooks."""
    plane.must("apply", "-k", str(OVERLAY))
    cert_manager.wait_until(lambda: _secret(plane) is not None)
    template = plane.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/numalign")["spec"]["template"]
    made = [Replica(plane, template, FIRST_REPLICA + number) for number in range(2)]
    for each in made:
        each.start()
    service = Service(plane, made)
    try:
        plane.must("apply", "-k", str(OVERLAY / "webhooks"))
        yield made
    finally:
        service.stop()
        for each in made:
            each.stop()


def _secret(plane):
    try:
        data = plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/numalign-tls").get("data") or {}
    except ClusterError:
        return None
    return {name: base64.b64decode(text) for name, text in data.items()} or None


def bundles(plane):
    return [
        base64.b64decode(entry["clientConfig"].get("caBundle", ""))
        for each in Configurations(plane.api).registered()
        for entry in each["webhooks"]
    ]


def trusted(plane):
    """The certificates in each bundle; cert-manager leaves those that it injected before beside a new one."""
    return [x509.load_pem_x509_certificates(bundle) for bundle in bundles(plane)]


def served(replica):
    """The certificate that a new connection gets."""
    return x509.load_der_x509_certificate(replica.leaf())


def test_the_api_server_takes_the_objects_of_cert_manager(plane):
    """By the schemas of its resource definitions, unknown fields refused."""
    made = [each for each in yaml.safe_load_all(plane.must("kustomize", str(OVERLAY))) if each]
    theirs = [each for each in made if each["apiVersion"].startswith("cert-manager.io/")]
    assert {each["kind"] for each in theirs} == {"Issuer", "Certificate"}
    plane.namespace("elsewhere")
    moved = [{**each, "metadata": {**each["metadata"], "namespace": "elsewhere"}} for each in theirs]
    done = plane.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", manifest=moved)
    assert done.code == 0, done.err
    assert "Warning" not in done.err


def test_it_issues_what_the_webhook_serves(plane, replicas):
    secret = _secret(plane)
    (authority,) = x509.load_pem_x509_certificates(secret["ca.crt"])
    leaf = x509.load_pem_x509_certificates(secret["tls.crt"])[0]
    assert signed_by(leaf, authority)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    assert f"numalign.{NAMESPACE}.svc" in names
    for replica in replicas:
        assert served(replica) == leaf


@pytest.mark.usefixtures("replicas")
def test_every_webhook_gets_its_bundle_and_is_called(plane):
    wanted = _secret(plane)["ca.crt"]
    until(lambda: set(bundles(plane)) == {wanted}, seconds=60, what="the caBundles")
    namespace = plane.namespace("gpus", {"numalign.io/mode": "strict"})
    done = until(lambda: _created(plane, namespace), what="the webhooks to be called")
    assert "Warning: numalign: no node class offers nvidia.com/gpu" in done.err


def _created(plane, namespace):
    """In strict mode a pod is refused as long as its call fails."""
    done = plane.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", manifest=pod("one"))
    return done if done.code == 0 and "numalign" in done.err else None


def test_the_bundles_stay_when_the_manifests_are_applied_again(plane, replicas):  # noqa: ARG001
    until(lambda: all(bundles(plane)), seconds=60, what="the caBundles")
    before = bundles(plane)
    plane.must("apply", "-k", str(OVERLAY / "webhooks"))
    assert bundles(plane) == before


def test_a_renewed_certificate_is_served_once_the_kubelet_brings_it(plane, replicas):
    before = _secret(plane)["tls.crt"]
    plane.must("delete", "secret", "numalign-tls", "-n", NAMESPACE)
    until(lambda: (_secret(plane) or {}).get("tls.crt", before) != before, seconds=60, what="another certificate")
    leaf = x509.load_pem_x509_certificates(_secret(plane)["tls.crt"])[0]
    for replica in replicas:
        replica.refresh()
        until(lambda: served(replica) == leaf, what="the new certificate to be served")  # noqa: B023


def test_a_renewed_authority_is_nobodys_trouble(plane, replicas):
    """What the replicas serve until the kubelet brings something new is trusted by the new bundle, too."""
    leaf, before = served(replicas[0]), trusted(plane)
    for certificate in ("numalign-authority", "numalign"):
        _renew(plane, certificate)
    (following,) = x509.load_pem_x509_certificates(_secret(plane)["ca.crt"])
    assert not any(following in bundle for bundle in before)
    until(lambda: all(following in bundle for bundle in trusted(plane)), seconds=60, what="the new authority in each caBundle")
    assert served(replicas[0]) == leaf
    assert signed_by(leaf, following)
    namespace = plane.namespace("later", {"numalign.io/mode": "strict"})
    until(lambda: _created(plane, namespace), what="the webhooks to be called")


def _renew(plane, certificate):
    """As `cmctl renew` does."""
    path = f"{GROUP}/certificates/{certificate}"
    before = plane.api.get(path)["status"].get("revision")
    condition = {"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "by a test"}
    plane.api.call(
        "PATCH", f"{path}/status", {"status": {"conditions": [condition]}}, content_type="application/merge-patch+json"
    )
    until(lambda: plane.api.get(path)["status"].get("revision") != before, seconds=60, what=f"another {certificate}")


def test_no_container_has_credentials_or_rights(plane, replicas):  # noqa: ARG001
    template = plane.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/numalign")["spec"]["template"]
    assert "initContainers" not in template["spec"]
    assert not any("projected" in volume for volume in template["spec"]["volumes"])
    account = f"system:serviceaccount:{NAMESPACE}:numalign"
    for verb, resource in (("get", "secrets"), ("list", "limitranges"), ("patch", "mutatingwebhookconfigurations/numalign")):
        done = plane.kubectl("auth", "can-i", verb, resource, f"--as={account}", "-n", NAMESPACE)
        assert done.out.strip() == "no", (verb, resource)

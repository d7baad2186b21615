"""A server that answers only clients it knows: the API server shows a certificate where its admission configuration names one."""

import base64
import http.client
import json
import ssl

import pytest

from tests.e2e.controlplane.pki import Identity
from tests.e2e.controlplane.plane import until
from tests.e2e.controlplane.processes import Process, answers, free_ports
from tests.e2e.rig.cluster import pod
from tests.e2e.rig.replica import NUMALIGN
from webhook.cluster.errors import ClusterError


@pytest.fixture(scope="module")
def port(plane):
    webhook, metrics = free_ports(2)
    cert, key = plane.pki.server("picky", "127.0.0.1")
    where = ["--host", "127.0.0.1", "--port", str(webhook), "--metrics-port", str(metrics)]
    command = [NUMALIGN, "serve", *where, "--cert", cert, "--key", key, "--client-ca", plane.pki.ca]
    process = Process("picky", command, plane.logs)
    process.wait_until(lambda: answers(f"http://127.0.0.1:{metrics}/readyz"))
    yield webhook
    process.stop()


def get(plane, port, identity=None):
    context = ssl.create_default_context(cafile=plane.pki.ca)
    if identity is not None:
        context.load_cert_chain(*plane.pki.client(identity))
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_client_without_a_certificate_is_not_answered(plane, port):
    assert get(plane, port, Identity("someone")) == 200
    with pytest.raises((OSError, http.client.HTTPException)):
        get(plane, port)


def test_the_api_server_is_answered(plane, port):
    namespace = plane.namespace("picky")
    authority = base64.b64encode(plane.pki.ca.read_bytes()).decode()
    entry = {
        "name": "picky.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/validate/pods/strict", "caBundle": authority},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
    }
    made = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "picky"}, "webhooks": [entry]}
    plane.api.create("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", made)
    try:
        until(lambda: _warned(plane, namespace), what="the webhook to be called")
    finally:
        plane.must("delete", "validatingwebhookconfiguration", "picky")


def _warned(plane, namespace):
    done = plane.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", "-o", "json", manifest=pod("one"))
    if "failed calling webhook" in done.err:
        raise ClusterError(done.err)
    assert done.code == 0, done.err
    json.loads(done.out)
    return "Warning: numalign: " in done.err

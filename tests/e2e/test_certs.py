"""The authority as replicas share it, on a real API server, with a clock of the test's own."""

import base64
import datetime as dt
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from cryptography import x509

from tests.e2e.controlplane.plane import until
from tls.certificates import signed_by
from tls.files import PairFiles
from tls.rotation import Lives
from webhook.cluster.api import connect
from webhook.cluster.authority import AuthoritySecret
from webhook.cluster.bundles import Configurations, trusts
from webhook.cluster.errors import ClusterError
from webhook.cluster.keeper import Keeper

NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)
LIVES = Lives(authority=360 * DAY, leaf=6 * DAY, settle=dt.timedelta(minutes=1))
HOST = "webhook.certs.svc"


def configuration(kind, name):
    entry = {
        "name": "pods.certs.example.com",
        "clientConfig": {"service": {"namespace": "certs", "name": "webhook", "path": "/x"}},
        "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    second = {**entry, "name": "claims.certs.example.com"}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [entry, second],
    }


@pytest.fixture
def make(plane, request, tmp_path):
    """Return a maker of replicas that share a Secret and configurations of this test's own."""
    name = request.node.name.replace("_", "-")[:60].rstrip("-")
    plane.namespace(name)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        plane.must("create", "-f", "-", manifest=configuration(kind, name))

    def keeper(replica=1):
        api = connect(plane.kubeconfig)
        files = PairFiles(tmp_path / str(replica))
        return Keeper(AuthoritySecret(api, name), Configurations(api, name), (HOST,), files, LIVES)

    yield keeper
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        plane.must("delete", kind, name)


def registered_bundles(keeper):
    for each in keeper.configurations.registered():
        for entry in each["webhooks"]:
            yield x509.load_pem_x509_certificates(base64.b64decode(entry["clientConfig"]["caBundle"]))


def test_replicas_that_start_at_once_agree_on_one_authority(make):
    keepers, barrier = [make(number) for number in range(6)], Barrier(6)

    def start(keeper):
        barrier.wait()
        return keeper.round(NOW)

    with ThreadPoolExecutor(len(keepers)) as pool:
        rounds = list(pool.map(start, keepers))
    authority = keepers[0].secret.read().authority
    assert sum("new Secret" in sentence for done in rounds for sentence in done) >= 1
    for keeper in keepers:
        assert signed_by(keeper.files.read().cert, authority.current.cert)
    assert trusts(keepers[0].configurations.registered(), authority.trusted)


def test_a_quiet_round_changes_nothing(make):
    keeper = make()
    assert len(keeper.round(NOW)) == 3
    before = [each["metadata"]["resourceVersion"] for each in keeper.configurations.registered()]
    assert keeper.round(NOW + DAY) == ()
    assert [each["metadata"]["resourceVersion"] for each in keeper.configurations.registered()] == before


def test_an_authority_rotates_without_a_moment_in_which_a_leaf_is_not_trusted(make):
    """Two replicas take turns for the days around a rotation, three rounds a day; what each serves is always in the bundles."""
    keepers = [make(1), make(2)]
    for keeper in keepers:
        keeper.round(NOW)
    first = keepers[0].secret.read().authority.current.cert
    now, told = NOW + 239 * DAY, []
    while now < NOW + 250 * DAY:
        for keeper in keepers:
            told += keeper.round(now)
            for bundle in registered_bundles(keeper):
                for each in keepers:
                    assert any(signed_by(each.files.read().cert, cert) for cert in bundle)
        now += DAY / 3
    authority = keepers[0].secret.read().authority
    assert authority.current.cert != first
    assert (authority.next, authority.previous) == (None, None)
    for sentence in (
        "announced a new authority",
        "a new authority signs from now on",
        "the previous authority is no longer trusted",
    ):
        assert told.count(sentence) == 1


def test_a_deleted_secret_comes_back_with_the_authority_that_is_trusted(make, plane):
    keeper = make()
    keeper.round(NOW)
    before = keeper.secret.read().authority
    plane.must("delete", "secret", keeper.secret.name, "-n", keeper.secret.namespace)
    assert keeper.round(NOW) == ("stored the authority in a new Secret",)
    assert keeper.secret.read().authority.current.cert == before.current.cert


def test_a_damaged_secret_is_left_alone_and_the_message_says_what_to_do(make, plane):
    keeper = make()
    keeper.round(NOW)
    plane.must("patch", "secret", keeper.secret.name, "-n", keeper.secret.namespace, "-p", '{"data": {"tls.crt": "bm9uZQ=="}}')
    with pytest.raises(ClusterError, match=r"no PEM certificate.*certs init --replace"):
        keeper.round(NOW)


def test_an_entry_that_goes_away_under_way_is_no_failure(make, plane):
    keeper = make()
    keeper.round(NOW)
    plane.must("delete", "mutatingwebhookconfiguration", keeper.configurations.name)
    assert keeper.round(NOW) == ()
    plane.must("create", "-f", "-", manifest=configuration("MutatingWebhookConfiguration", keeper.configurations.name))
    assert "caBundle" in keeper.round(NOW)[0]


def test_show_and_rotate(cluster, numalign):
    before = cluster.secret.read().authority.current.cert
    shown = numalign("certs", "show")
    assert shown.code == 0, shown.err
    assert f"{before.serial_number:x}" in shown.out
    done = numalign("certs", "rotate")
    assert done.code == 0, done.err
    until(lambda: cluster.secret.read().authority.current.cert != before, what="the switch to the new authority")
    until(cluster.trusted, what="trust in both")
    shown = numalign("certs", "show", "-o", "json")
    assert '"previous"' in shown.out

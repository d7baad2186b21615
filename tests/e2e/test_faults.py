"""Faults while pods are created: what clients of the API server notice of them."""

import socket
import time
from contextlib import ExitStack

import pytest

from tests.e2e.controlplane.plane import until
from tests.e2e.rig.cluster import metric
from tests.e2e.rig.load import Load


@pytest.fixture
def load(plane, cluster):  # noqa: ARG001
    made = Load(plane)
    with made.running():
        enough(made, 40)
        assert made.failures() == []
        yield made


@pytest.fixture(scope="module", autouse=True)
def idle(cluster):
    """Connections that are open, and say nothing, while all of these tests run; yields since when."""
    with ExitStack() as stack:
        for replica in cluster.replicas:
            for number in range(64):
                peer = socket.create_connection((replica.address, replica.webhook_port), timeout=5)
                stack.callback(peer.close)
                if number % 2:
                    peer.shutdown(socket.SHUT_WR)
        yield time.monotonic()


def enough(load, more=80):
    """Wait until so many more creates are over."""
    count = len(load.samples) + more
    until(lambda: len(load.samples) >= count, what=f"{more} more creates")


def test_a_renewed_leaf_is_served_and_nobody_notices(cluster, load):
    for replica in cluster.replicas:
        before = replica.leaf()
        (replica.directory("tls") / "tls.crt").unlink()
        until(lambda: replica.leaf() != before, what="the new certificate")  # noqa: B023  awaited within the turn
    enough(load)
    assert load.failures() == []


def test_a_rotated_authority_is_nobodys_trouble(cluster, load, numalign):
    before = cluster.secret.read().authority.current.cert
    leaves = [replica.leaf() for replica in cluster.replicas]
    assert numalign("certs", "rotate").code == 0
    until(lambda: cluster.secret.read().authority.current.cert != before, what="the switch")
    for replica, old in zip(cluster.replicas, leaves, strict=True):
        until(lambda: replica.leaf() != old, what="a leaf of the new authority")  # noqa: B023
    enough(load)
    assert load.failures() == []


def test_a_replica_is_drained_and_nobody_notices(cluster, load):
    replica = cluster.replicas[0]
    replica.delete()
    enough(load)
    assert load.failures() == []
    replica.start()
    until(replica.ready)
    enough(load)
    assert load.failures() == []


def test_a_killed_replica_costs_calls_in_flight_at_most(cluster, load):
    replica = cluster.replicas[0]
    replica.kill()
    killed = time.monotonic()
    until(lambda: time.monotonic() - killed > 1.0)
    enough(load)
    assert load.failures(since=killed + 1.0) == []
    assert len(load.failures()) <= load.workers * 2
    replica.start()
    until(replica.ready)


def test_a_restarted_api_server_finds_us_again(plane, cluster, load):  # noqa: ARG001
    plane.restart_apiserver()
    back = time.monotonic()
    enough(load)
    assert load.failures(since=back) == []
    assert not [sample for sample in load.failures() if not sample.problem.startswith("API server")]


def test_a_bad_policy_that_is_rolled_out_changes_nothing(plane, cluster, load):  # noqa: ARG001
    """The files of running replicas turn bad: they keep what they have, and their metric says so."""
    for replica in cluster.replicas:
        path = replica.directory("policy") / "policy.yaml"
        good = path.read_text()
        path.write_text(good.replace("mode: strict", "mode: stricter"))
        until(lambda: _reload_success(replica) == 0.0, what="the metric to tell")  # noqa: B023
        enough(load)
        path.write_text(good)
        until(lambda: _reload_success(replica) == 1.0, what="the metric to tell")  # noqa: B023
    assert load.failures() == []


def _reload_success(replica):
    return metric(replica, "numalign_config_reload_success", {})


def test_stalled_peers_hold_up_nobody(cluster, load):
    """Four times as many as a replica has threads, on each of them, coming back for ever: half a handshake, or nothing at all."""
    for _ in range(6):
        with ExitStack() as stack:
            for replica in cluster.replicas:
                for number in range(64):
                    peer = socket.create_connection((replica.address, replica.webhook_port), timeout=5)
                    stack.callback(peer.close)
                    if number % 2:
                        peer.sendall(b"\x16\x03\x01\x02\x00\x01")  # a TLS record of 512 bytes, of which there come no more
            enough(load, 60)
    assert load.failures() == []
    assert load.slowest() < 1.5


def test_connections_that_say_nothing_for_long_hold_up_nobody(idle, load):
    """Peers that opened a connection, or closed their side of one, and were then forgotten: the API server's pool keeps 90 s."""
    until(lambda: time.monotonic() - idle > 95.0, seconds=100.0)
    enough(load)
    assert load.failures() == []
    assert load.slowest() < 1.5

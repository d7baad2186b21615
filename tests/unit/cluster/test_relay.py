"""The socket over which the sidecar reads claims for the server: single claims and templates, and nothing else."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from webhook.cluster.claims import CachedLookup
from webhook.cluster.errors import ClusterError
from webhook.cluster.relay import MAX_BYTES, Relay, RelayClient
from webhook.core.dra.references import CLAIM, TEMPLATE, LookupFailedError, Reference

PATH = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaimtemplates/gpus"


class Api:
    def __init__(self) -> None:
        self.answer: Any = {"kind": "ResourceClaimTemplate"}
        self.asked: list[str] = []

    def call(self, method: str, path: str, *, seconds: float) -> Any:
        assert (method, seconds) == ("GET", 5.0)
        self.asked.append(path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short path: sockets' names have at most 107 bytes."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def client(api: Api, directory: Path) -> Iterator[RelayClient]:
    with Relay(api, directory / "claims.sock", 5.0) as relay:
        relay.start()
        yield RelayClient(directory / "claims.sock")
        relay.shutdown()


def test_an_object_comes_as_it_is(api: Api, client: RelayClient) -> None:
    api.answer = {"kind": "ResourceClaimTemplate", "metadata": {"name": "gpüs"}, "spec": {"x": [1, None]}}
    assert client.call("GET", PATH, seconds=5.0) == api.answer
    assert api.asked == [PATH]


@pytest.mark.parametrize("error", [ClusterError("not found", 404), ClusterError("forbidden", 403), ClusterError("away")])
def test_a_failure_comes_as_it_is(api: Api, client: RelayClient, error: ClusterError) -> None:
    api.answer = error
    with pytest.raises(ClusterError) as raised:
        client.call("GET", PATH, seconds=5.0)
    assert (str(raised.value), raised.value.status) == (str(error), error.status)


def test_an_answer_that_is_no_object(api: Api, client: RelayClient) -> None:
    api.answer = ValueError("no JSON")
    with pytest.raises(ClusterError, match="cannot be read"):
        client.call("GET", PATH, seconds=5.0)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/api/v1/namespaces/team/secrets/numalign-authority",
        "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims",
        "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/",
        "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/../../kube-system/resourceclaims/x",
        "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/x?watch=1",
        "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/x/status",
        "/apis/resource.k8s.io/v1/namespaces/te%61m/resourceclaims/x",
        f"/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/{'x' * 600}",
        f"{PATH} HTTP/1.1\r",
    ],
)
def test_nothing_else_is_read(api: Api, client: RelayClient, path: str) -> None:
    with pytest.raises(ClusterError, match="only single claims") as raised:
        client.call("GET", path, seconds=5.0)
    assert (raised.value.status, api.asked) == (400, [])


def test_without_a_sidecar_a_lookup_fails_at_once(directory: Path) -> None:
    with pytest.raises(LookupFailedError, match="the sidecar did not read it"):
        CachedLookup(RelayClient(directory / "claims.sock")).find("team", Reference("gpus", TEMPLATE, "gpus", 0))


def test_a_sidecar_that_does_not_answer_is_waited_for_no_longer_than_the_deadline(directory: Path) -> None:
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(directory / "claims.sock"))
        deaf.listen()
        with pytest.raises(ClusterError, match="timed out"):
            RelayClient(directory / "claims.sock").call("GET", PATH, seconds=0.05)


def test_an_endless_answer_is_cut(directory: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(directory / "claims.sock"))
        server.listen()
        threading.Thread(target=_pour, args=(server,), daemon=True).start()
        with pytest.raises(LookupFailedError, match="did not read it"):
            CachedLookup(RelayClient(directory / "claims.sock")).find("team", Reference("gpus", CLAIM, "gpus", 0))


def _pour(server: socket.socket) -> None:
    peer, _ = server.accept()
    try:
        peer.sendall(b"[" * (2 * MAX_BYTES))
    except OSError:
        peer.close()


def test_a_new_sidecar_takes_the_place_of_the_old_one(api: Api, directory: Path) -> None:
    file = directory / "claims.sock"
    with Relay(Api(), file, 5.0), Relay(api, file, 5.0) as relay:
        relay.start()
        api.answer = {"from": "the second"}
        assert RelayClient(file).call("GET", PATH, seconds=5.0) == {"from": "the second"}
        assert list(directory.iterdir()) == [file]
        relay.shutdown()


def test_whoever_asks_nothing_holds_up_nobody(api: Api, client: RelayClient, directory: Path) -> None:
    idle = [socket.socket(socket.AF_UNIX) for _ in range(20)]
    for each in idle:
        each.connect(str(directory / "claims.sock"))
    assert client.call("GET", PATH, seconds=5.0) == api.answer
    for each in idle:
        each.shutdown(socket.SHUT_WR)
        while each.recv(4096):
            continue
        each.close()


def test_the_servers_end_needs_no_client_for_api_servers() -> None:
    """That takes 40 MB and most of a second to import."""
    check = "import sys, webhook.cluster.claims, webhook.cluster.relay; sys.exit('kubernetes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False, timeout=60).returncode == 0

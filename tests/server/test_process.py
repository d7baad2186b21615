"""The real thing: a gunicorn process behind TLS."""

from __future__ import annotations

import json
import queue
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.reviews import encoded, pod
from tests.server.running import COMMAND, DEADLINE, Running, post, spawned, started, until
from tls import selfsigned
from tls.files import PairFiles
from webhook.server.app import BODY_LIMIT

MUTATE, VALIDATE = "/mutate/pods/strict", "/validate/pods/strict"


@contextmanager
def connected(server: Running) -> Iterator[HTTPSConnection]:
    with closing(server.connect()) as connection:
        connection.connect()
        yield connection


def serial(server: Running) -> str:
    with connected(server) as connection:
        assert isinstance(connection.sock, ssl.SSLSocket)
        found = connection.sock.getpeercert()
        assert found is not None
        return str(found["serialNumber"])


def test_one_connection_serves_many_requests(server: Running) -> None:
    with connected(server) as connection:
        used = connection.sock
        for _ in range(20):
            answer, body = post(connection, f"{MUTATE}?timeout=2s", encoded(pod()))
            assert (answer.status, answer.getheader("Connection")) == (200, "keep-alive")
            assert json.loads(body)["response"]["patchType"] == "JSONPatch"
        assert connection.sock is used


def test_refusal(server: Running) -> None:
    with connected(server) as connection:
        _, body = post(connection, VALIDATE, encoded(pod(8)))
    response = json.loads(body)["response"]
    assert not response["allowed"]
    assert "dgx-h100" in response["status"]["message"]
    assert response["status"]["details"]["causes"]


def test_a_body_over_the_limit(server: Running) -> None:
    with connected(server) as connection:
        answer, _ = post(connection, MUTATE, b" " * (BODY_LIMIT + 1))
        assert answer.status == 413
    with connected(server) as connection:
        assert post(connection, MUTATE, encoded(pod()))[0].status == 200


def test_plain_http_on_the_tls_port_gets_nothing_and_harms_nothing(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port), DEADLINE) as peer:
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200" not in peer.recv(100)
    with connected(server) as connection:
        assert post(connection, MUTATE, encoded(pod()))[0].status == 200


def test_probes_and_metrics(server: Running) -> None:
    with connected(server) as connection:
        post(connection, VALIDATE, encoded(pod(8), namespace="team-a"))
        post(connection, "/validate/pods/audit", encoded(pod(8), namespace="team-a"))
        connection.request("GET", "/readyz")
        assert connection.getresponse().read() == b"ok\n"
        connection.request("GET", "/metrics")
        assert connection.getresponse().status == 404
        connection.close()
    assert server.plain("/healthz") == (200, "ok\n")
    assert server.plain("/readyz") == (200, "ok\n")
    status, text = server.plain("/metrics")
    assert status == 200
    found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    samples = {(sample.name, *sample.labels.values()): sample.value for sample in found}
    assert samples["numalign_would_refuse_total", "team-a"] == 1
    assert samples["numalign_config_reload_success",] == 1
    assert samples["numalign_cert_expiry_seconds",] > 3600
    assert {name for name, *_ in samples} >= {
        "numalign_decisions_total",
        "numalign_class_verdict_total",
        "numalign_injected_cpu_cores_total",
        "numalign_injected_memory_bytes_total",
        "numalign_undescribed_pods_total",
        "numalign_decision_seconds_bucket",
        "numalign_webhook_drift",
    }


def test_one_line_a_decision(server: Running) -> None:
    with connected(server) as connection:
        post(connection, VALIDATE, encoded(pod(8), uid="the-uid", dryRun=True))
    line = server.event(lambda found: found.get("uid") == "the-uid")
    assert line.pop("milliseconds") >= 0
    assert line.pop("timestamp")
    assert line == {
        "event": "decision",
        "level": "info",
        "component": "decision",
        "handler": "validate",
        "uid": "the-uid",
        "namespace": "research",
        "name": "train",
        "mode": "strict",
        "outcome": "refused",
        "reason": line["reason"],
        "verdicts": {"dgx-h100": "refused"},
        "dry_run": True,
    }


def silent(_server: Running, peer: socket.socket) -> socket.socket:
    return peer


def half_a_hello(_server: Running, peer: socket.socket) -> socket.socket:
    peer.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
    return peer


def half_a_body(server: Running, peer: socket.socket) -> socket.socket:
    wrapped = ssl.create_default_context(cafile=server.ca).wrap_socket(peer, server_hostname="127.0.0.1")
    head = f"POST {MUTATE} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"
    wrapped.sendall(f"{head}{{".encode())
    return wrapped


def only_a_handshake(server: Running, peer: socket.socket) -> socket.socket:
    return ssl.create_default_context(cafile=server.ca).wrap_socket(peer, server_hostname="127.0.0.1")


@pytest.mark.parametrize("stall", [silent, only_a_handshake, half_a_hello, half_a_body])
def test_peers_that_stall(server: Running, stall: Callable[[Running, socket.socket], socket.socket]) -> None:
    """Four times as many as there are threads."""
    with connected(server) as known, ExitStack() as stack:
        assert post(known, MUTATE, encoded(pod()))[0].status == 200
        for _ in range(32):
            peer = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), DEADLINE))
            stack.enter_context(stall(server, peer))
        assert post(known, MUTATE, encoded(pod()))[0].status == 200
        with connected(server) as new:
            assert post(new, MUTATE, encoded(pod()))[0].status == 200


def test_connections_opened_in_advance(server: Running) -> None:
    """More than there are threads, each used only after all of them are open."""
    with ExitStack() as stack:
        opened = [stack.enter_context(connected(server)) for _ in range(20)]
        for connection in opened:
            used = connection.sock
            assert post(connection, MUTATE, encoded(pod()))[0].status == 200
            assert connection.sock is used


def test_draining(files: selfsigned.Files, policy: Path, tmp_path: Path) -> None:
    """The preStop hook creates a file: not ready any more, and clients are sent away, each with its answer."""
    drain = tmp_path / "drain"
    with started(files, "--policy", policy, "--drain-file", drain) as server:
        with connected(server) as connection:
            assert post(connection, MUTATE, encoded(pod()))[0].getheader("Connection") == "keep-alive"
            drain.touch()
            answer, body = post(connection, MUTATE, encoded(pod()))
            assert (answer.status, answer.getheader("Connection")) == (200, "close")
            assert json.loads(body)["response"]["allowed"]
        with connected(server) as connection:
            assert post(connection, MUTATE, encoded(pod()))[0].status == 200
        assert server.plain("/readyz") == (503, "draining\n")
        assert server.plain("/healthz") == (200, "ok\n")
        assert server.stop() == 0


def test_sigterm_under_load(files: selfsigned.Files, policy: Path) -> None:
    """Every client gets an answer to every request, the last of which tells it that the connection ends."""
    with started(files, "--policy", policy) as server, ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(_until_sent_away, server) for _ in range(4)]
        until(lambda: 'handler="mutate"' in server.plain("/metrics")[1])
        assert server.stop() == 0
        for client in clients:
            assert client.result(DEADLINE) > 0


def _until_sent_away(server: Running) -> int:
    with connected(server) as connection:
        for count in range(1_000_000):
            answer, _ = post(connection, MUTATE, encoded(pod()))
            assert answer.status == 200
            if answer.getheader("Connection") == "close":
                return count
    raise AssertionError("never sent away")


def test_another_certificate(tmp_path: Path, policy: Path) -> None:
    """New connections get the new one, those that are open stay; between the two files' changes the old one serves."""
    files = selfsigned.create(tmp_path / "now")
    following = selfsigned.create(tmp_path / "next")
    bundle = tmp_path / "bundle.crt"
    bundle.write_bytes(files.ca.read_bytes() + following.ca.read_bytes())
    with started(selfsigned.Files(bundle, files.cert, files.key), "--policy", policy) as server, connected(server) as connection:
        before = serial(server)
        used = connection.sock
        files.key.write_bytes(following.key.read_bytes())
        assert serial(server) == before
        PairFiles(files.cert.parent).cert.write_bytes(following.cert.read_bytes())
        assert serial(server) != before
        assert post(connection, MUTATE, encoded(pod()))[0].status == 200
        assert connection.sock is used


def replace(file: Path, text: str) -> None:
    """Change a file at once, as a ConfigMap's volume does: half a file would be another error."""
    following = file.with_suffix(".next")
    following.write_text(text)
    following.replace(file)


def test_files_that_change(files: selfsigned.Files, policy: Path) -> None:
    good = policy.read_text()
    with started(files, "--policy", policy, "--reload-seconds", "0.05") as server, connected(server) as connection:
        replace(policy, good.replace("mode: strict", "mode: stirct"))
        problem = server.event(lambda line: line["level"] == "error")["problem"]
        assert problem.startswith(f"{policy}:5: spec.mode:")
        status, text = server.plain("/readyz")
        assert (status, "older set is in force" in text, problem in text) == (200, True, True)
        assert "numalign_config_reload_success 0.0" in server.plain("/metrics")[1]
        assert not json.loads(post(connection, "/validate/pods/default", encoded(pod(8)))[1])["response"]["allowed"]

        replace(policy, good.replace("mode: strict", "mode: audit"))
        server.event(lambda line: line["event"] == "in force" and line["generation"] == 2)
        assert server.plain("/readyz") == (200, "ok\n")
        assert "numalign_config_reload_success 1.0" in server.plain("/metrics")[1]
        assert json.loads(post(connection, "/validate/pods/default", encoded(pod(8)))[1])["response"]["allowed"]


def test_a_worker_that_dies_is_replaced(files: selfsigned.Files, policy: Path) -> None:
    with started(files, "--policy", policy) as server:
        worker = int(subprocess.check_output(["pgrep", "-P", str(server.process.pid)], text=True))
        subprocess.run(["kill", "-KILL", str(worker)], check=True)
        server.event(lambda line: line["event"] == "ready")
        with connected(server) as connection:
            assert post(connection, MUTATE, encoded(pod()))[0].status == 200
        assert server.plain("/readyz") == (200, "ok\n")


def test_what_is_wrong_at_the_start_is_a_message_and_an_exit_code(tmp_path: Path) -> None:
    command = [COMMAND, "serve", "--policy", str(tmp_path / "none.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--cert" in done.stderr
    assert "Traceback" not in done.stderr


def test_demo() -> None:
    with spawned("--demo", "--port", "0", "--metrics-port", "0") as (process, lines):
        seen = _until_line(lines, "Ctrl-C")
        for part in ("admitted as changed", "admitted as written", "refused", "curl --cacert"):
            assert part in seen
        authority = Path(seen.split("--cacert ")[1].split()[0])
        assert authority.exists()
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE) == 0
        assert not authority.parent.exists()


def _until_line(lines: queue.Queue[str | None], part: str) -> str:
    seen = ""
    while part not in seen:
        line = lines.get(timeout=DEADLINE)
        assert line is not None, seen
        seen += line
    return seen

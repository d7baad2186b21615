"""What is found to be wrong before anything is served."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from tls import selfsigned
from webhook import server
from webhook.config.catalogue import catalog_directory
from webhook.server import ServeError, Settings, process


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: Any) -> None:
        raise AssertionError("it would have served")

    monkeypatch.setattr(process._Application, "run", run)


def problem(**settings: Any) -> str:
    with pytest.raises(ServeError) as caught:
        server.run(Settings(**{"host": "127.0.0.1", "port": 0, "metrics_port": 0} | settings))
    return str(caught.value)


def test_a_port_in_use(files: selfsigned.Files) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        pair = {"cert": files.cert, "key": files.key}
        assert f"127.0.0.1 port {port}" in (says := problem(**pair, port=port))
        assert "with --port" in says
        assert "with --metrics-port" in problem(**pair, metrics_port=port)


def test_an_address_that_is_none(files: selfsigned.Files) -> None:
    assert "no.such.host.invalid" in problem(host="no.such.host.invalid", cert=files.cert, key=files.key)


def test_no_certificate(files: selfsigned.Files) -> None:
    assert "--cert tls.crt" in problem()
    assert "--cert tls.crt" in problem(cert=files.cert)
    assert "leave out --cert" in problem(demo=True, cert=files.cert)


def test_a_certificate_that_does_not_load(files: selfsigned.Files, tmp_path: Path) -> None:
    assert str(files.cert) in problem(cert=files.cert, key=files.cert)
    assert "none.crt" in problem(cert=tmp_path / "none.crt", key=files.key)


def test_bad_files(files: selfsigned.Files, policy: Path) -> None:
    policy.write_text(policy.read_text().replace("builtinClasses", "buildinClasses").replace("strict", "stirct"))
    says = problem(cert=files.cert, key=files.key, policy=policy)
    assert f"{policy}:5: spec.mode" in says
    assert f"{policy}:6: spec.buildinClasses" in says


def test_a_demo_of_ones_own_classes(tmp_path: Path) -> None:
    shipped = catalog_directory() / "classes" / "dgx-h100.yaml"
    mine = tmp_path / "mine.yaml"
    mine.write_text(shipped.read_text().replace("name: dgx-h100", "name: mine"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        says = problem(demo=True, classes=(mine,), port=other.getsockname()[1])
    assert "with --port" in says  # and nothing of a built-in class with the same selector


def test_a_demo_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as other:
        problem(demo=True, port=other.getsockname()[1])
    assert list(tmp_path.iterdir()) == []

from __future__ import annotations

import shutil
import socket
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tls import selfsigned
from webhook.server import sockets


@pytest.fixture
def conf(tmp_path: Path) -> Any:
    files = selfsigned.create(tmp_path)
    return SimpleNamespace(certfile=files.cert, keyfile=files.key, ca=files.ca)


def load(conf: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(conf.certfile, conf.keyfile)
    return context


def test_one_context_while_the_files_stay(conf: Any) -> None:
    cache = sockets.ContextCache()
    assert cache(conf, lambda: load(conf)) is cache(conf, lambda: load(conf))


def test_another_pair_another_context(conf: Any, tmp_path: Path) -> None:
    cache = sockets.ContextCache()
    first = cache(conf, lambda: load(conf))
    other = selfsigned.create(tmp_path / "other")
    shutil.copy(other.key, conf.keyfile)
    assert cache(conf, lambda: load(conf)) is first, "certificate and key do not belong together"
    shutil.copy(other.cert, conf.certfile)
    assert cache(conf, lambda: load(conf)) is not first


def test_files_that_vanish(conf: Any) -> None:
    cache = sockets.ContextCache()
    first = cache(conf, lambda: load(conf))
    conf.certfile.unlink()
    assert cache(conf, lambda: load(conf)) is first


def test_no_first_pair(conf: Any) -> None:
    conf.certfile.unlink()
    with pytest.raises(FileNotFoundError):
        sockets.ContextCache()(conf, lambda: load(conf))


def test_blocking_is_bounded(conf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context = sockets.ContextCache()(conf, lambda: load(conf))
    ours, theirs = socket.socketpair()
    with ours, theirs, context.wrap_socket(ours, server_side=True, do_handshake_on_connect=False) as wrapped:
        assert wrapped.gettimeout() == sockets.IO_SECONDS
        wrapped.setblocking(False)
        assert wrapped.gettimeout() == 0
        wrapped.setblocking(True)
        assert wrapped.gettimeout() == sockets.IO_SECONDS
        monkeypatch.setattr(sockets, "REQUEST_SECONDS", -1.0)
        wrapped.setblocking(True)
        with pytest.raises(ConnectionResetError):
            wrapped.recv(1)

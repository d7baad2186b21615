"""The server process: files, sockets, gunicorn.

Everything that can be wrong at the start (files, ports, certificate) is found before gunicorn forks, so that it is one message
and an exit code.
"""

from __future__ import annotations

import gc
import os
import shutil
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from werkzeug.serving import WSGIRequestHandler, make_server

from webhook.config.live import Live, Status
from webhook.core.dra.references import Lookup
from webhook.server import gunicorn_config, logs
from webhook.server.app import create_app, create_plain_app
from webhook.server.drift import Drift
from webhook.server.expiry import Expiry
from webhook.server.health import Drain
from webhook.server.metrics import Metrics, follow
from webhook.server.settings import ServeError, Settings

BACKLOG = 512

PLAIN_SECONDS = 5.0
"""Longest wait for one read or write on the plain port."""


@dataclass(frozen=True, slots=True)
class _Server:
    """What the worker needs; made before the fork."""

    settings: Settings
    live: Live
    metrics: Metrics
    drain: Drain
    port: int
    plain: socket.socket

    def app(self) -> Flask:
        return create_app(self.live, self.metrics, self.drain, with_echo=self.settings.echo)

    def on_worker(self, worker: Any) -> None:
        """Start what runs beside the webhook: threads do not survive a fork, so the worker starts them."""
        self.live.subscribe(_report(self.metrics))
        self.live.start()
        if self.settings.cert:
            follow(self.metrics.cert_expiry, Expiry(self.settings.cert))
        if self.settings.drift_file:
            follow(self.metrics.webhook_drift, Drift(self.settings.drift_file))
        self._serve_plain()
        logs.logger("server").info("ready", port=self.port, metrics_port=self.plain.getsockname()[1])
        if self.settings.demo and worker.age == 1:  # not again where a worker had to be replaced
            self._show_demo()

    def _show_demo(self) -> None:
        from rich.console import Console  # noqa: PLC0415  a demo's only

        from webhook.server import demo  # noqa: PLC0415

        assert self.settings.ca is not None  # noqa: S101  `_certificate` made it
        place = demo.Place(self.port, self.plain.getsockname()[1], self.settings.ca)
        threading.Thread(target=demo.show, args=(place, Console()), name="demo", daemon=True).start()

    def _serve_plain(self) -> None:
        logs.quiet_werkzeug()
        app = create_plain_app(self.live, self.metrics, self.drain)
        host, port = self.plain.getsockname()[:2]
        server = make_server(host, port, app, threaded=True, request_handler=_PlainHandler, fd=self.plain.fileno())
        threading.Thread(target=server.serve_forever, name="plain-port", daemon=True).start()


class _PlainHandler(WSGIRequestHandler):
    """Serves one request of the plain port; a peer that stalls is let go."""

    timeout = PLAIN_SECONDS


def _report(metrics: Metrics) -> Callable[[Status], None]:
    """Return what tells metrics and log how the last look at the files went."""
    log = logs.logger("config")

    def report(status: Status) -> None:
        metrics.config_reload_success.set(float(status.ok))
        for warning in status.warnings:
            log.warning("file", problem=str(warning))
        for error in status.errors:
            log.error("file", problem=str(error), in_force=status.generation)
        if status.ok:
            log.info("in force", generation=status.generation)

    return report


class _Application(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn told by arguments alone: no command line, no configuration file, no environment."""

    def __init__(self, options: dict[str, Any], load: Callable[[], Flask]) -> None:
        self._options, self._load = options, load
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return self._load()


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; see `webhook.server.run`."""
    logs.configure(_log_level(settings))
    with _certificate(settings) as settings, ExitStack() as stack:
        live = _load(settings)
        tls = stack.enter_context(_listen(settings.host, settings.port, "--port"))
        plain = stack.enter_context(_listen(settings.host, settings.metrics_port, "--metrics-port"))
        server = _Server(settings, live, Metrics(), Drain(settings.drain_file), tls.getsockname()[1], plain)
        # gunicorn closes the descriptor it is given, so it must be nobody else's
        options = gunicorn_config.options(settings, tls.detach(), server.drain, server.on_worker)
        gc.freeze()  # what is there now is shared with the worker for as long as nothing touches it
        _Application(options, server.app).run()


def _log_level(settings: Settings) -> str:
    """A demo prints its own account of each decision."""
    return "warning" if settings.demo and settings.log_level == "info" else settings.log_level


def _load(settings: Settings) -> Live:
    live = Live(
        policy=settings.policy,
        classes=settings.classes,
        all_builtin=settings.demo and not settings.classes,
        every=settings.reload_seconds,
        lookup=_lookup(settings.lookup_claims) if settings.lookup_claims else None,
        limits=settings.limits_file,
    )
    if live.status.errors:
        raise ServeError("\n".join(map(str, live.status.errors)))
    return live


def _lookup(socket_file: Path) -> Lookup:
    from webhook.cluster.claims import CachedLookup  # noqa: PLC0415  for those who look claims up
    from webhook.cluster.relay import RelayClient  # noqa: PLC0415

    return CachedLookup(RelayClient(socket_file))


@contextmanager
def _certificate(settings: Settings) -> Iterator[Settings]:
    """Yield the settings with a certificate that loads: the one named, or in a demo one of our own."""
    if not settings.demo:
        if settings.cert is None or settings.key is None:
            raise ServeError("name the serving certificate and its key: --cert tls.crt --key tls.key (--demo makes its own)")
        _try_certificate(settings.cert, settings.key)
        _try_authorities(settings.client_ca)
        yield settings
        return
    if settings.cert or settings.key:
        raise ServeError("--demo makes a certificate of its own; leave out --cert and --key")
    from tls import selfsigned  # noqa: PLC0415  a demo's only

    directory, owner = Path(tempfile.mkdtemp(prefix="numalign-")), os.getpid()
    try:
        files = selfsigned.create(directory)
        yield replace(settings, cert=files.cert, key=files.key, ca=files.ca)
    finally:
        if os.getpid() == owner:  # the worker leaves through here, too
            shutil.rmtree(directory, ignore_errors=True)


def _try_certificate(cert: Path, key: Path) -> None:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key)
    except OSError as error:
        raise ServeError(f"the certificate {cert} with the key {key} does not load: {error}") from error


def _try_authorities(file: Path | None) -> None:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=file)
    except OSError as error:
        raise ServeError(f"the clients' authorities in {file} do not load: {error}") from error


def _listen(host: str, port: int, option: str) -> socket.socket:
    """Return a listening socket on all addresses (empty host) or one."""
    every = not host
    family = socket.AF_INET6 if ":" in host or (every and socket.has_dualstack_ipv6()) else socket.AF_INET
    try:
        return socket.create_server(
            (host, port), family=family, backlog=BACKLOG, dualstack_ipv6=every and family == socket.AF_INET6
        )
    except OSError as error:
        where = f"{host or 'all addresses'} port {port}"
        raise ServeError(f"cannot listen on {where}: {error.strerror}; choose another port with {option}") from error

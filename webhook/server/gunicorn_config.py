"""gunicorn's settings, and why they differ from its defaults.

One process with threads: metrics need no shared files, and scale comes from replicas. The plain port and the thread that
re-reads the files live in the worker, since the arbiter only forks and waits.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from typing import Any

from gunicorn.glogging import Logger

from webhook.server.health import Drain
from webhook.server.logs import stdlib_formatter
from webhook.server.settings import Settings
from webhook.server.sockets import ContextCache

KEEP_ALIVE_SECONDS = 100
"""The API server drops an idle connection after 90 s; a server that drops it earlier makes calls fail, and it retries no POST."""

GRACEFUL_SECONDS = 20
"""Time for requests under way after SIGTERM. The API server waits 3 s for one; with a preStop of 10 s it fits into 30 s."""

_LIMITS = {"limit_request_line": 1024, "limit_request_fields": 50}
"""The API server's requests have short paths and a dozen headers."""


class JsonLogger(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's logger with our lines. Its access log stays off: every request has its decision's line."""

    def setup(self, cfg: Any) -> None:
        """Replace the formatter of gunicorn's handlers."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(stdlib_formatter())


def options(settings: Settings, fd: int, drain: Drain, on_worker: Callable[[Any], None]) -> dict[str, Any]:
    """Return gunicorn's settings for a listening socket `fd`; `on_worker` runs in the worker before it serves."""
    return {
        "bind": [f"fd://{fd}"],
        "workers": 1,
        "worker_class": "webhook.server.worker.PatientWorker",
        "threads": settings.threads,
        "keepalive": KEEP_ALIVE_SECONDS,
        "graceful_timeout": GRACEFUL_SECONDS,
        "max_requests": 0,  # a recycled worker would close the API server's pooled connections
        "certfile": str(settings.cert),
        "keyfile": str(settings.key),
        "ssl_context": ContextCache(),
        **_clients(settings),
        "control_socket_disable": True,  # it would be a file in $HOME, on a read-only root
        "worker_tmp_dir": _memory_directory(),
        "logger_class": JsonLogger,
        "loglevel": "warning" if settings.log_level == "info" else settings.log_level,
        "proc_name": "numalign",
        "pre_request": _closing_while(drain),
        "post_worker_init": on_worker,
        **_LIMITS,
    }


def _clients(settings: Settings) -> dict[str, Any]:
    """Whom to answer: the API server shows a certificate where its admission configuration names one."""
    if settings.client_ca is None:
        return {}
    return {"ca_certs": str(settings.client_ca), "cert_reqs": int(ssl.CERT_REQUIRED)}


def _memory_directory() -> str | None:
    # the worker's heartbeat is a file; on a disk it can stall
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


def _closing_while(drain: Drain) -> Callable[[Any, Any], None]:
    def pre_request(_worker: Any, request: Any) -> None:
        if drain.under_way:
            request.force_close()

    return pre_request

"""Probes and metrics."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from flask import Blueprint, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from webhook.config.live import Live
from webhook.server.metrics import Metrics


class Drain:
    """Whether the pod is on its way out: a file that the preStop hook creates, before the process gets SIGTERM.

    Meanwhile we are not ready and answer with `Connection: close`, so that clients move elsewhere while we still serve.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @property
    def under_way(self) -> bool:
        """Tell whether the file exists."""
        return self._file is not None and self._file.exists()


def probes(live: Live, drain: Drain) -> Blueprint:
    """Return `/healthz` (the process serves) and `/readyz` (it should get requests).

    A bad file does not make a replica unready: an older set is in force, and without any replica no GPU pod could be created.
    The text says so, the metric `config_reload_success` raises the alarm.
    """
    made = Blueprint("probes", __name__)

    @made.get("/healthz")
    def healthz() -> Response:
        return _text(HTTPStatus.OK, "ok")

    @made.get("/readyz")
    def readyz() -> Response:
        if drain.under_way:
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, "draining")
        status = live.status
        if status.generation == 0:
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, f"no policy and node classes in force:\n{status.last_error}")
        if not status.ok:
            return _text(HTTPStatus.OK, f"ok, but the files on disk are bad and an older set is in force:\n{status.last_error}")
        return _text(HTTPStatus.OK, "ok")

    return made


def scrapes(metrics: Metrics) -> Blueprint:
    """Return `/metrics`."""
    made = Blueprint("scrapes", __name__)

    @made.get("/metrics")
    def scrape() -> Response:
        return Response(generate_latest(metrics.registry), content_type=CONTENT_TYPE_LATEST)

    return made


def _text(status: HTTPStatus, text: str) -> Response:
    return Response(f"{text}\n", status, mimetype="text/plain")

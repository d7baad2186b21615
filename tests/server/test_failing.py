"""What becomes of a request when we fail: a pod never waits or is refused for it, and those who run us learn of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from flask.testing import FlaskClient
from structlog.testing import capture_logs

from tests.server.reviews import encoded, pod
from webhook.config.live import Live
from webhook.server import review
from webhook.server.app import create_app
from webhook.server.health import Drain
from webhook.server.metrics import Metrics

PATHS = {
    review.Handler.MUTATE: "/mutate/pods/strict",
    review.Handler.VALIDATE: "/validate/pods/strict",
    review.Handler.ADVISE: "/advise/workloads",
}


@pytest.fixture(autouse=True)
def plain_logging() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def broken(*_: Any) -> Any:
    raise KeyError("a secret of the implementation")


@pytest.mark.parametrize(("handler", "path"), PATHS.items())
def test_an_exception_in_a_decision(live: Live, monkeypatch: pytest.MonkeyPatch, handler: review.Handler, path: str) -> None:
    monkeypatch.setitem(review._DECIDE, handler, broken)  # type: ignore[arg-type]
    metrics = Metrics()
    client = create_app(live, metrics, Drain(None)).test_client()
    with capture_logs() as lines:
        answer = client.post(path, data=encoded(pod(8)), content_type="application/json", buffered=True)
    response = json.loads(answer.data)["response"]
    assert answer.status_code == 200
    assert response["allowed"]
    assert "patch" not in response
    assert response["warnings"] == [
        "numalign: an internal error kept it from being judged; admitted as written, see the webhook's log"
    ]
    assert "secret" not in answer.text
    labels = {"handler": handler, "mode": "strict", "outcome": "error", "reason": "InternalError", "dry_run": "false"}
    assert metrics.registry.get_sample_value("numalign_decisions_total", labels) == 1
    (line,) = lines
    assert (line["log_level"], line["outcome"]) == ("error", "error")
    assert isinstance(line["exc_info"], KeyError)


class Broken:
    """A set in force that cannot be read."""

    def current(self) -> Any:
        raise OSError("gone")


def test_an_exception_around_it() -> None:
    client: FlaskClient = create_app(Broken(), Metrics(), Drain(None)).test_client()  # type: ignore[arg-type]
    with capture_logs() as lines:
        answer = client.post(PATHS[review.Handler.MUTATE], data=encoded(pod()), content_type="application/json")
    assert (answer.status_code, answer.text) == (503, "not available at the moment, see the log\n")
    assert isinstance(lines[-1]["exc_info"], OSError)


def test_not_ready_before_anything_good_was_loaded(tmp_path: Path) -> None:
    live = Live(tmp_path / "none.yaml")
    client = create_app(live, Metrics(), Drain(None)).test_client()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "none.yaml" in answer.text
    assert client.get("/healthz").status_code == 200

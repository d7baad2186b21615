"""The short way past Flask gives the answers of the long way."""

from __future__ import annotations

from io import BytesIO

import pytest

from tests.server.reviews import encoded, pod
from webhook.config.live import Live
from webhook.server.app import BODY_LIMIT, create_app
from webhook.server.health import Drain
from webhook.server.metrics import Metrics
from webhook.server.review import ROUTES

BODIES = {"a review": encoded(pod()), "no JSON": b"{", "nothing": b"", "no review": b"[1]"}
UNMEASURED = {"CONTENT_LENGTH": "", "wsgi.input_terminated": True}
"""A body without a length, as when it comes in chunks."""


@pytest.mark.parametrize("path", [*ROUTES, "/none"])
@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_both_ways_give_one_answer(live: Live, path: str, content_type: str, body: bytes) -> None:
    client = create_app(live, Metrics(), Drain(None)).test_client()
    short = client.post(path, data=body, content_type=content_type)
    long = client.post(path, input_stream=BytesIO(body), content_type=content_type, environ_overrides=UNMEASURED)
    assert (short.status_code, short.data, dict(short.headers)) == (long.status_code, long.data, dict(long.headers))


def test_a_decision_is_counted_once_on_either_way(live: Live) -> None:
    metrics = Metrics()
    client = create_app(live, metrics, Drain(None)).test_client()
    for overrides in ({}, UNMEASURED):
        stream = BytesIO(BODIES["a review"])
        length = {} if overrides else {"CONTENT_LENGTH": str(len(BODIES["a review"]))}
        client.post(
            "/mutate/pods/strict",
            input_stream=stream,
            content_type="application/json",
            environ_overrides=overrides or length,
            buffered=True,
        )
    samples = [each for metric in metrics.registry.collect() for each in metric.samples]
    assert sum(each.value for each in samples if each.name == "numalign_decisions_total") == 2


def test_what_is_too_long_is_not_read(live: Live) -> None:
    client = create_app(live, Metrics(), Drain(None)).test_client()
    too_long = {"CONTENT_LENGTH": str(BODY_LIMIT + 1)}
    answer = client.post("/mutate/pods/strict", input_stream=BytesIO(b"{}"), environ_overrides=too_long)
    assert answer.status_code == 413

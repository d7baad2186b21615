"""What is counted, whoever posts what."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.server.reviews import encoded, pod
from tests.unit.core.dra.claiming import claim, request
from webhook.config.live import Live
from webhook.core.decision import Decision
from webhook.core.policy import Mode
from webhook.server import review
from webhook.server.admission import recorder
from webhook.server.app import create_plain_app
from webhook.server.health import Drain
from webhook.server.metrics import Metrics


@pytest.fixture
def scraped(live: Live) -> Callable[[Metrics], str]:
    """What Prometheus gets."""
    return lambda metrics: create_plain_app(live, metrics, Drain(None)).test_client().get("/metrics").text


def test_claims_are_counted_apart_from_pods(live: Live, scraped: Callable[[Metrics], str]) -> None:
    metrics = Metrics()
    record, current = recorder(metrics), live.current()
    for path, obj in (("/mutate/pods/strict", pod()), ("/mutate/resourceclaims/strict", claim(request("gpu", 2)))):
        record(review.ROUTES[path], review.answer(path, encoded(obj), current), 0.001)
    counted = [line for line in scraped(metrics).splitlines() if line.startswith("numalign_decisions_total")]
    assert sorted(re.findall('handler="([a-z-]+)"', "".join(counted))) == ["mutate", "mutate-claim"]


@pytest.mark.parametrize(("handler", "counts"), [("validate", 1), ("validate-claim", 1), ("mutate-claim", 0)])
def test_what_strict_would_refuse_is_counted_once(scraped: Callable[[Metrics], str], handler: str, counts: int) -> None:
    metrics = Metrics()
    refused = Decision(allowed=True, mode=Mode.AUDIT, outcome="would-refuse", reason="NotOnOneNode")
    metrics.observe(handler, "team-a", refused, dry_run=False, seconds=0.001)
    assert scraped(metrics).count('numalign_would_refuse_total{namespace="team-a"} 1.0') == counts


@pytest.mark.parametrize(("namespace", "label"), [("team-a", "team-a"), ("\ud800", ""), ("A b", ""), ("x" * 64, ""), ("", "")])
def test_what_is_no_namespace_is_no_label(live: Live, namespace: str, label: str) -> None:
    metrics = Metrics()
    refused = Decision(allowed=True, mode=Mode.AUDIT, outcome="would-refuse", reason="TopologyAffinityError")
    metrics.observe("validate", namespace, refused, dry_run=False, seconds=0.001)
    answer = create_plain_app(live, metrics, Drain(None)).test_client().get("/metrics")
    assert answer.status_code == 200
    assert f'numalign_would_refuse_total{{namespace="{label}"}} 1.0' in answer.text

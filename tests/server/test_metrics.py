"""What is counted, whoever posts what."""

from __future__ import annotations

import pytest

from webhook.config.live import Live
from webhook.core.decision import Decision
from webhook.core.policy import Mode
from webhook.server.app import create_plain_app
from webhook.server.health import Drain
from webhook.server.metrics import Metrics


@pytest.mark.parametrize(("namespace", "label"), [("team-a", "team-a"), ("\ud800", ""), ("A b", ""), ("x" * 64, ""), ("", "")])
def test_what_is_no_namespace_is_no_label(live: Live, namespace: str, label: str) -> None:
    metrics = Metrics()
    refused = Decision(allowed=True, mode=Mode.AUDIT, outcome="would-refuse", reason="TopologyAffinityError")
    metrics.observe("validate", namespace, refused, dry_run=False, seconds=0.001)
    answer = create_plain_app(live, metrics, Drain(None)).test_client().get("/metrics")
    assert answer.status_code == 200
    assert f'numalign_would_refuse_total{{namespace="{label}"}} 1.0' in answer.text

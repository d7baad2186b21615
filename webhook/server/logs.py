"""Structured logs: one JSON object a line on standard output, one line a decision. gunicorn's lines look the same, on stderr."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

import structlog

from webhook.config.envelope import Envelope
from webhook.core.decision import Decision
from webhook.server.lines import Lines

_SHARED: tuple[structlog.typing.Processor, ...] = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


class _Sink:
    """What structlog calls with each line."""

    def __init__(self, lines: Lines) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = lines.put


_encode = json.JSONEncoder(default=str).encode


def _serialize(fields: Any, **_: Any) -> str:
    return _encode(fields)


def configure(level: str = "info") -> None:
    """Send structlog's lines to standard output as JSON, from `level` on."""
    sink = _Sink(Lines(sys.stdout))
    structlog.configure(
        processors=[*_SHARED, structlog.processors.JSONRenderer(_serialize)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: sink,
        cache_logger_on_first_use=True,
    )


def decision_fields(handler: str, call: Envelope, decision: Decision, seconds: float) -> Mapping[str, Any]:
    """Return the fields of the line about one decision."""
    return {
        "handler": handler,
        "uid": call.uid,
        "namespace": call.namespace,
        "name": call.name,
        "mode": decision.mode,
        "outcome": decision.outcome,
        "reason": decision.reason,
        "verdicts": {name: verdict.outcome for name, verdict in decision.verdicts.items()},
        "dry_run": call.dry_run,
        "milliseconds": round(seconds * 1000, 3),
    }


def stdlib_formatter() -> logging.Formatter:
    """Return the formatter that makes such lines of the standard library's records."""
    before = [*_SHARED, structlog.stdlib.add_logger_name]
    return structlog.stdlib.ProcessorFormatter(processor=structlog.processors.JSONRenderer(_serialize), foreign_pre_chain=before)


def logger(name: str) -> Any:
    """Return a logger; lines before `configure` go to structlog's default."""
    return structlog.get_logger(component=name)


def quiet_werkzeug() -> None:
    """Keep werkzeug's request lines (probes, scrapes) out of the log."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)

"""The admission paths: all of `review.ROUTES`, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable

from flask import Blueprint, Response, request

from webhook.config.live import Live
from webhook.server import logs, review
from webhook.server.metrics import Metrics


def blueprint(live: Live, metrics: Metrics) -> Blueprint:
    """Return the blueprint of all admission paths."""
    made = Blueprint("admission", __name__)
    record = _recorder(metrics)
    for path, route in review.ROUTES.items():
        made.add_url_rule(path, path, _view(route, live, record), methods=["POST"], provide_automatic_options=False)
    return made


_Record = Callable[[review.Route, review.Answer, float], None]


def _view(route: review.Route, live: Live, record: _Record) -> Callable[[], Response]:
    def view() -> Response:
        body = request.get_data(cache=False)
        started = time.perf_counter()
        answer = review.reply(route, body, live.current(), request.content_type or "")
        seconds = time.perf_counter() - started
        response = Response(answer.body, answer.status, content_type=answer.content_type)
        response.call_on_close(lambda: record(route, answer, seconds))  # when it is sent: no pod waits for a line in a log
        return response

    return view


def _recorder(metrics: Metrics) -> _Record:
    log = logs.logger("decision")

    def record(route: review.Route, answer: review.Answer, seconds: float) -> None:
        call, decision = answer.call, answer.decision
        if call is None or decision is None:
            log.warning("no AdmissionReview", status=int(answer.status), problem=answer.body.decode().strip())
            return
        metrics.observe(route.handler, call.namespace, decision, dry_run=call.dry_run, seconds=seconds)
        fields = logs.decision_fields(route.handler, call, decision, seconds)
        if answer.error is not None:
            log.error("decision", **fields, exc_info=answer.error)
        else:
            log.info("decision", **fields)

    return record

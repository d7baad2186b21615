"""The admission paths: all of `review.ROUTES`, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from flask import Blueprint, Flask, Response, request

from webhook.config.live import Live
from webhook.server import logs, review
from webhook.server.metrics import Metrics

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class Direct:
    """Answers an API server's usual request before Flask does, whose routing and objects cost twice what a decision does.

    What is not usual (another method, a body without a length or one that is too long) goes on to Flask, as all other paths do.
    """

    def __init__(self, app: Flask, live: Live, metrics: Metrics) -> None:
        self._app, self._rest, self._limit = app, app.wsgi_app, int(app.config["MAX_CONTENT_LENGTH"])
        self._live, self._record = live, recorder(metrics)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        route, length = review.ROUTES.get(environ["PATH_INFO"]), environ.get("CONTENT_LENGTH") or ""
        if route is None or environ["REQUEST_METHOD"] != "POST" or not length.isdecimal() or int(length) > self._limit:
            return self._rest(environ, start_response)
        try:
            answer, seconds = self._reply(route, environ, int(length))
        except Exception as error:  # noqa: BLE001  as Flask would
            with self._app.request_context(environ):
                return self._app.make_response(self._app.handle_user_exception(error))(environ, start_response)
        status = HTTPStatus(answer.status)
        headers = [("Content-Type", answer.content_type), ("Content-Length", str(len(answer.body)))]
        start_response(f"{status.value} {status.phrase}", headers)
        return _Sent(answer.body, partial(self._record, route, answer, seconds))

    def _reply(self, route: review.Route, environ: WSGIEnvironment, length: int) -> tuple[review.Answer, float]:
        body = environ["wsgi.input"].read(length)
        started = time.perf_counter()
        answer = review.reply(route, body, self._live.current(), environ.get("CONTENT_TYPE", ""))
        return answer, time.perf_counter() - started


class _Sent:
    """A body, and what is to be done when it is sent: no pod waits for a line in a log."""

    def __init__(self, body: bytes, then: Callable[[], None]) -> None:
        self._body, self._then = body, then

    def __iter__(self) -> Iterator[bytes]:
        return iter((self._body,))

    def close(self) -> None:
        """Called by the WSGI server after the last byte (PEP 3333)."""
        self._then()


def blueprint(live: Live, metrics: Metrics) -> Blueprint:
    """Return the blueprint of all admission paths."""
    made = Blueprint("admission", __name__)
    record = recorder(metrics)
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
        response.call_on_close(lambda: record(route, answer, seconds))
        return response

    return view


def recorder(metrics: Metrics) -> _Record:
    """Return what counts and logs a decision."""
    log = logs.logger("decision")

    def record(route: review.Route, answer: review.Answer, seconds: float) -> None:
        call, decision = answer.call, answer.decision
        if call is None or decision is None:
            log.warning("no AdmissionReview", status=int(answer.status), problem=answer.body.decode().strip())
            return
        metrics.observe(route.name, call.namespace, decision, dry_run=call.dry_run, seconds=seconds)
        fields = logs.decision_fields(route.name, call, decision, seconds)
        if answer.error is not None:
            log.error("decision", **fields, exc_info=answer.error)
        else:
            log.info("decision", **fields)

    return record

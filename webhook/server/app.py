"""The Flask applications: the webhook itself (behind TLS), and the plain one for probes and Prometheus."""

from __future__ import annotations

from http import HTTPStatus

from flask import Flask, Response, request
from gunicorn.http.errors import ParseException
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from webhook.config.live import Live
from webhook.server import admission, echo, health, logs
from webhook.server.metrics import Metrics

BODY_LIMIT = 7 * 1024**2
"""Bytes. The API server takes objects of 3 MiB; an update's review carries the old and the new one, and a little more."""


DISCARDED = 16 * 1024**2
"""Bytes of a body over the limit that are read all the same: a client that still writes when we close never sees the answer."""


def create_app(live: Live, metrics: Metrics, drain: health.Drain, *, with_echo: bool = False) -> Flask:
    """Return the webhook. `with_echo`: also answer POST /echo without judging, to measure against."""
    app = _flask()
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT
    app.register_blueprint(admission.blueprint(live, metrics))
    app.wsgi_app = admission.Direct(app, live, metrics)  # type: ignore[method-assign]
    app.register_blueprint(health.probes(live, drain))
    if with_echo:
        app.register_blueprint(echo.blueprint())
    return app


def create_plain_app(live: Live, metrics: Metrics, drain: health.Drain) -> Flask:
    """Return the application of the second, plain port: probes and metrics."""
    app = _flask()
    app.register_blueprint(health.probes(live, drain))
    app.register_blueprint(health.scrapes(metrics))
    return app


def _flask() -> Flask:
    app = Flask("numalign", static_folder=None)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(RequestEntityTooLarge, _too_large)
    app.register_error_handler(ParseException, _unreadable)
    app.register_error_handler(Exception, _unexpected)
    return app


def _http_error(error: HTTPException) -> Response:
    headers = [(k, v) for k, v in error.get_headers() if k in {"Allow", "Retry-After"}]
    return Response(f"{error.description}\n", error.code, headers, mimetype="text/plain")


def _too_large(error: RequestEntityTooLarge) -> Response:
    stream, left = request.environ["wsgi.input"], DISCARDED
    while left > 0 and (read := len(stream.read(min(left, 65536)))):
        left -= read
    return _http_error(error)


def _unreadable(error: ParseException) -> Response:
    """A body may turn out to be no HTTP while it is read: chunks whose sizes are none."""
    return Response(f"{error}\n", HTTPStatus.BAD_REQUEST, {"Connection": "close"}, mimetype="text/plain")


def _unexpected(error: Exception) -> Response:
    # review.answer handles what goes wrong in a decision; this is for what goes wrong around it
    logs.logger("server").error("unexpected error", exc_info=error)
    return Response("not available at the moment, see the log\n", HTTPStatus.SERVICE_UNAVAILABLE, mimetype="text/plain")

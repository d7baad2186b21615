"""A handler that allows everything: what serving costs without a decision. For benchmarks only."""

from __future__ import annotations

import json

from flask import Blueprint, Response, request

from webhook.core.decision import Decision
from webhook.core.policy import Mode
from webhook.server import response


def blueprint() -> Blueprint:
    """Return `POST /echo`: reads the review as JSON and allows it under its uid."""
    made = Blueprint("echo", __name__)

    @made.post("/echo")
    def echo() -> Response:
        uid = json.loads(request.get_data(cache=False))["request"]["uid"]
        allowed = Decision(allowed=True, mode=Mode.OFF, outcome="echo")
        return Response(response.encode(uid, allowed, may_patch=False), content_type="application/json")

    return made

"""From the bytes of an AdmissionReview to the bytes of the answer, without a framework: the command line answers with it, too.

What is no AdmissionReview at all gets a 4xx, on which the API server applies the webhook's failurePolicy. Everything else is
answered with its uid; what we cannot judge is allowed as written, with a warning, because a failure of ours is never a reason
to refuse a pod.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from webhook.config.envelope import Envelope, EnvelopeError, load
from webhook.core import decide
from webhook.core.decision import Decision, Request
from webhook.core.dra import decide as claims
from webhook.core.policy import effective_mode
from webhook.server import response


class Handler(StrEnum):
    """What the API server asks of us."""

    MUTATE = "mutate"
    VALIDATE = "validate"
    ADVISE = "advise"


@dataclass(frozen=True, slots=True)
class Route:
    """What a path asks. `label`: the namespace's mode that the path carries; None: the default. `kind`: of the objects."""

    handler: Handler
    label: str | None = None
    kind: str = "Pod"

    @property
    def name(self) -> str:
        """Return the handler as log and metrics call it, where claims are apart from pods."""
        return f"{self.handler}-claim" if self.kind == _CLAIM else self.handler


_CLAIM = "ResourceClaim"


def _routes(resource: str, kind: str) -> dict[str, Route]:
    labels = {"strict": "strict", "best-effort": "best-effort", "audit": "audit", "default": None}
    handlers = (Handler.MUTATE, Handler.VALIDATE)
    return {
        f"/{handler}/{resource}/{word}": Route(handler, label, kind) for handler in handlers for word, label in labels.items()
    }


ROUTES: Mapping[str, Route] = {
    **_routes("pods", "Pod"),
    **_routes("resourceclaims", _CLAIM),
    "/advise/workloads": Route(Handler.ADVISE, kind=""),
}

_UID_FIRST = re.compile(rb'[^{]*\{[^{]*"request"\s*:\s*\{\s*"uid"\s*:\s*"([0-9A-Za-z-]{1,64})"')


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)

_Decide = Callable[[Mapping[str, Any], Request, decide.Snapshot], Decision]
_DECIDE: Mapping[Handler, _Decide] = {
    Handler.MUTATE: decide.mutate,
    Handler.VALIDATE: decide.validate,
    Handler.ADVISE: decide.advise,
}
_ON_CLAIMS: Mapping[Handler, _Decide] = {Handler.MUTATE: claims.mutate_claim, Handler.VALIDATE: claims.validate_claim}


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back, and what the log and the metrics say about it.

    Attributes:
        status: HTTP status; 200 whenever `body` is an AdmissionReview, else 4xx and a line of text.
        call: the request as its envelope says; None where there was none.
        decision: None where `call` is.
        error: the exception that kept us from judging; its traceback is for the log, never for the client.
    """

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"
    call: Envelope | None = None
    decision: Decision | None = None
    error: Exception | None = None


def answer(path: str, body: bytes, snapshot: decide.Snapshot, content_type: str = "application/json") -> Answer:
    """Return the server's answer to a POST of `body` to `path` (a query such as `?timeout=2s` is ignored). Never raises."""
    route = ROUTES.get(path.partition("?")[0])
    if route is None:
        return refusal(HTTPStatus.NOT_FOUND, f"no such path; there are {', '.join(ROUTES)}")
    return reply(route, body, snapshot, content_type)


def reply(route: Route, body: bytes, snapshot: decide.Snapshot, content_type: str = "application/json") -> Answer:
    """Return the answer to `body` on a known path. Never raises."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        return refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send an AdmissionReview as application/json")
    try:
        call = load(_DECODER.decode(body.decode()))
    except RecursionError:
        return _too_deep(route, body, snapshot)
    except EnvelopeError as error:
        return refusal(HTTPStatus.BAD_REQUEST, str(error))
    except ValueError as error:
        return refusal(HTTPStatus.BAD_REQUEST, f"the body is no JSON: {error}")
    return _decided(route, call, snapshot)


def refusal(status: HTTPStatus, text: str) -> Answer:
    """Return a 4xx with one line of text."""
    return Answer(status, f"{text}\n".encode(), "text/plain; charset=utf-8")


def _decided(route: Route, call: Envelope, snapshot: decide.Snapshot) -> Answer:
    may_patch = route.handler is Handler.MUTATE
    try:
        decide_on = (_ON_CLAIMS if route.kind == _CLAIM else _DECIDE)[route.handler]
        decision = _unusable(route, call, snapshot) or decide_on(call.object, _request(route, call), snapshot)
        return Answer(HTTPStatus.OK, response.encode(call.uid, decision, may_patch=may_patch), call=call, decision=decision)
    except Exception as error:  # noqa: BLE001  whatever it is: a pod must not wait or be refused for it
        return _not_judged(route, call, snapshot, error)


def _request(route: Route, call: Envelope) -> Request:
    old = call.old_object if route.handler is Handler.VALIDATE and call.operation == "UPDATE" else None
    return Request(call.namespace, call.user, route.label, call.dry_run, old)


def _is_judged(route: Route, call: Envelope) -> bool:
    """Tell whether the operation can change what a kubelet decides; of a pod that exists only a resize can."""
    if call.operation == "UPDATE":
        return route.handler is Handler.ADVISE or (route.handler is Handler.VALIDATE and call.sub_resource == "resize")
    return call.operation == "CREATE"


def _unusable(route: Route, call: Envelope, snapshot: decide.Snapshot) -> Decision | None:
    """Return the decision on what is nothing to decide on, else None."""
    if not _is_judged(route, call):
        return _as_written(route, snapshot, "not-ours", "Operation")
    if not isinstance(call.object, Mapping):
        return _as_written(route, snapshot, "malformed", "NoObject", "the review carries no object; nothing was judged")
    if route.handler is Handler.VALIDATE and call.operation == "UPDATE" and not isinstance(call.old_object, Mapping):
        return _as_written(route, snapshot, "malformed", "NoOldObject", "the review carries no old object; nothing was judged")
    kind = call.object.get("kind", call.kind)
    if route.kind and kind != route.kind:
        text = f"expected a {route.kind}, got {str(kind)[:40]!r}; nothing was judged"
        return _as_written(route, snapshot, "malformed", f"No{route.kind}", text)
    return None


def _as_written(route: Route, snapshot: decide.Snapshot, outcome: str, reason: str, *warnings: str) -> Decision:
    mode, _ = effective_mode(snapshot.policy, route.label, {})
    return Decision(
        allowed=True, mode=mode, outcome=outcome, reason=reason, warnings=tuple(f"numalign: {text}" for text in warnings)
    )


def _not_judged(route: Route, call: Envelope, snapshot: decide.Snapshot, error: Exception) -> Answer:
    text = "an internal error kept it from being judged; admitted as written, see the webhook's log"
    decision = _as_written(route, snapshot, "error", "InternalError", text)
    return Answer(HTTPStatus.OK, response.encode(call.uid, decision, may_patch=False), call=call, decision=decision, error=error)


def _too_deep(route: Route, body: bytes, snapshot: decide.Snapshot) -> Answer:
    """Answer what nests too deeply to be read: under its uid, where that comes first, as the API server writes it."""
    found = _UID_FIRST.match(body)
    if found is None:
        return refusal(HTTPStatus.BAD_REQUEST, "the body nests too deeply")
    call = Envelope(uid=found[1].decode())
    decision = _as_written(route, snapshot, "malformed", "NestsTooDeeply", "the object nests too deeply; nothing was judged")
    return Answer(HTTPStatus.OK, response.encode(call.uid, decision, may_patch=False), call=call, decision=decision)

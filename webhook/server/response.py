"""Build the AdmissionReview that goes back to the API server: the one place that does.

What the API server checks in a response (uid, patch and patchType, no patch from validating webhooks) and does with the
rest of it (a warning is a header, an audit annotation's key is a qualified name) is in
staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go and pkg/endpoints/filters/warning.go.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from webhook.core.decision import Decision
from webhook.core.memo import Memo

API_VERSION = "admission.k8s.io/v1"

WARNING_LENGTH = 119
"""KEP-1693 asks for at most 120 characters a warning."""

WARNINGS_BUDGET = 4096
"""Code points of all warnings of one request that the API server passes on; past it each is cut to 256."""

_dumps = json.JSONEncoder(separators=(",", ":")).encode

_BEFORE_UID = f'{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","response":{{"uid":'.encode()

_encoded: Memo[tuple[Decision, bytes]] = Memo(1024)

_MORE = "numalign: more warnings left out"
_NOT_IN_KEY = re.compile(r"[^A-Za-z0-9_.-]+")


def encode(uid: str, decision: Decision, *, may_patch: bool) -> bytes:
    """Return the AdmissionReview, as JSON bytes, that tells the API server what was decided."""
    # what is decided on one shape of pod is one object, however often that shape comes; holding it keeps its id its own
    _, rest = _encoded.get((id(decision), may_patch), lambda: (decision, _after_uid(decision, may_patch=may_patch)))
    return _BEFORE_UID + _dumps(uid).encode() + rest


def _after_uid(decision: Decision, *, may_patch: bool) -> bytes:
    response = build("", decision, may_patch=may_patch)
    del response["uid"]
    return f",{_dumps(response)[1:]}}}".encode()


def build(uid: str, decision: Decision, *, may_patch: bool) -> dict[str, Any]:
    """Return `AdmissionReview.response`; absent parts are left out. `may_patch`: the caller is a mutating webhook."""
    response: dict[str, Any] = {"uid": uid, "allowed": decision.allowed}
    if not decision.allowed:
        response["status"] = _status(decision)
    elif decision.patch and may_patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_dumps(decision.patch).encode()).decode()
    if decision.warnings:
        response["warnings"] = warnings(decision.warnings)
    if decision.audit:
        response["auditAnnotations"] = audit_annotations(decision.audit)
    return response


def _status(decision: Decision) -> dict[str, Any]:
    """Return a metav1.Status. Its reason is what kubectl prints in brackets; ours go into the causes."""
    status: dict[str, Any] = {"status": "Failure", "code": 403, "reason": "Forbidden", "message": decision.message}
    if decision.causes:
        causes = [{"reason": c.reason, "message": c.message, "field": c.field} for c in decision.causes]
        status["details"] = {"causes": causes}
    return status


def warnings(texts: Iterable[str]) -> list[str]:
    """Return the warnings as the API server passes them on whole: each once, on one line, in budget."""
    kept: list[str] = []
    left = WARNINGS_BUDGET - len(_MORE)
    for text in dict.fromkeys(map(_one_line, texts)):
        if len(text) > left:
            return [*kept, _MORE]
        left -= len(text)
        kept.append(text)
    return kept


def _one_line(text: str) -> str:
    # a warning travels in an HTTP header, where control characters make the API server drop it
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " for c in text)
    clean = " ".join(text.split())
    return clean if len(clean) <= WARNING_LENGTH else clean[: WARNING_LENGTH - 1] + "…"


def audit_annotations(audit: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations with keys that are valid behind the webhook's name: `<webhook>/<key>`, key at most 63 long."""
    return {_NOT_IN_KEY.sub("-", key)[:63].strip("-_.") or "unnamed": str(value) for key, value in audit.items()}

"""The AdmissionReview envelope (admission.k8s.io/v1): what a handler needs of it, whatever else it carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from marshmallow import EXCLUDE, Schema, ValidationError, fields

from webhook.config.fields import REQUIRED, Choice, Expect, Flag, Text, flatten
from webhook.core.containers import field_path

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")


class EnvelopeError(ValueError):
    """The body is no AdmissionReview; the text names each field and what was expected."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A request as it came; `object` and `old_object` are raw, and may be anything that JSON can say.

    `resource` is the plural name (`pods`), `user` the name of who sent the object.
    """

    uid: str
    operation: str = ""
    resource: str = ""
    sub_resource: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    dry_run: bool = False
    object: Any = None
    old_object: Any = None


class _Optional(Expect[str]):
    """A text that may be absent or null."""

    expected = "a text"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(load_default="", allow_none=True, **kwargs)

    def convert(self, raw: Any) -> str:
        """Convert; see `Expect`."""
        if not isinstance(raw, str):
            raise self.refuse(raw)
        return raw


class _Member(_Optional):
    """One text of an object of which nothing else is needed."""

    def __init__(self, member: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._member = member
        self.expected = f"an object with the text {member!r}"

    def convert(self, raw: Any) -> str:
        """Convert; see `Expect`."""
        text = raw.get(self._member, "") if isinstance(raw, dict) else None
        if not isinstance(text, str):
            raise self.refuse(raw)
        return text


class _Loose(Schema):
    """Fields that we do not use are the API server's business."""

    class Meta:
        """Options of marshmallow."""

        unknown = EXCLUDE

    def __init__(self, expected: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error_messages["type"] = f"expected {expected}"


class _RequestSchema(_Loose):
    uid = Text("the uid of the request", required=True)
    operation = Choice(_OPERATIONS, required=True)
    resource = _Member("resource")
    sub_resource = _Optional(data_key="subResource")
    kind = _Member("kind")
    namespace = _Optional()
    name = _Optional()
    user = _Member("username", data_key="userInfo")
    dry_run = Flag(load_default=False, allow_none=True, data_key="dryRun")
    object = fields.Raw(load_default=None, allow_none=True)
    old_object = fields.Raw(load_default=None, allow_none=True, data_key="oldObject")


class _ReviewSchema(_Loose):
    api_version = Choice((API_VERSION,), required=True, data_key="apiVersion")
    kind = Choice((KIND,), required=True)
    request = fields.Nested(_RequestSchema("an object"), required=True, error_messages=REQUIRED)


_REVIEW: Final = _ReviewSchema("an AdmissionReview")
"""Making a schema costs more than using it."""


def load(body: Any) -> Envelope:
    """Return the request of a decoded AdmissionReview.

    Raises:
        EnvelopeError: if there is none, or it is none that we know.
    """
    return _usual(body) or _checked(body)


def _usual(body: Any) -> Envelope | None:
    """Return what an API server sends, in a tenth of the schema's time; None: something is odd, and the schema says what."""
    try:
        request = body["request"]
        texts = (
            request["uid"],
            request["operation"],
            request["resource"]["resource"],
            request.get("subResource", ""),
            request["kind"]["kind"],
            request.get("namespace", ""),
            request.get("name", ""),
            request["userInfo"].get("username", ""),
        )
        dry_run = request.get("dryRun", False)
        known = (body["apiVersion"], body["kind"]) == (API_VERSION, KIND) and request["operation"] in _OPERATIONS
        if not (known and request["uid"] and type(dry_run) is bool and all(type(text) is str for text in texts)):
            return None
        return Envelope(*texts, dry_run, request.get("object"), request.get("oldObject"))
    except (KeyError, TypeError, AttributeError):
        return None


def _checked(body: Any) -> Envelope:
    try:
        return Envelope(**{name: item for name, item in _REVIEW.load(body)["request"].items() if item is not None})
    except ValidationError as error:
        problems = (": ".join(filter(None, (field_path(path), text))) for path, text in flatten(error.messages))
        raise EnvelopeError("; ".join(problems)) from None

"""What a handler decided, as data: the server turns it into an AdmissionReview, the CLI into a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.core.policy import Mode
from webhook.core.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `status.details.causes`: the field to change, a stable word, and what would work."""

    field: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a decision needs of an admission request.

    Attributes:
        label: the namespace's mode as the request path carries it; None for `default`.
        old: the old object of an update (pods/resize), else None.
    """

    namespace: str = ""
    user: str = ""
    label: str | None = None
    dry_run: bool = False
    old: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a handler decided about one object.

    Attributes:
        outcome: a stable word for the metric label: `not-ours`, `exempt`, `malformed`, `undescribed`, `unchanged`, `mutated`,
            `allowed`, `warned`, `would-refuse`, `refused`.
        reason: a short stable word why (`NoAccelerator`, `TopologyAffinityError`, ...); empty where the outcome says it all.
        message: for people; set when refused (or would be).
        patch: JSON patch operations (RFC 6902); empty: no change.
        audit: audit annotations, keys without the webhook's prefix.
        verdicts: candidate class -> verdict, sorted by class name.
        injected_cpu: whole cores that the mutation added to the requests; `injected_memory`: bytes.
    """

    allowed: bool
    mode: Mode
    outcome: str
    reason: str = ""
    message: str = ""
    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, str] = field(default_factory=dict)
    patch: tuple[Mapping[str, Any], ...] = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    injected_cpu: float = 0.0
    injected_memory: int = 0

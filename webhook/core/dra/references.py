"""What a pod's claims refer to, and who can look it up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from webhook.core.dra.devices import Json

TEMPLATE: Final = "ResourceClaimTemplate"
CLAIM: Final = "ResourceClaim"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""What no object can be called is not looked up: the name becomes part of a path."""

MOST_REFERENCES: Final = 32
_FIELDS: Final = (("resourceClaimTemplateName", TEMPLATE), ("resourceClaimName", CLAIM))


@dataclass(frozen=True, slots=True)
class Reference:
    """An entry of a pod's `spec.resourceClaims`: the object that it names."""

    entry: str
    kind: str
    name: str
    index: int


class LookupFailedError(Exception):
    """The object could not be read in time; whether it exists is not known."""


class Lookup(Protocol):
    """Reads the objects that pods refer to."""

    def find(self, namespace: str, reference: Reference) -> Json | None:
        """Return the object, None where there is none.

        Raises:
            LookupFailedError: that could not be found out in time.
        """
        ...


def references(pod: Any) -> tuple[Reference, ...]:
    """Return what a pod's claims refer to, in their order; entries that name nothing are left out. Never raises on any JSON."""
    spec = pod.get("spec") if isinstance(pod, dict) else None
    entries = spec.get("resourceClaims") if isinstance(spec, dict) else None
    return tuple(_references(entries[:MOST_REFERENCES])) if isinstance(entries, list) else ()


def _references(entries: Iterable[Any]) -> Iterator[Reference]:
    for index, entry in enumerate(entries):
        for field, kind in _FIELDS:
            name = entry.get(field) if isinstance(entry, dict) else None
            if isinstance(name, str) and _NAME.fullmatch(name):
                yield Reference(str(entry.get("name", "")), kind, name, index)

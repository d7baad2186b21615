"""The claims that a pod refers to, looked up. What cannot be read is data, and no reason for anything."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final

from webhook.core.containers import Pod
from webhook.core.decision import Request
from webhook.core.dra import claims
from webhook.core.dra.devices import Json
from webhook.core.dra.manifests import claim_of
from webhook.core.dra.references import TEMPLATE, Lookup, LookupFailedError, Reference, references
from webhook.core.policy import Mode, Policy, effective_mode
from webhook.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """A claim that a pod refers to, or that will be made for it.

    Attributes:
        claim: well-formed.
        mode: in which our own webhook will handle it, or has.
    """

    reference: Reference
    claim: Json
    mode: Mode

    @property
    def is_made(self) -> bool:
        """Tell whether it will be made from a template, for this pod alone."""
        return self.reference.kind == TEMPLATE

    @property
    def is_allocated(self) -> bool:
        """Tell whether its devices have been chosen already."""
        status = self.claim.get("status")
        return isinstance(status, dict) and bool(status.get("allocation"))

    @property
    def key(self) -> Hashable:
        """Return what decisions read of it, as text; raises RecursionError where it is nested too deeply."""
        read = [claims.devices(self.claim), claims.annotations_of(self.claim), claims.is_generated(self.claim)]
        return (
            self.reference,
            self.mode,
            self.is_allocated,
            self.claim.get("metadata") is None,
            json.dumps(read, separators=(",", ":"), sort_keys=True),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a pod's claims.

    Attributes:
        claims: those that could be read, in the pod's order.
        unread: why others could not be.
        complete: those are all; else some could not be read, do not exist yet, or cannot be understood.
        looked_up: somebody was asked at all.
    """

    claims: tuple[ReadClaim, ...] = ()
    unread: tuple[str, ...] = ()
    complete: bool = True
    looked_up: bool = True

    @property
    def key(self) -> Hashable:
        """Return what tells it from what is known of other claims."""
        return (tuple(each.key for each in self.claims), self.unread, self.complete, self.looked_up)


NOTHING: Final = Found()
NOT_LOOKED_UP: Final = Found(complete=False, looked_up=False)


def look_up(pod: Pod, request: Request, snapshot: Snapshot) -> Found:
    """Return what can be read of what a pod refers to. What is not there yet is left out without a word."""
    if not references(pod):
        return NOTHING
    return NOT_LOOKED_UP if snapshot.lookup is None else _read(pod, request, snapshot.policy, snapshot.lookup)


def _read(pod: Pod, request: Request, policy: Policy, lookup: Lookup) -> Found:
    found: list[ReadClaim] = []
    unread: list[str] = []
    named = references(pod)
    for reference in named:
        try:
            found.extend(_readable(lookup.find(request.namespace, reference), reference, request, policy))
        except LookupFailedError as error:
            unread.append(f"{reference.kind} {reference.name}: {error}")
    complete = len(found) == len(named) == len(pod["spec"].get("resourceClaims") or ())
    return Found(tuple(found), tuple(dict.fromkeys(unread)), complete)


def _readable(raw: Json | None, reference: Reference, request: Request, policy: Policy) -> Iterator[ReadClaim]:
    claim = claim_of(raw)
    if claim is None or claims.problems(claim):
        return
    status = raw.get("status") if raw is not None else None
    mode, _ = effective_mode(policy, request.label, claims.annotations_of(claim))
    made = ReadClaim(reference, {**claim, "status": status}, mode)
    try:
        hash(made.key)
    except (RecursionError, TypeError):
        return
    yield made

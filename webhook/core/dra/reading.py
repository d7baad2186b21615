"""The claims that a pod refers to, looked up. What cannot be read is data, and no reason for anything."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
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
        key: what decisions read of all that.
    """

    reference: Reference
    claim: Json
    mode: Mode
    key: Hashable

    @property
    def is_made(self) -> bool:
        """Tell whether it will be made from a template, for this pod alone."""
        return self.reference.kind == TEMPLATE

    @property
    def is_allocated(self) -> bool:
        """Tell whether its devices have been chosen already."""
        return _is_allocated(self.claim)


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
    named = references(pod)
    if not named:
        return NOTHING
    if snapshot.lookup is None:
        return NOT_LOOKED_UP
    found, unread = _read(named, request, snapshot.policy, snapshot.lookup)
    complete = len(found) == len(named) == len(pod["spec"].get("resourceClaims") or ())
    return Found(tuple(found), tuple(dict.fromkeys(unread)), complete)


def _read(named: Iterable[Reference], request: Request, policy: Policy, lookup: Lookup) -> tuple[list[ReadClaim], list[str]]:
    """Return the claims that could be read, and why others could not be."""
    found: list[ReadClaim] = []
    unread: list[str] = []
    for reference in named:
        try:
            found.extend(_readable(lookup.find(request.namespace, reference), reference, request, policy))
        except LookupFailedError as error:
            unread.append(f"{reference.kind} {reference.name}: {error}")
    return found, unread


def _readable(raw: Json | None, reference: Reference, request: Request, policy: Policy) -> Iterator[ReadClaim]:
    claim = claim_of(raw)
    if claim is None or claims.problems(claim):
        return
    status = raw.get("status") if raw is not None else None
    mode, _ = effective_mode(policy, request.label, claims.annotations_of(claim))
    read = {**claim, "status": status}
    try:
        key = _key(reference, read, mode)
        hash(key)
    except (RecursionError, TypeError):
        return
    yield ReadClaim(reference, read, mode, key)


def _key(reference: Reference, claim: Json, mode: Mode) -> Hashable:
    """Return what decisions read of a claim; raises RecursionError where it is nested too deeply."""
    read = [claims.devices(claim), claims.annotations_of(claim), claims.is_generated(claim)]
    text = json.dumps(read, separators=(",", ":"), sort_keys=True)
    return reference, mode, _is_allocated(claim), claim.get("metadata") is None, text


def _is_allocated(claim: Json) -> bool:
    status = claim.get("status")
    return isinstance(status, dict) and bool(status.get("allocation"))

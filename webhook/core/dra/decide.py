"""Deciding on claims: what the server and the command line ask about a ResourceClaim that is being created."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from webhook.core.decision import Cause, Decision, Request
from webhook.core.dra import claims
from webhook.core.dra.devices import Json
from webhook.core.dra.encoding import Encoding
from webhook.core.dra.plan import ClaimPlan, plan
from webhook.core.mutate import shortened
from webhook.core.patch import ANNOTATIONS, Operation, pointer
from webhook.core.policy import Mode, effective_mode
from webhook.core.snapshot import Snapshot

CLAIM: Final = "numalign.io/claim"
"""Annotation on a claim that we changed: required or preferred, the attribute, the requests."""

_HEADLINE: Final = "no node class has this claim's devices on one NUMA node"


_Handler = Callable[[Json, Json, Mode, Snapshot], Decision]


def mutate_claim(claim: Any, request: Request, snapshot: Snapshot) -> Decision:
    """Return how a claim that is being created should be changed; it is always allowed. Never raises on any JSON."""
    return _decide("claim", _mutated, claim, request, snapshot)


def validate_claim(claim: Any, request: Request, snapshot: Snapshot) -> Decision:
    """Return whether a claim may be created: one that a controller made always may. Never raises on any JSON."""
    return _decide("claim-check", _validated, claim, request, snapshot)


def judge_owned(claim: Json, mode: Mode, snapshot: Snapshot) -> Decision:
    """Return what the pod that will own a claim must hear about it; `claim`: well-formed, as its template makes it."""
    devices = claims.devices(claim)
    key = ("claim-of-pod", mode, _metadata_key(claim), json.dumps(devices, separators=(",", ":")))
    return snapshot.remembered.get(key, lambda: _judged_for_pod(claim, devices, mode, snapshot))


def _may_refuse(made: ClaimPlan, snapshot: Snapshot) -> bool:
    return made.is_refusal and snapshot.policy.complete and snapshot.inventory.complete


def _judged_for_pod(claim: Json, devices: Json, mode: Mode, snapshot: Snapshot) -> Decision:
    made = planned(claim, devices, mode, snapshot)
    if not made.impossible:
        return Decision(allowed=True, mode=mode, outcome="allowed", reason=made.reason)
    refuses = _may_refuse(made, snapshot) and mode is not Mode.BEST_EFFORT
    return Decision(
        allowed=not (refuses and mode is Mode.STRICT),
        mode=mode,
        outcome="refused" if mode is Mode.STRICT and refuses else "would-refuse" if refuses else "warned",
        reason=made.reason,
        message=message(made),
        causes=(Cause("spec.devices.requests", made.reason, made.text),),
        warnings=(made.text,),
    )


def _decide(name: str, handler: _Handler, claim: Any, request: Request, snapshot: Snapshot) -> Decision:
    found = claims.problems(claim)
    if found:
        text = shortened([f"claim left as written: {found[0]}"])
        return Decision(allowed=True, mode=snapshot.policy.mode, outcome="malformed", reason="Malformed", warnings=text)
    mode, notes = effective_mode(snapshot.policy, request.label, claims.annotations_of(claim))
    exempt = _exemption(mode, request, snapshot)
    if exempt:
        return Decision(allowed=True, mode=mode, outcome="exempt", reason=exempt, warnings=shortened(notes))
    devices = claims.devices(claim)
    try:
        key = (name, mode, claims.is_generated(claim), _metadata_key(claim), json.dumps(devices, separators=(",", ":")))
    except RecursionError:
        text = shortened(["claim left as written: nested too deeply"])
        return Decision(allowed=True, mode=mode, outcome="malformed", reason="Malformed", warnings=text)
    decision = snapshot.remembered.get(key, lambda: handler(claim, devices, mode, snapshot))
    return replace(decision, warnings=(*shortened(notes), *decision.warnings)) if notes else decision


def _exemption(mode: Mode, request: Request, snapshot: Snapshot) -> str:
    if mode is Mode.OFF:
        return "ModeOff"
    if request.namespace in snapshot.policy.exempt_namespaces:
        return "Namespace"
    return "User" if request.user in snapshot.policy.exempt_users else ""


def _metadata_key(claim: Json) -> tuple[bool, bool, bool]:
    """Return what decisions and patches read of the metadata, besides the mode."""
    metadata = claim.get("metadata")
    return metadata is None, (metadata or {}).get("annotations") is None, claims.EXTENDED_RESOURCE in claims.annotations_of(claim)


def planned(claim: Json, devices: Json, mode: Mode, snapshot: Snapshot) -> ClaimPlan:
    """Return what should become of a well-formed claim in a mode; in audit what strict would do."""
    strict = mode in {Mode.STRICT, Mode.AUDIT}
    return plan(
        claim,
        devices,
        snapshot.inventory,
        strict=strict,
        rewritable=claims.is_generated(claim),
        prioritized=snapshot.policy.claims.prioritized_list,
    )


def _mutated(claim: Json, devices: Json, mode: Mode, snapshot: Snapshot) -> Decision:
    if mode is Mode.AUDIT:
        return Decision(allowed=True, mode=mode, outcome="unchanged", reason="Audit")
    made = planned(claim, devices, mode, snapshot)
    patch = _patch(claim, devices, made.encoding) if made.encoding else ()
    return Decision(
        allowed=True,
        mode=mode,
        outcome="mutated" if patch else _outcome(made),
        reason=made.reason,
        warnings=shortened(_lines(made)),
        audit={"claim": summary(made)},
        patch=patch,
    )


def _validated(claim: Json, devices: Json, mode: Mode, snapshot: Snapshot) -> Decision:
    made = planned(claim, devices, mode, snapshot)
    audit = {"claim": summary(made)}
    refuses = _may_refuse(made, snapshot) and not claims.is_generated(claim)
    if mode is Mode.STRICT and refuses:
        causes = (Cause("spec.devices.requests", made.reason, made.text),)
        return Decision(
            allowed=False, mode=mode, outcome="refused", reason=made.reason, message=message(made), causes=causes, audit=audit
        )
    if mode is not Mode.AUDIT:
        return Decision(allowed=True, mode=mode, outcome="allowed", reason=made.reason, audit=audit)
    if refuses:
        lines = shortened([f"strict mode would refuse the claim: {made.text}"])
        return Decision(
            allowed=True,
            mode=mode,
            outcome="would-refuse",
            reason=made.reason,
            message=message(made),
            warnings=lines,
            audit={**audit, "would-refuse": made.reason},
        )
    lines = shortened([f"strict mode would set {line}" if made.encoding else line for line in _lines(made)])
    return Decision(allowed=True, mode=mode, outcome="allowed", reason=made.reason, warnings=lines, audit=audit)


def _outcome(made: ClaimPlan) -> str:
    return "undescribed" if made.reason in {"NoNodeOffers", "NoDevicesDescribed"} else "unchanged"


def message(made: ClaimPlan) -> str:
    """Return a refusal as people read it: what, a line per node class, what to do."""
    lines = [f"  {node}: {why}" for node, why in made.whys.items()]
    return "\n".join([f"{_HEADLINE}:", *lines, _ADVICE])


_ADVICE: Final = (
    "Ask for fewer devices, or for devices that share a NUMA node. Where they need not: a namespace in mode best-effort takes it."
)


def summary(made: ClaimPlan) -> str:
    """Return a plan in one short line."""
    if made.encoding:
        return described(made.encoding)
    return f"as written: {made.text or _PLAIN.get(made.reason, made.reason)}"


_PLAIN: Final[Mapping[str, str]] = {
    "OneDevice": "it asks for one device",
    "Constrained": "it has constraints of its own",
    "ExtendedResource": "the scheduler made it, for an extended resource",
    "ComputeDomain": "it is a channel of a ComputeDomain",
    "AdminAccess": "it asks for adminAccess",
    "NoDevicesDescribed": "no devices are described",
}
"""What people read where no text says more."""


def described(encoding: Encoding) -> str:
    """Return what a claim says now: `required resource.kubernetes.io/numaNode: gpu, nic`."""
    word = "required" if encoding.required else "preferred"
    return f"{word} {encoding.attribute}: {', '.join(encoding.names)}"


def _lines(made: ClaimPlan) -> Iterable[str]:
    if made.encoding:
        yield f"claim: {described(made.encoding)}"
    elif made.text:
        yield f"claim not aligned: {made.text}"
    if made.encoding or made.text:
        yield from made.notes


def _patch(claim: Json, devices: Json, encoding: Encoding) -> tuple[Operation, ...]:
    after, path = encoding.devices, claims.DEVICES
    found: list[Mapping[str, Any]] = [
        {"op": "add", "path": pointer((*path, name)), "value": after[name]}
        for name in ("requests", "constraints", "config")
        if after.get(name) != devices.get(name)
    ]
    if claim.get("metadata") is None:
        found.append({"op": "add", "path": "/metadata", "value": {}})
    if (claim.get("metadata") or {}).get("annotations") is None:
        found.append({"op": "add", "path": pointer(ANNOTATIONS), "value": {}})
    return (*found, {"op": "add", "path": pointer((*ANNOTATIONS, CLAIM)), "value": described(encoding)})

"""Pods that ask for devices by claims: what their claims will be, and what no component aligns.

The claims of a pod stand in other objects, which someone has to look up. What cannot be looked up is a warning and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from webhook.core.containers import Pod, visit
from webhook.core.decision import Cause, Decision, Request
from webhook.core.dra import claims, decide
from webhook.core.dra.attributes import ACCELERATOR_DRIVERS
from webhook.core.dra.devices import Device, Inventory, Json
from webhook.core.dra.manifests import claim_of
from webhook.core.dra.references import TEMPLATE, Lookup, LookupFailedError, Reference, references
from webhook.core.mutate import shortened
from webhook.core.policy import Mode
from webhook.core.quantities import InvalidQuantityError, is_whole, parse
from webhook.core.resource_names import CPU
from webhook.core.snapshot import Snapshot

MIXED: Final = "claimed devices and CPUs that the kubelet pins: no component aligns them with each other (up to 1.37)"


def with_claims(decision: Decision, pod: Pod, request: Request, mode: Mode, snapshot: Snapshot, *, refusing: bool) -> Decision:
    """Return the decision on a pod with what its claims add to it.

    Args:
        decision: on the pod without them.
        pod: well-formed, with references.
        request: for the namespace.
        mode: of the pod.
        snapshot: with the lookup, if there is one.
        refusing: the validating handler asks; the mutating one only warns of what could not be read.
    """
    if snapshot.lookup is None or not decision.allowed:
        return decision
    found, unread = _read(pod, request.namespace, snapshot.lookup)
    warnings = [f"claims were not read, so not judged: {reason}" for reason in unread]
    ours = [(reference, claim) for reference, claim in found if asks_for_accelerators(claim, snapshot.inventory)]
    if not ours or not refusing:
        return _warned(decision, warnings)
    if is_pinned(pod):
        warnings.append(MIXED)
    made = [(reference, decide.judge_owned(claim, mode, snapshot)) for reference, claim in ours if reference.kind == TEMPLATE]
    refused = next(((reference, each) for reference, each in made if not each.allowed), None)
    if refused is not None:
        return _refused(*refused, decision, mode)
    warnings += [f"claim {reference.entry}: {line}" for reference, each in made for line in each.warnings]
    reason = next((each.reason for _, each in made if each.outcome == "would-refuse"), "")
    noted = _warned(
        replace(decision, mode=mode, outcome="allowed", reason="Claims") if _is_not_ours(decision) else decision, warnings
    )
    return replace(noted, outcome="would-refuse", reason=reason) if reason else noted


def _is_not_ours(decision: Decision) -> bool:
    return decision.outcome == "not-ours"


def _warned(decision: Decision, warnings: Iterable[str]) -> Decision:
    more = shortened(warnings)
    return replace(decision, warnings=(*decision.warnings, *more)) if more else decision


def _refused(reference: Reference, claim: Decision, decision: Decision, mode: Mode) -> Decision:
    field = f"spec.resourceClaims[{reference.index}]"
    causes = (Cause(field, claim.reason, f"{reference.kind} {reference.name}: {claim.causes[0].message}"),)
    return replace(
        decision,
        allowed=False,
        mode=mode,
        outcome="refused",
        reason=claim.reason,
        message=f"{field}, {reference.kind} {reference.name}: {claim.message}",
        causes=causes,
    )


def _read(pod: Pod, namespace: str, lookup: Lookup) -> tuple[list[tuple[Reference, Json]], list[str]]:
    """Return the well-formed claims with their references, and why others were not read. What is not there yet is no reason."""
    found: list[tuple[Reference, Json]] = []
    unread: list[str] = []
    for reference in references(pod):
        try:
            raw = lookup.find(namespace, reference)
        except LookupFailedError as error:
            unread.append(f"{reference.kind} {reference.name}: {error}")
            continue
        claim = claim_of(raw)
        if claim is not None and not claims.problems(claim):
            found.append((reference, claim))
    return found, list(dict.fromkeys(unread))


def asks_for_accelerators(claim: Json, inventory: Inventory) -> bool:
    """Tell whether a request's DeviceClass is an accelerator's: by its devices, and where none is known by its name."""
    names = {name for request in claims.devices(claim).get("requests") or () for name in _class_names(request)}
    return any(_is_accelerators(name, inventory) for name in names)


def _class_names(request: Json) -> Iterator[str]:
    several = request.get("firstAvailable")
    for each in (request.get("exactly"), *(several if isinstance(several, list) else ())):
        name = each.get("deviceClassName") if isinstance(each, dict) else None
        if isinstance(name, str):
            yield name


def _is_accelerators(name: str, inventory: Inventory) -> bool:
    if any(name == driver or name.endswith(f".{driver}") for driver in ACCELERATOR_DRIVERS):
        return True
    known = inventory.classes.get(name)
    if known is None or not known.selectors:
        return False
    return any(
        device.driver in ACCELERATOR_DRIVERS and all(inventory.matches(each, device) for each in known.selectors)
        for device in _devices(inventory)
    )


def _devices(inventory: Inventory) -> Iterator[Device]:
    for devices in inventory.nodes.values():
        yield from devices


def is_pinned(pod: Pod) -> bool:
    """Tell whether a container asks for whole CPUs, requests = limits: the static CPU Manager gives it CPUs of its own."""
    return any(_whole(each.quantities("requests").get(CPU), each.quantities("limits").get(CPU)) for each in visit(pod))


def _whole(request: Any, limit: Any) -> bool:
    try:
        amount = parse(limit) if limit is not None else 0
        return amount > 0 and is_whole(amount) and (request is None or parse(request) == amount)
    except InvalidQuantityError:
        return False

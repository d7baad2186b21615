"""What pods that refer to claims must hear of them: what no component aligns, what no node can have, what could not be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from webhook.core.containers import Pod, visit
from webhook.core.decision import Cause, Decision
from webhook.core.dra import claims, decide
from webhook.core.dra.asked import asks_for_accelerators, wants_own_cpus
from webhook.core.dra.attributes import ACCELERATOR_DRIVERS
from webhook.core.dra.devices import Inventory
from webhook.core.dra.reading import Found, ReadClaim
from webhook.core.dra.served import MIXED, pins
from webhook.core.mutate import shortened
from webhook.core.policy import MODE_KEY, STRICTNESS, Mode
from webhook.core.snapshot import Snapshot

NOT_LOOKED_UP: Final = "claims were not read, so the pod is left as written; numalign serve --lookup-claims reads them"


def with_claims(decision: Decision, pod: Pod, mode: Mode, found: Found, snapshot: Snapshot) -> Decision:
    """Return the validating handler's decision on a pod with what its claims add to it.

    Args:
        decision: on the pod, with the devices of its claims.
        pod: well-formed.
        mode: of the pod.
        found: its claims, as far as they could be read.
        snapshot: as the pod sees it.
    """
    if not decision.allowed or decision.outcome == "malformed":
        return decision
    ours = [each for each in found.claims if asks_for_accelerators(each.claim, snapshot.inventory)]
    modes = [(each, _mode(each, mode)) for each in ours if each.is_made]
    made = [(each, decide.judge_owned(each.claim, own, snapshot)) for each, own in modes if own is not Mode.OFF]
    refused = next(((each, judged) for each, judged in made if not judged.allowed), None)
    unknown = decision.outcome == "undescribed" or _may_land_unknown(snapshot)
    if refused is not None and not unknown:
        return _refused(*refused, decision, mode)
    warnings = [MIXED] if _is_mixed(decision, pod, snapshot) else []
    warnings += [f"claim {each.reference.entry}: {line}" for each, judged in made for line in judged.warnings]
    noted = _warned(decision, warnings)
    reason = next((judged.reason for _, judged in made if judged.outcome == "would-refuse"), "")
    return replace(noted, outcome="would-refuse", reason=reason) if reason and not unknown else noted


def _mode(each: ReadClaim, mode: Mode) -> Mode:
    """Return the mode in which a claim is judged: the pod's, unless its template asks for a less strict one and may."""
    return min(mode, each.mode, key=STRICTNESS.__getitem__) if MODE_KEY in claims.annotations_of(each.claim) else mode


def unread(pod: Pod, found: Found, inventory: Inventory, *, lone: bool) -> tuple[str, ...]:
    """Return warnings of what could not be read of a pod's claims.

    `lone`: its resources name no accelerator, so that by its claims alone it could be our business. Where nobody is asked, that
    is worth a word only if they could be an accelerator's.
    """
    if found.looked_up:
        return shortened(f"claims were not read, so not judged: {reason}" for reason in found.unread)
    could_be_ours = lone and _has_accelerators(inventory) and any(map(_uses_claims, visit(pod)))
    return shortened([NOT_LOOKED_UP]) if could_be_ours else ()


def _has_accelerators(inventory: Inventory) -> bool:
    """Tell whether some device that is known is an accelerator, or none is known."""
    devices = [device for each in inventory.nodes.values() for device in each]
    return not devices or any(device.driver in ACCELERATOR_DRIVERS for device in devices)


def _uses_claims(container: Any) -> bool:
    return bool((container.raw.get("resources") or {}).get("claims"))


def _may_land_unknown(snapshot: Snapshot) -> bool:
    """Tell whether the pod may land on a class whose DRA devices are not described: they may be what it wants."""
    return any(each.node.node_class.devices is None for each in snapshot.candidates)


def _is_mixed(decision: Decision, pod: Pod, snapshot: Snapshot) -> bool:
    """Tell whether the kubelet pins CPUs beside claimed devices, on some class; where no class is known, whether it would."""
    if not decision.verdicts:
        return any(map(wants_own_cpus, visit(pod)))
    asking = frozenset(ask.container.name for ask in snapshot.claims.asks) if snapshot.claims else frozenset()
    landing = [each for each in snapshot.candidates if each.several and each.name in decision.verdicts]
    return any(
        pins(decision.verdicts[each.name], container)
        for each in landing
        for container in (each.served.bearers if each.served else asking)
    )


def _warned(decision: Decision, warnings: Iterable[str]) -> Decision:
    more = shortened(warnings)
    return replace(decision, warnings=(*decision.warnings, *more)) if more else decision


def _refused(each: ReadClaim, claim: Decision, decision: Decision, mode: Mode) -> Decision:
    reference = each.reference
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

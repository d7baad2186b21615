"""The validating handler: the final pod, after all webhooks, against what its mode demands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from webhook.core import explain, judging, placement, record, wording
from webhook.core.accelerators import asks
from webhook.core.change import applied
from webhook.core.containers import Pod
from webhook.core.decision import Cause, Decision
from webhook.core.dra.served import is_claimed
from webhook.core.explain import Account
from webhook.core.fixes import Judge
from webhook.core.judging import Verdicts, judge_all
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.limitranges import Breach, breaches
from webhook.core.mutate import (
    NO_CLASS_SERVES,
    annotated,
    described,
    invalid,
    shortened,
    undescribed,
    unserved,
    verdict_line,
)
from webhook.core.patch import INJECTED, operations
from webhook.core.plan import Plan, plan
from webhook.core.policy import Mode
from webhook.core.shape.candidate import Candidate
from webhook.core.snapshot import Snapshot
from webhook.core.verdict import Outcome, Verdict

NOT_MUTATED = (
    "numalign would have made this pod fit, but was not asked when it was created: its mutating webhook was not reachable, or is "
    "not installed. Create the pod again; if that does not help, ask whoever runs the cluster to look at that webhook."
)


NOT_ENFORCED = (
    "this pod would be aligned by luck only: the kubelets of {classes} try to align it, but do not refuse what they cannot "
    "align, and the policy wants that (requireEnforcement). Choose nodes whose kubelets have "
    "topologyManagerPolicy restricted or single-numa-node."
)


LIMIT_RANGE = "LimitRange"

HELD = "{limits}.\nHave {it} changed, or use another namespace: numalign could align the pod then. As it is:\n{rest}"


NO_DEVICES = "no node class has all the devices that this pod's claims ask for, on one node"
NO_DEVICES_ADVICE = "Ask for fewer devices, or spread them over several pods."
NO_TIES_ADVICE = (
    " Where they need not share a NUMA node: leave out constraints of your own; of ours a namespace in mode best-effort has none."
)


@dataclass(frozen=True, slots=True)
class Case:
    """A pod with its candidates and their verdicts."""

    pod: Pod
    classes: tuple[Candidate, ...]
    verdicts: Verdicts

    @property
    def outcomes(self) -> frozenset[Outcome]:
        """Return the different outcomes."""
        return frozenset(verdict.outcome for verdict in self.verdicts.values())

    @property
    def audit(self) -> dict[str, str]:
        """Return the audit annotations that every decision carries."""
        return {"verdict": verdict_line(self.verdicts)}


def validate_pod(pod: Pod, mode: Mode, snapshot: Snapshot) -> Decision:
    """Return the decision on a well-formed pod that asks for accelerators (its essence is enough)."""
    case = judged(pod, snapshot)
    if not case.classes:
        found = _unserved(pod, mode, snapshot)
        return found or undescribed(mode, asks(pod, snapshot.catalogue), snapshot)
    if judging.is_invalid(case.verdicts):
        return invalid(mode, case.verdicts)
    if mode is Mode.AUDIT:
        return _audit(pod, snapshot)
    if not refuses(case, snapshot):
        return _accepted(case, mode, snapshot)
    if mode is Mode.BEST_EFFORT:
        return warned(case, mode, snapshot, "warned")
    return _not_mutated(case, mode) if _missed_mutation(pod, snapshot) else rejected(case, mode, snapshot)


def _unserved(pod: Pod, mode: Mode, snapshot: Snapshot) -> Decision | None:
    """Return the decision on a pod whose claims no class can serve; None: that is not the matter.

    Refused is only what no node can have: a device that is listed nowhere is unreported, and other nodes may exist.
    """
    found, claims = unserved(mode, snapshot), snapshot.claims
    if found is None or claims is None:
        return None
    if found.reason != NO_CLASS_SERVES or claims.elsewhere or mode is Mode.BEST_EFFORT or not _is_confined(pod, snapshot):
        return found if claims.unserved or snapshot.classes else replace(found, outcome="allowed", reason="Claims")
    lines = [f"{name}: {why}" for name, why in claims.unserved.items()]
    advice = NO_DEVICES_ADVICE + (NO_TIES_ADVICE if claims.tied else "")
    message = "\n".join([f"{NO_DEVICES}:", *(f"  {line}" for line in lines), advice])
    causes = (Cause("spec.resourceClaims", found.reason, "; ".join(lines)),)
    refused = mode is Mode.STRICT
    return replace(
        found,
        allowed=not refused,
        outcome="refused" if refused else "would-refuse",
        message=message,
        causes=causes,
        warnings=() if refused else found.warnings,
        audit=found.audit if refused else {**found.audit, "would-refuse": found.reason},
    )


def _is_confined(pod: Pod, snapshot: Snapshot) -> bool:
    """Tell whether the pod can land on described nodes only."""
    if snapshot.policy.complete:
        return True
    return placement.implies_a_class(pod, (node.node_class for node in snapshot.classes if node.start is None))


def judged(pod: Pod, snapshot: Snapshot) -> Case:
    """Return the pod with its candidates and their verdicts."""
    wanted = asks(pod, snapshot.catalogue)
    classes = judging.candidates(pod, wanted, snapshot)
    return Case(pod, classes, judge_all(pod, wanted, classes))


def refuses(case: Case, snapshot: Snapshot) -> bool:
    """Tell whether strict mode refuses the pod. Where other nodes may exist, only what can land on described ones alone."""
    if not judging.is_refused(case.verdicts, case.classes, snapshot.policy):
        return False
    return _is_confined(case.pod, snapshot)


def accepted(case: Case, mode: Mode) -> Decision:
    """Return the admission of a pod about which there is nothing to say, unless that nothing is known."""
    if Outcome.ALIGNED in case.outcomes:
        return _allowed(case, mode, "Aligned")
    if Outcome.UNKNOWN in case.outcomes:
        return _allowed(case, mode, "Unknown", f"whether it is aligned is unknown: {verdict_line(case.verdicts)}")
    return _allowed(case, mode, "NotAligned")


def _allowed(case: Case, mode: Mode, reason: str, *lines: str) -> Decision:
    return Decision(
        allowed=True,
        mode=mode,
        outcome="allowed",
        reason=reason,
        warnings=shortened(lines),
        audit=case.audit,
        verdicts=case.verdicts,
    )


def warned(case: Case, mode: Mode, snapshot: Snapshot, outcome: str) -> Decision:
    """Return the admission of a pod that strict mode would have refused, or that is aligned nowhere."""
    told = _told(case, snapshot)
    return Decision(
        allowed=True,
        mode=mode,
        outcome=outcome,
        reason=told.reason,
        message=told.message,
        causes=told.causes,
        warnings=shortened(told.warnings),
        audit=case.audit,
        verdicts=case.verdicts,
    )


def rejected(case: Case, mode: Mode, snapshot: Snapshot) -> Decision:
    """Return the refusal of a pod, with the nearest change that would help."""
    return _refused(case, mode, _told(case, snapshot))


@dataclass(frozen=True, slots=True)
class _Told:
    """Why strict mode refuses a pod, for metrics, people and programs."""

    reason: str
    message: str
    causes: tuple[Cause, ...]
    warnings: tuple[str, ...] = ()


def _told(case: Case, snapshot: Snapshot) -> _Told:
    if Outcome.ALIGNED in case.outcomes:
        lucky = wording.some([name for name, verdict in case.verdicts.items() if verdict.outcome is Outcome.ALIGNED])
        message = NOT_ENFORCED.format(classes=lucky)
        return _Told("NotEnforced", message, (Cause("spec", "NotEnforced", message),), (f"aligned by luck only on {lucky}",))
    found = account(case, snapshot)
    reason = explain.reason_of(found.whys.values())
    told = _Told(reason, explain.message(found), explain.causes(found), explain.warnings(found))
    return _with_limits(told, _held(case.pod, snapshot))


def _held(pod: Pod, snapshot: Snapshot) -> tuple[Breach, ...]:
    """Return what LimitRanges have against the shapes that would align the pod."""
    return plan(record.undo(pod).pod, Mode.STRICT, snapshot).held if snapshot.bounds else ()


def _with_limits(told: _Told, held: tuple[Breach, ...]) -> _Told:
    """Put first what keeps the pod from being aligned by us: the classes' reasons are about the pod as it was left."""
    if not held:
        return told
    causes = tuple(Cause(breach.field, LIMIT_RANGE, str(breach)) for breach in held)
    limits, it = "; ".join(map(str, held)), "it" if len(held) == 1 else "them"
    message = HELD.format(limits=limits, it=it, rest=told.message)
    return _Told(LIMIT_RANGE, message, (*causes, *told.causes), (*map(str, held), *told.warnings))


def _not_mutated(case: Case, mode: Mode) -> Decision:
    cause = Cause("metadata.annotations", "NotMutated", f"no {INJECTED}: numalign changed nothing when the pod was created")
    return _refused(case, mode, _Told("NotMutated", NOT_MUTATED, (cause,)))


def _refused(case: Case, mode: Mode, told: _Told) -> Decision:
    return Decision(
        allowed=False,
        mode=mode,
        outcome="refused",
        reason=told.reason,
        message=told.message,
        causes=told.causes,
        audit=case.audit,
        verdicts=case.verdicts,
    )


def _accepted(case: Case, mode: Mode, snapshot: Snapshot) -> Decision:
    """Return the admission; what no class aligns though none enforces anything is worth a warning."""
    if case.outcomes & {Outcome.ALIGNED, Outcome.UNKNOWN}:
        return accepted(case, mode)
    if any(map(is_claimed, case.verdicts.values())):
        return _allowed(case, mode, "Claims")
    return warned(case, mode, snapshot, "warned")


def _audit(pod: Pod, snapshot: Snapshot) -> Decision:
    """Return what strict mode would have done, as warnings and audit annotations."""
    made, final = _as_strict_would(pod, snapshot)
    case = judged(final, snapshot)
    if refuses(case, snapshot):
        decision = warned(case, Mode.AUDIT, snapshot, "would-refuse")
        return replace(decision, audit={**decision.audit, "would-refuse": decision.reason})
    decision = _accepted(case, Mode.AUDIT, snapshot)
    lines = [f"strict mode would set {line}" for line in described(made.author, final)]
    audit = {**decision.audit, "would-mutate": f"{len(lines)} changes"} if lines else decision.audit
    return replace(decision, warnings=(*decision.warnings, *shortened(lines)), audit=audit)


def _as_strict_would(pod: Pod, snapshot: Snapshot) -> tuple[Plan, Pod]:
    undone = record.undo(pod)
    made = plan(undone.pod, Mode.STRICT, snapshot, pod if undone.recorded else None)
    return made, pod if made.pod is pod else annotated(made)


def _missed_mutation(pod: Pod, snapshot: Snapshot) -> bool:
    """Tell whether the mutation was left out and would have helped."""
    if record.undo(pod).recorded:
        return False
    _, final = _as_strict_would(pod, snapshot)
    return bool(operations(pod, final)) and not refuses(judged(final, snapshot), snapshot)


def account(case: Case, snapshot: Snapshot) -> Account:
    """Return why classes do not align the pod, and the nearest change to what its author wrote that would help."""
    judge = judging.judge_changed(snapshot)
    found = _account(case, snapshot, judge)
    if not snapshot.bounds:
        return found
    before = breaches(case.pod, snapshot.bounds)

    def is_within(changed: Pod) -> bool:
        return breaches(changed, snapshot.bounds) <= before

    def accepted_within(node: NodeKubelet, changed: Pod) -> Verdict:
        return judge(node, changed) if is_within(changed) else _BEYOND

    kept = _within_limits(found, case.pod, is_within)
    if kept.fixes or not found.fixes:
        return kept
    # Of the nearest changes a LimitRange refuses all; it may not refuse one that is farther.
    farther = _within_limits(_account(case, snapshot, accepted_within), case.pod, is_within)
    return replace(kept, fixes=farther.fixes)


_BEYOND = Verdict(reason=LIMIT_RANGE)


def _account(case: Case, snapshot: Snapshot, judge: Judge) -> Account:
    found = explain.account(
        case.pod,
        case.verdicts,
        snapshot.nodes,
        snapshot.catalogue,
        judge,
        created=lambda changed: plan(record.undo(changed).pod, Mode.STRICT, snapshot).verdicts,
    )
    by_dra = {each.name for each in snapshot.candidates if each.is_by_dra}
    return replace(found, claimed=bool(case.verdicts) and case.verdicts.keys() <= by_dra)


def _within_limits(found: Account, pod: Pod, is_within: Callable[[Pod], bool]) -> Account:
    """Leave out the changes after which a LimitRange would refuse the pod."""
    kept = tuple(fix for fix in found.fixes if is_within(applied(pod, fix.changes)))
    return replace(found, fixes=kept, thorough=found.thorough and kept == found.fixes)

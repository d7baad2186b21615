"""A pod before its candidates: which classes it can land on, and what becomes of it on each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from webhook.core import placement
from webhook.core.accelerators import Asks, asks, extended_resources
from webhook.core.containers import Pod, visit
from webhook.core.dra.served import is_claimed, pins, seen_by_claims
from webhook.core.edit import put
from webhook.core.kubelet import admit
from webhook.core.kubelet.aligned import NO_DEVICE_CONTAINER
from webhook.core.kubelet.contract import PodView, Refusal
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.kubelet.view import INVALID, view
from webhook.core.policy import Policy
from webhook.core.shape.candidate import Candidate
from webhook.core.shape.hami import seen_by_hami
from webhook.core.snapshot import Snapshot
from webhook.core.verdict import Outcome, Verdict

Verdicts = Mapping[str, Verdict]
"""Candidate class -> verdict, sorted by class."""

_Judge = Callable[[NodeKubelet, Pod], Verdict]


def candidates(pod: Pod, wanted: Asks, snapshot: Snapshot) -> tuple[Candidate, ...]:
    """Return the classes that the pod can land on, sorted by name.

    A class must offer every accelerator that the pod asks for, and every other device that any class offers: what no class
    names is unreported rather than absent.
    """
    known = frozenset[str]().union(*(each.offers for each in snapshot.candidates))
    needed = {ask.resource for ask in wanted.accelerators}
    needed |= {name for container in visit(pod) for name, count in extended_resources(container).items() if count} & known
    return tuple(each for each in snapshot.candidates if needed <= each.offers and placement.can_land(pod, each.node.node_class))


def judge(node: NodeKubelet, pod: Pod, wanted: Asks) -> Verdict:
    """Return the verdict of the kubelet and, where HAMi runs, of HAMi. `wanted`: what the pod's containers ask for."""
    return seen_by_hami(admit.judge(node, pod), node, wanted)


def judge_all(pod: Pod, wanted: Asks, classes: Iterable[Candidate]) -> Verdicts:
    """Return the verdict of each class, on the pod as HAMi will have completed it."""
    completed = completed_by_hami(pod, wanted)
    views: dict[int, PodView | Refusal] = {}
    verdicts = {}
    for each in classes:
        minor = each.node.minor
        if minor not in views:
            views[minor] = view(completed, minor)
        verdict = seen_by_hami(admit.judge_view(each.node, views[minor]), each.node, wanted)
        verdicts[each.name] = seen_by_claims(verdict, each.served, several=each.several) if each.served else verdict
    return verdicts


def keeps(before: Verdict, after: Verdict) -> bool:
    """Tell whether a class that admits the pod, or may, still does; a kubelet that never finishes does no worse than before."""
    return after.surely_admitted or before.outcome is Outcome.REFUSED or bool(before.unknown and after.unknown)


def keeps_all(name: str, after: Verdict, *befores: Verdicts) -> bool:
    """Tell whether a class still does what it did with each earlier form of a pod; one that it did not judge has no say."""
    return all(keeps(before.get(name, after), after) for before in befores)


def completed_by_hami(pod: Pod, wanted: Asks) -> Pod:
    """Return the pod with the device counts that HAMi's webhook adds where only memory or cores are named."""
    for ask in wanted.accelerators:
        if ask.implied:
            for side in ("requests", "limits"):
                pod = put(pod, (*ask.container.path, "resources", side, ask.resource), str(ask.units))
    return pod


def judge_changed(snapshot: Snapshot) -> _Judge:
    """Return a judge for variants of a pod, which may ask for something else than the pod itself does.

    Where DRA gives out the accelerators, admission is all that there is to reach, and counts as aligned; with CPUs of their
    own for containers whose author wants them.
    """
    by_dra = {each.name for each in snapshot.candidates if each.is_by_dra}
    pinned = snapshot.claims.pinned if snapshot.claims else frozenset()

    def changed(node: NodeKubelet, pod: Pod) -> Verdict:
        wanted = asks(pod, snapshot.catalogue)
        verdict = judge(node, completed_by_hami(pod, wanted), wanted)
        if node.node_class.name not in by_dra:
            return verdict
        own = not node.config.cpu_static or all(pins(verdict, container) for container in pinned)
        return replace(verdict, aligned=verdict.admitted and own)

    return changed


def is_met(verdicts: Verdicts, classes: Iterable[Candidate]) -> bool:
    """Tell whether the pod is aligned on at least one of the classes."""
    return any(verdicts[each.name].outcome is Outcome.ALIGNED for each in classes)


def is_invalid(verdicts: Verdicts) -> bool:
    """Tell whether the API server itself refuses the pod; it says so to the author better than we could."""
    return bool(verdicts) and all(verdict.reason == INVALID for verdict in verdicts.values())


def _has_nothing_to_align(verdict: Verdict) -> bool:
    """Tell whether a pod runs without any device whose NUMA node is known: what plugins do not report is no reason to refuse.

    Nor is what no component aligns.
    """
    return is_claimed(verdict) or (verdict.admitted and any(gap.reason == NO_DEVICE_CONTAINER for gap in verdict.gaps))


def is_refused(verdicts: Verdicts, classes: tuple[Candidate, ...], policy: Policy) -> bool:
    """Tell whether strict mode refuses a pod (DESIGN section 4, "What strict refuses").

    Only what is certain on every candidate. Where none is enforced, only what no kubelet admits, unless the policy wants
    enforcement.
    """
    if not classes or any(verdict.outcome is Outcome.UNKNOWN or _has_nothing_to_align(verdict) for verdict in verdicts.values()):
        return False
    if policy.require_enforcement:
        return not is_met(verdicts, (each for each in classes if each.enforced))
    if any(each.enforced for each in classes):
        return not is_met(verdicts, classes)
    return all(verdict.outcome is Outcome.REFUSED for verdict in verdicts.values())

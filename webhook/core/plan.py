"""What a mutation would make of an author's pod (DESIGN section 4, steps 2 to 5).

Shapes are tried in order of least surprise. One is eligible only if every class whose kubelet admits the author's pod admits
the shaped one too, or the affinity that we add keeps the pod off that class; this is asked of the model, class by class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from webhook.core import judging
from webhook.core.accelerators import Asks, asks
from webhook.core.containers import Pod
from webhook.core.dra import podplan
from webhook.core.dra.podclaims import PodClaims
from webhook.core.edit import put
from webhook.core.judging import Verdicts, is_met, judge_all, keeps_all
from webhook.core.limitranges import Breach, breaches, distance
from webhook.core.model import NodeClass
from webhook.core.patch import ANNOTATIONS, HAMI_ALIGNMENT
from webhook.core.placement import PREFERRED, REQUIRED
from webhook.core.policy import Mode
from webhook.core.shape import hami, steering
from webhook.core.shape.attempts import attempts
from webhook.core.shape.candidate import Candidate
from webhook.core.shape.hugepages import with_hugepages
from webhook.core.shape.scene import Scene, is_pod_level, scene, shares_silently
from webhook.core.shape.shapes import unfixed_memory
from webhook.core.snapshot import Snapshot
from webhook.core.verdict import Outcome, Verdict

_RANK: Mapping[Outcome, int] = {Outcome.REFUSED: 0, Outcome.UNKNOWN: 1, Outcome.ADMITTED: 2, Outcome.ALIGNED: 3}


_MOST_HELD = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a pod.

    Attributes:
        author: the pod as its author wrote it.
        pod: the pod to return, our annotations aside; `author` itself where nothing is to be changed.
        wanted: what its containers ask for.
        candidates: the classes that the author's pod can land on.
        verdicts: of `pod` on each of them.
        steering: kind of node affinity -> what was added to it.
        notes: what people should know about what was not done.
        held: what LimitRanges have against the nearest of the shapes that would align it, where they refuse all of them.
    """

    author: Pod
    pod: Pod
    wanted: Asks
    candidates: tuple[Candidate, ...] = ()
    verdicts: Verdicts = field(default_factory=dict)
    steering: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    held: tuple[Breach, ...] = ()


def plan(author: Pod, mode: Mode, snapshot: Snapshot, received: Pod | None = None) -> Plan:
    """Return what becomes of a pod.

    Args:
        author: the pod with earlier injections of ours undone.
        mode: strict or best-effort; audit asks what strict would do.
        snapshot: the set in force.
        received: the pod with those injections, if there were any. Whoever admits it must admit the result too: a record
            that tells lies must not make a pod worse.
    """
    wanted = asks(author, snapshot.catalogue)
    found = judging.candidates(author, wanted, snapshot)
    if not found:
        return Plan(author, author, wanted)
    if snapshot.claims is not None and any(each.is_by_dra for each in found):
        return _beside_claims(author, wanted, found, snapshot, snapshot.claims, received)
    return _Planner(author, wanted, found, mode, snapshot, received).plan()


def _beside_claims(
    author: Pod, wanted: Asks, found: tuple[Candidate, ...], snapshot: Snapshot, claims: PodClaims, received: Pod | None
) -> Plan:
    before = judge_all(author, wanted, found)
    earlier = _judge_received(received, wanted, snapshot)
    made = podplan.PodPlanner(author, wanted, found, snapshot, claims, before, earlier).plan()
    if received is not None and made.pod is author and not all(keeps_all(n, v, earlier) for n, v in before.items()):
        # Undoing our record would lose a class that admits the pod as it came.
        return Plan(author, received, wanted, found, judge_all(received, wanted, found), notes=made.notes)
    return Plan(author, made.pod, wanted, found, made.verdicts, notes=made.notes)


def _judge_received(received: Pod | None, wanted: Asks, snapshot: Snapshot) -> Verdicts:
    return {} if received is None else judge_all(received, wanted, judging.candidates(received, wanted, snapshot))


class _Planner:
    """One search for a shape."""

    def __init__(
        self, author: Pod, wanted: Asks, found: tuple[Candidate, ...], mode: Mode, snapshot: Snapshot, received: Pod | None
    ) -> None:
        self._wanted = wanted
        self._scene = scene(author, snapshot.policy, wanted, found, snapshot.bounds)
        self._mode = mode
        self._before = judge_all(author, wanted, found)
        self._received_pod = received
        self._received = _judge_received(received, wanted, snapshot)
        self._start = Plan(author, author, wanted, found, self._before)
        self._claims = snapshot.claims
        self._refused: dict[frozenset[Breach], Pod] = {}

    def plan(self) -> Plan:
        reason = _why_not(self._scene, self._wanted) or self._by_claims()
        notes = tuple(note for note in (reason, hami.warning(self._scene.pod)) if note)
        chosen = self._chosen(shape=reason is None)
        if chosen is not None:
            return replace(self._injected(chosen), notes=(*notes, *self._cut(chosen)))
        held = self._held()
        lines = (f"not shaped: {breach}" for breach in held)
        return replace(self._unshaped(), notes=(*notes, *lines, *_hints(self._scene)), held=held)

    def _cut(self, chosen: Plan) -> Iterator[str]:
        """Yield why a pod gets less than it would elsewhere."""
        if chosen.pod is not self._scene.pod:
            for first in list(self._refused)[:1]:
                yield from (f"less than its share: {breach}" for breach in sorted(first, key=str))

    def _held(self) -> tuple[Breach, ...]:
        """Return what LimitRanges have against the nearest shape that would have been chosen; only a few are asked about."""
        for found in sorted(self._refused, key=distance)[:_MOST_HELD]:
            if any(self._eligible(self._refused[found], targets) for targets in self._targets()):
                return tuple(sorted(found, key=str))
        return ()

    def _by_claims(self) -> str | None:
        """Return why the pod is not shaped: CPUs that come from a claim must not count twice."""
        return next(podplan.left_to_claims(self._claims), None) if self._claims else None

    def _chosen(self, *, shape: bool) -> Plan | None:
        """Return the plan for the classes that matter most, of those that any shape serves."""
        found = (self._first(targets, shape=shape) for targets in self._targets())
        return next((plan for plan in found if plan is not None), None)

    def _first(self, targets: tuple[Candidate, ...], *, shape: bool) -> Plan | None:
        """Return the first shape that is aligned on one of the targets and harms nobody.

        Failing that, of those that harm only where we can keep the pod off, the one that serves the most classes.
        """
        second_best: Plan | None = None
        for shaped in self._attempts(shape=shape):
            found = self._eligible(shaped, targets) if self._is_accepted(shaped) else None
            if found is None:
                continue
            if not self._harmed(found):
                return found
            if second_best is None or _served(found) > _served(second_best):
                second_best = found
        return second_best

    def _eligible(self, shaped: Pod, targets: tuple[Candidate, ...]) -> Plan | None:
        """Return the plan with a shape that is aligned on a target and harms nowhere, or only where the pod can be kept off."""
        found = self._helpful(shaped, targets)
        return found if found is not None and self._can_keep_off(found, self._harmed(found)) else None

    def _harmed(self, found: Plan) -> set[str]:
        return {name for name, verdict in found.verdicts.items() if self._is_worse(name, verdict)}

    def _unshaped(self) -> Plan:
        """Return the author's pod; the pod as received where undoing our record would lose a class that admits it."""
        if self._received_pod is None or not any(self._is_worse(name, verdict) for name, verdict in self._before.items()):
            return self._start
        verdicts = judge_all(self._received_pod, self._wanted, self._scene.candidates)
        return replace(self._start, pod=self._received_pod, verdicts=verdicts)

    def _attempts(self, *, shape: bool) -> Iterator[Pod]:
        yield self._scene.pod
        if shape:
            yield from attempts(self._scene)

    def _helpful(self, shaped: Pod, targets: tuple[Candidate, ...]) -> Plan | None:
        """Return the plan with this shape; None, soon, where it is aligned on no target."""
        if shaped is self._scene.pod:
            return self._start if is_met(self._before, targets) else None
        first = judge_all(shaped, self._wanted, targets)
        if not is_met(first, targets):
            return None
        rest = [each for each in self._scene.candidates if each.name not in first]
        verdicts = dict(sorted({**first, **judge_all(shaped, self._wanted, rest)}.items()))
        return replace(self._start, pod=shaped, verdicts=verdicts)

    def _is_accepted(self, shaped: Pod) -> bool:
        """Tell whether the namespace's LimitRanges accept the shape, or have no more against it than against the author's pod."""
        new = self._scene.new_breaches(shaped)
        if new:
            self._refused.setdefault(new, shaped)
        return not new

    def _can_keep_off(self, found: Plan, harmed: set[str]) -> bool:
        return not harmed or (harmed <= self._avoided(found.verdicts) and self._way(found.verdicts) is not None)

    def _targets(self) -> Iterator[tuple[Candidate, ...]]:
        """Yield the classes of which at least one must align the pod: in strict mode those that enforce it, before all others.

        On one NUMA node everything is aligned anyway, so such classes prove nothing where there are others.
        """
        several = tuple(each for each in self._scene.candidates if each.several) or self._scene.candidates
        enforced = tuple(each for each in several if each.enforced)
        if enforced and enforced != several and self._mode is not Mode.BEST_EFFORT:
            yield enforced
        yield several

    def _is_worse(self, name: str, after: Verdict) -> bool:
        return not keeps_all(name, after, self._before, self._received)

    def _injected(self, chosen: Plan) -> Plan:
        """Return the plan with the injections that must not narrow the choice."""
        paged = with_hugepages(chosen.pod, self._scene)
        if paged is not chosen.pod:
            verdicts = judge_all(paged, self._wanted, chosen.candidates)
            no_worse = all(_RANK[verdicts[name].outcome] >= _RANK[old.outcome] for name, old in chosen.verdicts.items())
            if no_worse and breaches(paged, self._scene.bounds) <= breaches(chosen.pod, self._scene.bounds):
                chosen = replace(chosen, pod=paged, verdicts=verdicts)
        return self._steered(self._annotated(chosen))

    def _annotated(self, chosen: Plan) -> Plan:
        if not self._scene.policy.hami:
            return chosen
        aligned = (each for each in chosen.candidates if chosen.verdicts[each.name].outcome is Outcome.ALIGNED)
        alignment = hami.alignment(self._scene.pod, self._mode, self._wanted, [each for each in aligned if each.several])
        return replace(chosen, pod=put(chosen.pod, (*ANNOTATIONS, HAMI_ALIGNMENT), alignment)) if alignment else chosen

    def _steered(self, chosen: Plan) -> Plan:
        if self._mode is Mode.BEST_EFFORT:
            liked = steering.preference(self._scene.pod, *self._sides(chosen.verdicts)) if self._scene.policy.steer else None
            return replace(chosen, pod=steering.preferred(chosen.pod, liked), steering={PREFERRED: liked}) if liked else chosen
        way = self._way(chosen.verdicts)
        return replace(chosen, pod=steering.required(chosen.pod, way), steering={REQUIRED: way}) if way else chosen

    def _way(self, verdicts: Verdicts) -> steering.Alternatives | None:
        """Return the required affinity that keeps the pod off the classes that certainly do not serve it."""
        if not self._scene.policy.steer or self._mode is Mode.BEST_EFFORT or not is_met(verdicts, self._scene.candidates):
            return None
        return steering.keep_off(self._scene.pod, *self._sides(verdicts), complete=self._scene.policy.complete)

    def _sides(self, verdicts: Verdicts) -> tuple[list[NodeClass], list[NodeClass]]:
        """Return the classes to keep and to avoid. What may serve the pod after all is kept, if nothing to wish for."""
        kept = {Outcome.ALIGNED} if self._mode is Mode.BEST_EFFORT else {Outcome.ALIGNED, Outcome.UNKNOWN}
        avoided = self._avoided(verdicts)
        classes = [each.node.node_class for each in self._scene.candidates]
        return [e for e in classes if verdicts[e.name].outcome in kept], [e for e in classes if e.name in avoided]

    def _avoided(self, verdicts: Verdicts) -> frozenset[str]:
        wrong = {Outcome.ADMITTED, Outcome.REFUSED}
        return frozenset(name for name, verdict in verdicts.items() if verdict.outcome in wrong)


def _served(found: Plan) -> int:
    return sum(verdict.outcome is Outcome.ALIGNED for verdict in found.verdicts.values())


def _why_not(scene: Scene, wanted: Asks) -> str | None:
    """Return why a pod is not shaped, though it could be."""
    for each in scene.candidates:
        if each.node.node_class.device_specs == "notPassed" and each.node.config.cpu_static:
            return f"not shaped: on {each.name} CPUs of its own would cost it its GPUs (deviceSpecs: notPassed)"
    if shares_silently(scene, wanted):
        return "not shaped: it asks for a part of a GPU and declares no CPU or memory; declare them, or set shapeShared"
    return None


def _hints(scene: Scene) -> Iterator[str]:
    """Yield what keeps a pod that nothing aligns from being shaped at all."""
    if is_pod_level(scene.pod):
        if not any("PodLevelResourceManagers" in each.node.gates for each in scene.candidates):
            yield "pod-level resources get no CPUs of their own: no node class has the gate PodLevelResourceManagers on"
    elif scene.policy.memory.inject == "never":
        for container in unfixed_memory(scene):
            yield f"container {container.name}: set resources.limits.memory, and requests to the same; the policy injects none"

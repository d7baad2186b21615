"""The nearest change that would align a pod, found by asking the model itself.

Nothing here knows why a kubelet refuses. A search lowers one resource of one container at a time (or rounds it, or fills in a
missing limit), judges the changed pod, and keeps the smallest change after which it is aligned. What had to change is what was
at fault, so the explanation and the fix never contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from webhook.core import knobs, widening
from webhook.core.accelerators import Catalogue
from webhook.core.change import Change, applied, merged
from webhook.core.containers import Pod, visit
from webhook.core.knobs import Knob
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.resource_names import MEMORY
from webhook.core.verdict import Outcome, Verdict

Judge = Callable[[NodeKubelet, Pod], Verdict]

Created = Callable[[Pod], Mapping[str, Verdict]]
"""Tells what becomes of a pod when it is created anew, our own mutation included: class -> verdict."""

CALLS_PER_CLASS: Final = 48
"""How often one class is asked about one pod: a bound on the time a refusal takes, not on the truth of what it says."""

_SMALL_MACHINE: Final = 4
_SMALL_POD: Final = 8
_FEWEST_CALLS: Final = 4
_PROPOSALS: Final = 3
_CANDIDATES: Final = 6


@dataclass(frozen=True, slots=True)
class Fix:
    """Changes that together align the pod.

    Attributes:
        classes: on which classes, sorted; filled in by `nearest`.
    """

    changes: tuple[Change, ...]
    classes: tuple[str, ...] = ()

    @property
    def distance(self) -> tuple[int, float, str]:
        """Return how far it is from what the author wrote: fewer changes that take something away first, then smaller ones."""
        return sum(not change.widens for change in self.changes), sum(change.size for change in self.changes), repr(self.changes)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What one class holds against a pod.

    Attributes:
        fixes: changes that align it there, nearest first; several where any one of several resources may give way.
        blamed: the resources that have to give way, container by container; empty: nothing that could be changed helps.
        missing: limits that would have to be filled in first, for the pod to get CPUs of its own at all.
        widened: amounts that would have to need as many NUMA nodes as the devices do; empty: that is not what is wrong.
        exhausted: the search ended because it had asked often enough; there may be a fix.
    """

    fixes: tuple[Fix, ...] = ()
    blamed: tuple[Knob, ...] = ()
    missing: tuple[Change, ...] = ()
    widened: tuple[Change, ...] = ()
    exhausted: bool = False


@dataclass(slots=True)
class _Bench:
    """One class asked about variants of one pod, within a budget."""

    judge: Judge
    node: NodeKubelet
    pod: Pod
    calls: int
    _seen: dict[tuple[Change, ...], bool] = field(default_factory=dict)

    def works(self, changes: tuple[Change, ...]) -> bool:
        """Tell whether the pod with the changes is aligned; False, too, once the budget is spent."""
        if changes not in self._seen:
            if self.calls <= 0:
                return False
            self.calls -= 1
            verdict = self.judge(self.node, applied(self.pod, changes))
            self._seen[changes] = verdict.outcome is Outcome.ALIGNED
        return self._seen[changes]


def diagnose(pod: Pod, node: NodeKubelet, catalogue: Catalogue, judge: Judge) -> Diagnosis:
    """Return what one class holds against a pod that is not aligned there."""
    if node.start is not None:
        return Diagnosis()
    bench = _Bench(judge, node, pod, _budget(node, len(visit(pod))))
    # With one NUMA node a pod is aligned by construction: no limits are needed for it.
    missing = knobs.missing_limits(pod, node) if len(node.machine.cells) > 1 else ()
    if missing and bench.works(missing):
        return Diagnosis((Fix(missing),), missing=missing)
    widened = widening.widened(applied(pod, missing), node)
    if widened and not bench.works((*missing, *widened)):
        widened = ()
    found = _search(bench, missing, knobs.find(applied(pod, missing), node, catalogue))
    if widened:
        return replace(found, fixes=(Fix(merged((*missing, *widened))), *found.fixes), missing=missing, widened=widened)
    return found if found.fixes else Diagnosis(missing=missing, exhausted=bench.calls <= 0)


def _budget(node: NodeKubelet, containers: int) -> int:
    """A judgement is dear with many containers, and where hints are merged over many NUMA nodes: ask less often then."""
    cells = len(node.machine.cells)
    merges = cells > _SMALL_MACHINE and node.config.topology_policy in widening.MERGING
    calls = CALLS_PER_CLASS * _SMALL_MACHINE // (2 * cells) if merges else CALLS_PER_CLASS
    return max(calls * _SMALL_POD // max(containers, _SMALL_POD), _FEWEST_CALLS)


def _search(bench: _Bench, base: tuple[Change, ...], found: Sequence[Knob]) -> Diagnosis:
    alone = [(knob, change) for knob in found if (change := _nearest(bench, base, knob)) is not None]
    turned = alone or _together(bench, base, found)
    if not turned:
        return Diagnosis()
    ways = [(change,) for _, change in turned] if alone else [tuple(change for _, change in turned)]
    fixes = sorted((Fix(merged((*base, *way))) for way in ways), key=lambda fix: fix.distance)
    offered = {(change.where, change.resource) for change in base}
    blamed = tuple(knob for knob, _ in turned if (knob.container.path, knob.resource) not in offered)
    return Diagnosis(tuple(fixes), blamed, base)


def _nearest(bench: _Bench, base: tuple[Change, ...], knob: Knob) -> Change | None:
    """Return the smallest change of one resource that helps, all else as it is."""
    if not bench.works((*base, knob.to(knob.least))):
        return _upwards(bench, base, knob)
    return _upwards(bench, base, knob) or _downwards(bench, base, knob)


def _upwards(bench: _Bench, base: tuple[Change, ...], knob: Knob) -> Change | None:
    changes = (knob.to(amount) for amount in knob.rounded_up)
    return next((change for change in changes if bench.works((*base, change))), None)


def _downwards(bench: _Bench, base: tuple[Change, ...], knob: Knob) -> Change:
    """Return the largest amount below the present one that works; the least one is known to.

    The capacities of NUMA nodes are tried before halving: they are the answer nearly always.
    """
    low, high = knob.least, knob.present
    for guess in knob.guesses:
        if low < guess < high:
            if bench.works((*base, knob.to(guess))):
                low = guess
                break
            high = guess
    while (middle := knob.between(low, high)) is not None:
        if bench.works((*base, knob.to(middle))):
            low = middle
        else:
            high = middle
        if bench.calls <= 0:
            break
    return knob.to(low)


def _together(bench: _Bench, base: tuple[Change, ...], found: Sequence[Knob]) -> list[tuple[Knob, Change]]:
    """Return changes of several resources that help together, the devices kept as many as possible.

    Everything is lowered as far as it goes; then one resource after the other gets back as much as still works.
    """
    lowered = {knob: knob.to(knob.least) for knob in found if knob.least != knob.present}
    if not lowered or not bench.works((*base, *lowered.values())):
        return []
    for knob in list(lowered):
        others = tuple(change for other, change in lowered.items() if other is not knob)
        if bench.works((*base, *others)):
            del lowered[knob]
        else:
            lowered[knob] = _downwards(bench, (*base, *others), knob)
    return list(lowered.items())


def nearest(
    pod: Pod,
    diagnoses: Mapping[str, Diagnosis],
    nodes: Mapping[str, NodeKubelet],
    judge: Judge,
    created: Created | None = None,
) -> tuple[Fix, ...]:
    """Return the nearest fix, then others for classes that it does not serve; each says on which classes it works.

    Args:
        pod: the pod that was judged.
        diagnoses: class -> diagnosis, of the classes that do not align the pod.
        nodes: class -> its kubelet.
        judge: gives the verdict on a changed pod.
        created: if given, what the mutation fills in anyway is left out of the fixes.
    """
    proposed = sorted(dict.fromkeys(chain.from_iterable(d.fixes for d in diagnoses.values())), key=lambda fix: fix.distance)
    asked = _Proposals(pod, diagnoses, nodes, judge, created)
    return tuple(_covering(asked.verified(fix) for fix in proposed[:_CANDIDATES]))


@dataclass(frozen=True, slots=True)
class _Proposals:
    """Fixes proposed by some classes, put to all of them."""

    pod: Pod
    diagnoses: Mapping[str, Diagnosis]
    nodes: Mapping[str, NodeKubelet]
    judge: Judge
    created: Created | None
    _created: dict[tuple[Change, ...], tuple[str, ...]] = field(default_factory=dict)

    def verified(self, fix: Fix) -> Fix:
        """Return the fix with the classes on which it works, without what need not be written."""
        return self._shortest(fix) or Fix(fix.changes, tuple(self._serves(fix)))

    def _serves(self, fix: Fix) -> Iterator[str]:
        changed = applied(self.pod, fix.changes)
        for name in sorted(self.diagnoses):
            if self.nodes[name].start is not None:
                continue
            if fix in self.diagnoses[name].fixes or self.judge(self.nodes[name], changed).outcome is Outcome.ALIGNED:
                yield name

    def _shortest(self, fix: Fix) -> Fix | None:
        """Return the fix as short as our own mutation lets it be; memory may be what it must not fill in."""
        written = tuple(change for change in fix.changes if not change.evens_out)
        if self.created is None or not written or len(written) == len(fix.changes):
            return None
        with_memory = tuple(change for change in fix.changes if not change.evens_out or change.resource == MEMORY)
        for changes in dict.fromkeys((written, with_memory)):
            if classes := self._aligned_when_created(self.created, changes):
                return Fix(changes, classes)
        return None

    def _aligned_when_created(self, created: Created, changes: tuple[Change, ...]) -> tuple[str, ...]:
        """Fixes of different classes often differ in nothing but what is filled in: each is asked about once."""
        if changes not in self._created:
            verdicts = created(applied(self.pod, changes))
            known = (name for name in sorted(self.diagnoses) if name in verdicts)
            self._created[changes] = tuple(name for name in known if verdicts[name].outcome is Outcome.ALIGNED)
        return self._created[changes]


def _covering(fixes: Iterable[Fix]) -> Iterator[Fix]:
    served: set[str] = set()
    count = 0
    for fix in fixes:
        if count < _PROPOSALS and not served.issuperset(fix.classes):
            served.update(fix.classes)
            count += 1
            yield fix

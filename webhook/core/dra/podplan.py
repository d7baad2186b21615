"""What a mutation would make of a pod whose accelerators DRA gives out, on some candidate class at least.

Nobody tells the kubelet where claimed devices are, and CPUs that are pinned on another NUMA node are worse than CPUs that float.
So such a pod gets CPUs of its own only if on the idle node of every candidate that pins the first devices that the scheduler
takes are on NUMA nodes of those CPUs, and of the memory. Where that is not known the pod stays as its author wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from webhook.core import wording
from webhook.core.accelerators import Asks
from webhook.core.containers import Pod
from webhook.core.dra.podclaims import PodClaims
from webhook.core.dra.served import pins
from webhook.core.judging import Verdicts, is_met, judge_all, keeps_all
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.shape.attempts import attempts
from webhook.core.shape.candidate import Candidate
from webhook.core.shape.scene import Scene, scene
from webhook.core.snapshot import Snapshot
from webhook.core.verdict import Verdict

_MOST_NOTE: Final = wording.WARNING_LENGTH - len("numalign: ")


@dataclass(frozen=True, slots=True)
class Shaped:
    """What becomes of a pod: the pod, its verdicts, and what people should know about what was not done."""

    pod: Pod
    verdicts: Verdicts
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodPlanner:
    """One search for a shape.

    Attributes:
        author: the pod with earlier injections of ours undone.
        wanted: what its containers ask of plugins.
        candidates: with what DRA serves on each.
        snapshot: as the pod sees it.
        claims: what DRA gives the pod.
        before: the verdicts on the author's pod.
        received: those on the pod with our injections, if there were any; what admits it must admit the result.
    """

    author: Pod
    wanted: Asks
    candidates: tuple[Candidate, ...]
    snapshot: Snapshot
    claims: PodClaims
    before: Verdicts
    received: Verdicts

    def plan(self) -> Shaped:
        """Return what becomes of the pod."""
        pinning = [each for each in self.candidates if each.is_by_dra and _pins_anything(each)]
        if not self.snapshot.policy.claims.shape_pods or self._is_pinned(pinning):
            return self._as_written()
        if self.claims.cpu:
            return self._as_written(*left_to_claims(self.claims))
        unknown = next((each.served.why for each in pinning if each.served and each.served.why), "")
        if unknown:
            return self._as_written(_note(unknown))
        return self._searched(pinning)

    def _searched(self, pinning: list[Candidate]) -> Shaped:
        """Return the pod in the first shape that will do; else as written, with what is against the least surprising one."""
        against, setting = "", self._scene()
        for pod in attempts(setting):
            beyond = setting.new_breaches(pod)
            if beyond:
                against = against or min(map(str, beyond))
                continue
            verdicts = judge_all(pod, self.wanted, self.candidates)
            why = self._against(verdicts, pinning)
            if not why:
                return Shaped(pod, verdicts)
            against = against or why
        runs = any(verdict.admitted for verdict in self.before.values())
        return self._as_written(*([_note(against)] if against and runs else []))

    def _as_written(self, *notes: str) -> Shaped:
        return Shaped(self.author, self.before, notes)

    def _is_pinned(self, pinning: list[Candidate]) -> bool:
        """Tell whether the author's numbers give each such container CPUs of its own, wherever any can be had; or none can."""
        static = [(each.name, each.served) for each in pinning if each.node.config.cpu_static and each.served]
        return all(pins(self.before[name], container) for name, served in static for container in served.bearers)

    def _scene(self) -> Scene:
        everything = Asks((*self.wanted.accelerators, *self.claims.asks), self.wanted.nics, self.wanted.unknown)
        return scene(self.author, self.snapshot.policy, everything, self.candidates, self.snapshot.bounds)

    def _against(self, verdicts: Verdicts, pinning: list[Candidate]) -> str:
        """Return why a shape will not do; empty: it will."""
        lost = [name for name, each in verdicts.items() if not keeps_all(name, each, self.before, self.received)]
        if lost:
            return f"the kubelet of {wording.some(lost, 1)} would not admit it"
        apart = [each.name for each in pinning if not _is_near(verdicts[each.name], each)]
        if apart:
            return f"on {wording.some(apart, 1)} its CPUs would be away from its devices"
        plugins = [each for each in self.candidates if each.several and not each.is_by_dra]
        return (
            "" if not plugins or is_met(verdicts, plugins) else f"{wording.some([e.name for e in plugins], 1)} would not align it"
        )


def _note(why: str) -> str:
    """Return why a pod is not sized, and with it what its author can do where there is room for both."""
    note = f"not sized: {why}"
    advised = f"{note}; whole CPUs with requests = limits pin them"
    return advised if len(advised) <= _MOST_NOTE else note


def left_to_claims(claims: PodClaims) -> Iterator[str]:
    """Yield a line for each container whose CPUs come from a claim."""
    for name in sorted(claims.cpu):
        yield f"container {name}: CPUs come from a claim; its cpu requests and limits stay, so that none counts twice"


def _pins_anything(each: Candidate) -> bool:
    return each.several and (each.node.config.cpu_static or each.node.config.memory_static)


def _is_near(verdict: Verdict, each: Candidate) -> bool:
    """Tell whether each container with such devices has CPUs of its own, and memory, on all the NUMA nodes of the devices."""
    if each.served is None or not verdict.admitted or not verdict.certain or verdict.unknown:
        return False
    places = each.served.places
    return all(name in places and _contains(verdict, name, places[name], each.node) for name in each.served.bearers)


def _contains(verdict: Verdict, container: str, cells: frozenset[int], node: NodeKubelet) -> bool:
    placement = verdict.placements[container]
    if placement.memory and not cells <= placement.memory.keys():
        return False
    if not node.config.cpu_static:
        return True
    mine = sum(1 << cpu for cpu in placement.cpus)
    return cells <= {cell for cell, members in node.machine.cpu_topology.numa.items() if members & mine}

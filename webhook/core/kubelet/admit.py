"""The kubelet's admission of a pod on the idle node of a class: managers first, then the fit check.

Order as in `topologymanager/scope_*.go` and `pkg/kubelet/kubelet.go`: per container, or once per pod, the hints of the device,
CPU and Memory Manager are merged, the policy admits or refuses, the hint is stored, and each manager allocates, in that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from webhook.core.containers import Pod
from webhook.core.kubelet import aligned, cost, fit, masks
from webhook.core.kubelet.aligned import NO_DEVICE_CONTAINER, SHARED_CPUS
from webhook.core.kubelet.chance import Chooser, Matters, always, possible
from webhook.core.kubelet.contract import (
    ChancePanicError,
    ContainerView,
    Hint,
    HintProvider,
    Hints,
    KubeletPanicError,
    PodView,
    Refusal,
)
from webhook.core.kubelet.cpu import KUBELET_PANIC, CpuManager
from webhook.core.kubelet.devices import DeviceManager
from webhook.core.kubelet.memory import MemoryManager
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.kubelet.topology import NONE, Merged
from webhook.core.kubelet.view import view
from webhook.core.verdict import Outcome, Verdict

TOPOLOGY_AFFINITY_ERROR: Final = "TopologyAffinityError"
POD_LEVEL_NOT_SUPPORTED: Final = "PodLevelResourcesNotSupported"

_FIXED_GAPS: Final = (SHARED_CPUS, NO_DEVICE_CONTAINER)
# whole admissions cost ten times as much as placements; both together stay within some ten milliseconds
_MOST_ADMISSIONS: Final = 64
_MOST_PLACEMENTS: Final = 256

_ANYTHING: Final = frozenset({Outcome.ALIGNED, Outcome.ADMITTED, Outcome.REFUSED})
_NO_HINT: Final = Hint(None, False)  # noqa: FBT003


def judge(node: NodeKubelet, pod: Pod) -> Verdict:
    """Return what the kubelet of an idle node of the class does with the pod.

    The pod is the raw object, as written or as stored; it must have passed `wellformed.problems`.
    """
    if node.start is not None:
        return Verdict(start=node.start)
    return judge_view(node, view(pod, node.minor))


def judge_view(node: NodeKubelet, stored: PodView | Refusal) -> Verdict:
    """Return the verdict on a pod that `view` made; one view serves all classes of a minor."""
    if node.start is not None:
        return Verdict(start=node.start)
    if isinstance(stored, Refusal):
        return Verdict(reason=stored.reason, message=stored.message)
    try:
        return _verdict(node, stored)
    except (masks.TooManyMasksError, _EndlessError) as error:
        return Verdict(unknown=str(error))


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict in the form of `numalign verdict` (DESIGN section 6)."""
    return {
        "start": verdict.start,
        "admitted": verdict.admitted,
        "reason": verdict.reason,
        "message": verdict.message or verdict.unknown,
        "masks": {name: None if mask is None else list(mask) for name, mask in verdict.masks.items()},
        "aligned": verdict.aligned,
        "certain": verdict.certain and not verdict.unknown,
    }


def _verdict(node: NodeKubelet, pod: PodView) -> Verdict:
    """Return the verdict, certain only if it is the same whichever devices the kubelet takes.

    Hints depend on what earlier containers got under container scope only; elsewhere it is alignment at most that does.
    """
    chooser = Chooser()
    admission = _Admission(node, pod, chooser)
    first = admission.verdict()
    if not first.certain:
        return replace(first, possible=_outcomes(first))
    if not chooser.chances:
        return first
    by_place = first.admitted and not any(gap.reason in _FIXED_GAPS for gap in first.gaps)
    if node.config.topology_policy != NONE and node.config.topology_scope == "container":
        return _by_hints(node, pod, first, Matters(later=True, last=by_place))
    everything = Matters(later=True, last=True)
    if not by_place or always(lambda other: admission.aligned_with(other) is first.aligned, everything, _MOST_PLACEMENTS):
        return first
    return replace(first, certain=False, possible=frozenset({Outcome.ALIGNED, Outcome.ADMITTED}))


def _by_hints(node: NodeKubelet, pod: PodView, first: Verdict, matters: Matters) -> Verdict:
    """Judge again with all other choices; with too many of them anything is possible."""
    if always(lambda other: _same(_Admission(node, pod, other).verdict(), first), matters, _MOST_ADMISSIONS):
        return first
    found, complete = possible(lambda other: _outcomes(_Admission(node, pod, other).verdict()), matters, _MOST_ADMISSIONS)
    return replace(first, certain=False, possible=frozenset[Outcome]().union(*found) if complete else _ANYTHING)


def _outcomes(verdict: Verdict) -> frozenset[Outcome]:
    return verdict.possible or frozenset({verdict.one_outcome})


def _same(one: Verdict, other: Verdict) -> bool:
    return other.certain and (one.admitted, one.reason, one.masks, one.aligned) == (
        other.admitted,
        other.reason,
        other.masks,
        other.aligned,
    )


class _RefusedError(Exception):
    """The kubelet refuses the pod: `args` are the container at which it does (empty: the pod) and the refusal."""


class _EndlessError(Exception):
    """The kubelet would be busy for so long that there is no verdict; `args[0]` says with what."""


class _Admission:
    """One run of the admission of one pod, with one sequence of choices."""

    def __init__(self, node: NodeKubelet, pod: PodView, chooser: Chooser) -> None:
        self._node = node
        self._pod = pod
        self._pod_managed = "PodLevelResourceManagers" in node.gates and pod.pod_level
        self._devices = DeviceManager(node.device_policy, pod, chooser)
        self._cpu = CpuManager(node.cpu_policy, node.gates, node.minor, pod)
        self._memory = MemoryManager(node.memory_policy, node.gates, node.minor, pod)
        self._providers: tuple[HintProvider, ...] = (self._devices, self._cpu, self._memory)
        self._hints: dict[str, Hint] = {}
        self._seconds = 0.0

    def verdict(self) -> Verdict:
        """Return the verdict of this run."""
        try:
            self._admit()
        except _RefusedError as refused:
            container, refusal = refused.args
            return Verdict(reason=refusal.reason, message=refusal.message, container=container)
        except ChancePanicError as panic:
            return Verdict(reason=KUBELET_PANIC, message=str(panic), certain=False, possible=_ANYTHING)
        except KubeletPanicError as panic:
            return Verdict(reason=KUBELET_PANIC, message=str(panic))
        level_known = "PodLevelResources" in self._node.gates
        short = fit.shortage(self._pod, self._node.fit_allocatable, pod_level=level_known)
        if short:
            return Verdict(reason=short.refusal.reason, message=short.refusal.message, certain=short.certain)
        if self._pod.pod_level and not level_known:
            # `lifecycle/features_linux.go`, asked after the fit check
            return Verdict(reason=POD_LEVEL_NOT_SUPPORTED, message="PodLevelResources feature gate is disabled")
        return self._admitted()

    def aligned_with(self, chooser: Chooser) -> bool:
        """Tell whether the admitted pod would be aligned with other devices under the same hints."""
        devices = DeviceManager(self._node.device_policy, self._pod, chooser)
        for container in self._pod.containers:
            devices.allocate(container, self._hints[container.name])
            held = self._holding(container.name, devices)
            if aligned.uses_devices(self._node.idle, container) and aligned.container_gaps(self._node.idle, container.name, held):
                return False
        return True

    def _admit(self) -> None:
        """Go through the Topology Manager; raises `_RefusedError` at the first refusal."""
        if self._node.config.topology_policy == NONE:
            for container in self._pod.containers:
                self._allocate(container, _NO_HINT)
        elif self._node.config.topology_scope == "container":
            self._admit_by_container()
        elif self._pod_managed:
            self._admit_pod_pool()
        else:
            self._admit_by_pod()

    def _admit_by_container(self) -> None:
        what = "pod with pod-level resources failed admission with a container-level topology manager"
        for container in self._pod.containers:
            merged = self._merge(
                p.container_hints(container, singles=self._node.topology_policy.singles) for p in self._providers
            )
            self._require(merged, container.name, what)
            self._allocate(container, merged.hint)

    def _admit_by_pod(self) -> None:
        hint = self._pod_hint("")
        for container in self._pod.containers:
            self._allocate(container, hint)

    def _admit_pod_pool(self) -> None:
        hint = self._pod_hint("pod with pod-level resources failed admission under pod-scope topology manager")
        self._hints = {container.name: hint for container in self._pod.containers}
        for provider in self._providers:
            refusal = provider.allocate_pod(hint)
            if refusal:
                raise _RefusedError("", refusal)

    def _pod_hint(self, what: str) -> Hint:
        merged = self._merge(p.pod_hints(singles=self._node.topology_policy.singles) for p in self._providers)
        self._require(merged, "", what)
        return merged.hint

    def _merge(self, provided: Iterator[Hints]) -> Merged:
        hints = tuple(provided)
        self._seconds += cost.hint_seconds(self._node, hints)
        if self._seconds > cost.HOPELESS:
            raise _EndlessError(f"merging the hints would take the kubelet {cost.duration(self._seconds)}")
        return self._node.topology_policy.merge(hints)

    def _require(self, merged: Merged, container: str, what: str) -> None:
        if merged.admit:
            return
        message = f"Pod Scope {what}" if self._pod_managed else "Resources cannot be allocated with Topology locality"
        raise _RefusedError(container, Refusal(TOPOLOGY_AFFINITY_ERROR, message))

    def _allocate(self, container: ContainerView, hint: Hint) -> None:
        self._hints[container.name] = hint
        for provider in self._providers:
            refusal = provider.allocate(container, hint)
            if refusal:
                raise _RefusedError(container.name, refusal)

    def _admitted(self) -> Verdict:
        held = self._holdings()
        idle = self._node.idle
        found = aligned.gaps(idle, self._pod, held)
        return Verdict(
            admitted=True,
            masks={name: _ids(hint.mask) for name, hint in self._hints.items()},
            aligned=not found,
            placements={name: aligned.placement(holding, idle) for name, holding in held.items()},
            gaps=found,
        )

    def _holdings(self) -> dict[str, aligned.Holding]:
        if self._pod_managed and not self._devices.held:
            # the devices of such a pod are taken when its containers are created, under the same hint
            for container in self._pod.containers:
                self._devices.allocate(container, self._hints[container.name])
        return {container.name: self._holding(container.name, self._devices) for container in self._pod.containers}

    def _holding(self, name: str, devices: DeviceManager) -> aligned.Holding:
        return aligned.Holding(
            hint=self._hints[name],
            cpus=self._cpu.assigned.get(name, 0),
            memory_mask=self._memory.pinned.get(name, 0),
            memory=self._memory.sizes.get(name, {}),
            devices=devices.held.get(name, {}),
        )


def _ids(mask: int | None) -> tuple[int, ...] | None:
    return None if mask is None else masks.ids(mask)

"""The CPU Manager (`pkg/kubelet/cm/cpumanager/policy_static.go`; pod-level resources: KEP-5526).

`StaticCpuPolicy` is what depends on the class alone, `CpuManager` the manager during the admission of one pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from webhook.core.containers import Kind
from webhook.core.kubelet import masks
from webhook.core.kubelet.config import CpuOptions
from webhook.core.kubelet.contract import ContainerView, Hint, Hints, PodView, Refusal
from webhook.core.kubelet.cpu_assignment import EndlessLoopError, NotEnoughCpusError, Strategy, take_by_topology
from webhook.core.kubelet.machine import CpuTopology, union
from webhook.core.quantities import milli, value

SMT_ALIGNMENT_ERROR = "SMTAlignmentError"
UNEXPECTED_ADMISSION_ERROR = "UnexpectedAdmissionError"
EMPTY_POD_SHARED_POOL_ERROR = "EmptyPodSharedPoolError"
KUBELET_PANIC = "KubeletPanic"

_CACHED_ANSWERS = 4096
_DISTRIBUTION_CLAMPED_SINCE = 37


def strategy(options: CpuOptions, threads_per_core: int, minor: int) -> Strategy:
    """Return how the options and the minor make the static policy pick CPUs."""
    return Strategy(
        distribute=options.distribute_across_numa,
        group=threads_per_core if options.full_pcpus_only else 1,
        spread=options.distribute_across_cores,
        uncore=options.prefer_align_by_uncore_cache,
        by_socket=options.align_by_socket and minor >= _DISTRIBUTION_CLAMPED_SINCE,
        clamp=minor >= _DISTRIBUTION_CLAMPED_SINCE,
    )


class StaticCpuPolicy:
    """The static policy of one class: its machine, options and reserved CPUs. Answers are cached; nothing else changes."""

    def __init__(self, topology: CpuTopology, options: CpuOptions, minor: int, reserved: int) -> None:
        self.topology = topology
        self.options = options
        self.reserved = reserved
        self.available = topology.cpus & ~reserved
        self.whole_cores_available = topology.cpus & ~topology.whole_cores(reserved)
        self._strategy = strategy(options, topology.threads_per_core, minor)
        self._masks: tuple[tuple[int, int, int], ...] = ()
        self.take = lru_cache(_CACHED_ANSWERS)(self._take)
        self.hints = lru_cache(_CACHED_ANSWERS)(self._hints)
        self.single_hints = lru_cache(_CACHED_ANSWERS)(self._single_hints)

    def _take(self, free: int, count: int) -> int | Refusal:
        """Return `count` CPUs of the set `free`, or why that fails."""
        try:
            return take_by_topology(self.topology, self._strategy, free, count)
        except NotEnoughCpusError as error:
            return unexpected(str(error))
        except EndlessLoopError:
            return Refusal(
                KUBELET_PANIC, "the kubelet hangs in the CPU Manager: distribute-cpus-across-numa cannot hand out whole cores"
            )

    def aligned(self, mask: int, cpus: int) -> int:
        """Return those of `cpus` on the mask's NUMA nodes, or on their sockets with align-by-socket."""
        near = union(self.topology.numa[node] for node in self.topology.numa if mask >> node & 1)
        if self.options.align_by_socket:
            near = union(socket for socket in self.topology.sockets.values() if socket & near)
        return near & cpus

    def _hints(self, available: int, reusable: int, count: int) -> tuple[Hint, ...]:
        """Return the hints for `count` CPUs over all masks of nodes with CPUs, narrow ones first.

        The narrowest width is measured with every CPU of the machine, reserved and used ones included.
        """
        every = self._all_masks()
        narrowest = next((mask.bit_count() for mask, cpus, _ in every if cpus.bit_count() >= count), len(self.topology.numa))
        return tuple(
            Hint(mask, mask.bit_count() == narrowest or self._socket_aligned(sockets, narrowest))
            for mask, cpus, sockets in every
            if not reusable & ~cpus and reusable.bit_count() + (available & cpus).bit_count() >= count
        )

    def _single_hints(self, available: int, reusable: int, count: int) -> tuple[Hint, ...]:
        """Return the hints of one node only: such a mask is always the narrowest possible."""
        return tuple(
            Hint(1 << node, preferred=True)
            for node, cpus in self.topology.numa.items()
            if not reusable & ~cpus and reusable.bit_count() + (available & cpus).bit_count() >= count
        )

    def _socket_aligned(self, sockets: int, narrowest: int) -> bool:
        per_socket = len(self.topology.numa) // self.topology.socket_count
        return self.options.align_by_socket and per_socket > 0 and sockets == -(-narrowest // per_socket)

    def _all_masks(self) -> tuple[tuple[int, int, int], ...]:
        """Return (mask, its CPUs, how many sockets it touches) for every mask; only built where all are needed."""
        if not self._masks:
            self._masks = tuple(self._describe_masks())
        return self._masks

    def _describe_masks(self) -> Iterator[tuple[int, int, int]]:
        for mask in masks.subsets(masks.of(self.topology.numa)):
            cpus = union(self.topology.numa[node] for node in masks.bits(mask))
            yield mask, cpus, sum(1 for socket in self.topology.sockets.values() if socket & cpus)


def unexpected(error: str) -> Refusal:
    """Return a plain error of a manager as the pod's status shows it (`pkg/kubelet/cm/admission/errors.go`)."""
    return Refusal(UNEXPECTED_ADMISSION_ERROR, f"Allocate failed due to {error}, which is unexpected")


class CpuManager:
    """The CPU Manager during the admission of one pod; without a static policy it has no opinion and gives nothing.

    Attributes:
        assigned: container -> its CPU set.
        pool: the pod's own CPU set (pod-level resources under pod scope), else 0.
    """

    def __init__(self, policy: StaticCpuPolicy | None, gates: frozenset[str], minor: int, pod: PodView) -> None:
        self.assigned: dict[str, int] = {}
        self.pool = 0
        self._policy = policy
        self._pod = pod
        self._pod_managed = "PodLevelResourceManagers" in gates and pod.pod_level
        self._ignored = pod.pod_level and not _pod_level_supported(gates, minor)
        self._free = policy.available if policy else 0
        self._reusable = 0

    def container_hints(self, container: ContainerView, *, singles: bool) -> Hints:
        """Return the hints for a container; None: it gets no CPUs of its own."""
        count = self._exclusive(container)
        if self._policy is None or count == 0 or self._ignored:
            return None
        return {"cpu": self._hints_for(self._policy, count, singles=singles)}

    def pod_hints(self, *, singles: bool) -> Hints:
        """Return the hints for the pod's sum; none possible where nothing is left for containers that share its pool."""
        count = self._pod_total()
        if self._policy is None or count == 0 or self._ignored:
            return None
        if self._pod_managed and self._empty_pool(count):
            return {"cpu": ()}
        return {"cpu": self._hints_for(self._policy, count, singles=singles)}

    def _hints_for(self, policy: StaticCpuPolicy, count: int, *, singles: bool) -> tuple[Hint, ...]:
        return (policy.single_hints if singles else policy.hints)(self._free, self._reusable, count)

    def allocate(self, container: ContainerView, hint: Hint) -> Refusal | None:
        """Give a container its CPUs."""
        count = self._exclusive(container)
        if self._policy is None or count == 0 or self._ignored:
            return None
        taken = self._checked_take(self._policy, count, hint.mask, self._reusable)
        if isinstance(taken, Refusal):
            return taken
        self.assigned[container.name] = taken
        self._reusable = self._reusable | taken if container.kind is Kind.INIT else self._reusable & ~taken
        return None

    def allocate_pod(self, hint: Hint) -> Refusal | None:
        """Take the pod's CPUs and share them out among its containers."""
        count = self._pod_total()
        if self._policy is None or count == 0 or not self._pod_managed:
            return None
        problem = self._empty_pool(count)
        if problem:
            return Refusal(EMPTY_POD_SHARED_POOL_ERROR, problem)
        taken = self._checked_take(self._policy, count, hint.mask, 0)
        if isinstance(taken, Refusal):
            return taken
        self.pool = taken
        return self._partition(self._policy)

    def _checked_take(self, policy: StaticCpuPolicy, count: int, mask: int | None, reusable: int) -> int | Refusal:
        problem = self._smt_problem(policy, count)
        return problem or self._take(policy, count, mask, reusable)

    def _smt_problem(self, policy: StaticCpuPolicy, count: int) -> Refusal | None:
        """Return the refusal of full-pcpus-only; node-wide, and CPUs of finished init containers do not count as free."""
        if not policy.options.full_pcpus_only:
            return None
        width = policy.topology.threads_per_core
        if count % width:
            return Refusal(
                SMT_ALIGNMENT_ERROR, f"SMT Alignment Error: requested {count} cpus not multiple cpus per core = {width}"
            )
        free = (self._free & policy.whole_cores_available).bit_count()
        if count > free:
            return Refusal(
                SMT_ALIGNMENT_ERROR,
                "SMT Alignment Error: not enough free physical CPUs: "
                f"available physical CPUs = {free}, requested CPUs = {count}, CPUs per core = {width}",
            )
        return None

    def _take(self, policy: StaticCpuPolicy, count: int, mask: int | None, reusable: int) -> int | Refusal:
        """Take CPUs, first those of the hint's nodes."""
        allocatable = self._free | reusable
        near = 0 if mask is None else policy.aligned(mask, allocatable)
        first = policy.take(near, min(count, near.bit_count()))
        if isinstance(first, Refusal):
            return first
        rest = policy.take(allocatable & ~first, count - first.bit_count())
        if isinstance(rest, Refusal):
            return rest
        self._free &= ~(first | rest)
        return first | rest

    def _partition(self, policy: StaticCpuPolicy) -> Refusal | None:
        """Share the pod's pool out: sidecars keep theirs, init containers use what sidecars before them left."""
        shared, sharers = self.pool, list[str]()
        for container in self._pod.containers:
            count = self._exclusive(container)
            if count == 0:
                if container.kind is Kind.INIT:
                    self.assigned[container.name] = shared
                else:
                    sharers.append(container.name)
                continue
            taken = policy.take(shared, count)
            if isinstance(taken, Refusal):
                return taken
            self.assigned[container.name] = taken
            if container.kind is not Kind.INIT:
                shared &= ~taken
        self.assigned.update(dict.fromkeys(sharers, shared))
        return None

    def _exclusive(self, container: ContainerView) -> int:
        """Return how many CPUs a container gets for itself."""
        if self._pod.qos != "Guaranteed" or (self._pod_managed and not _guaranteed(container)):
            return 0
        return _whole(container.requests.get("cpu", 0))

    def _pod_total(self) -> int:
        """Return how many CPUs the pod gets: its own request, or the peak of its containers'."""
        if self._pod_managed:
            return _whole(self._pod.requests.get("cpu", 0)) if self._pod.qos == "Guaranteed" else 0
        sidecars = peak = apps = 0
        for container in self._pod.containers:
            count = self._exclusive(container)
            if container.kind is Kind.SIDECAR:
                sidecars += count
            elif container.kind is Kind.INIT:
                peak = max(peak, sidecars + count)
            else:
                apps += count
        return max(peak, sidecars + apps)

    def _empty_pool(self, total: int) -> str:
        """Return the kubelet's words where containers that share the pod's pool would find it empty, else nothing."""
        exclusive, sharing = 0, False
        for container in self._pod.containers:
            count = self._exclusive(container)
            if container.kind is not Kind.INIT:
                exclusive += count
                sharing = sharing or count == 0
            elif count == 0 and exclusive >= total:
                return "pod rejected, pod has shared init containers but no cpus available for them"
        if sharing and exclusive >= total:
            return (
                "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers"
            )
        return ""


def _pod_level_supported(gates: frozenset[str], minor: int) -> bool:
    """Tell whether the manager serves a pod with pod-level resources; before 1.36 it only looks away while the gate is on."""
    if minor < 36:
        return "PodLevelResources" not in gates
    return {"PodLevelResources", "PodLevelResourceManagers"} <= gates


def _guaranteed(container: ContainerView) -> bool:
    """Tell whether a container alone would be Guaranteed (`pkg/kubelet/cm/qos`)."""
    return all(
        container.requests.get(resource, 0) and container.requests.get(resource, 0) == container.limits.get(resource, 0)
        for resource in ("cpu", "memory")
    )


def _whole(cpu: int) -> int:
    """Return a CPU quantity in whole CPUs; 0 where it is a fraction."""
    return value(cpu) if value(cpu) * 1000 == milli(cpu) else 0

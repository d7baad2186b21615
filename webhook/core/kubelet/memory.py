"""The Memory Manager, policy Static (`pkg/kubelet/cm/memorymanager/policy_static.go`; pod-level resources: KEP-5526).

`StaticMemoryPolicy` is what depends on the class alone, `MemoryManager` the manager during the admission of one pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from webhook.core import quantities
from webhook.core.containers import Kind
from webhook.core.kubelet import masks, qos
from webhook.core.kubelet.contract import ContainerView, Hint, Hints, KubeletPanicError, PodView, Refusal
from webhook.core.kubelet.cpu import EMPTY_POD_SHARED_POOL_ERROR, unexpected
from webhook.core.resource_names import MEMORY, is_memory

_CACHED_ANSWERS: Final = 4096
_SKIPS_EMPTY_SINCE: Final = 37
_POD_LEVEL_MANAGERS_SINCE: Final = 36

Request = Mapping[str, int]
"""Memory type (`memory`, `hugepages-1Gi`, ...) -> bytes."""


class StaticMemoryPolicy:
    """The static policy of one class: what each NUMA node can give, by memory type. Answers are cached; nothing else changes."""

    def __init__(self, allocatable: Mapping[int, Mapping[str, int]]) -> None:
        self.allocatable = allocatable
        self.everything = masks.of(allocatable)
        self.types = frozenset(name for table in allocatable.values() for name in table)
        self.idle_hints = lru_cache(_CACHED_ANSWERS)(self._idle_hints)
        self.sums = lru_cache(maxsize=None)(self._sums)
        self.narrowest = lru_cache(_CACHED_ANSWERS)(self._narrowest)

    def _sums(self, name: str) -> dict[int, int]:
        """Return for every mask what its nodes can give of one type."""
        return sums({node: table[name] for node, table in self.allocatable.items()}, self.everything)

    def fits(self, mask: int, request: Request) -> bool:
        """Tell whether the mask's nodes could give all of the request when idle."""
        return all(sum(self.allocatable[node][name] for node in masks.bits(mask)) >= size for name, size in request.items())

    def _narrowest(self, request: tuple[tuple[str, int], ...]) -> int:
        """Return the smallest width of a mask that could give all of the request when idle; all nodes if none."""
        tables = [(self.sums(name), size) for name, size in request]
        for mask in masks.subsets(self.everything):
            if all(table[mask] >= size for table, size in tables):
                return mask.bit_count()
        return self.everything.bit_count()

    def _idle_hints(self, request: tuple[tuple[str, int], ...]) -> tuple[Hint, ...]:
        tables = [(self.sums(name), size) for name, size in request]
        width = self.narrowest(request)
        return tuple(
            Hint(mask, mask.bit_count() == width)
            for mask in masks.subsets(self.everything)
            if all(table[mask] >= size for table, size in tables)
        )

    def fewest_nodes(self, name: str, size: int) -> int:
        """Return how many NUMA nodes it takes at least to give so many bytes of one type; all nodes if they are too few."""
        amounts = sorted((table[name] for table in self.allocatable.values()), reverse=True)
        for count, _ in enumerate(amounts, start=1):
            if sum(amounts[:count]) >= size:
                return count
        return len(amounts)


def sums(amounts: Mapping[int, int], everything: int) -> dict[int, int]:
    """Return for every mask the sum of its nodes' amounts."""
    totals = {0: 0}
    for mask in masks.subsets(everything):
        lowest = mask & -mask
        totals[mask] = totals[mask ^ lowest] + amounts[lowest.bit_length() - 1]
    return totals


class MemoryManager:
    """The Memory Manager during the admission of one pod; without a static policy it has no opinion and pins nothing.

    Attributes:
        pinned: container -> the mask its memory is pinned to.
        sizes: container -> memory type -> bytes.
    """

    def __init__(self, policy: StaticMemoryPolicy | None, gates: frozenset[str], minor: int, pod: PodView) -> None:
        self.pinned: dict[str, int] = {}
        self.sizes: dict[str, Request] = {}
        self._pod = pod
        self._minor = minor
        self._pod_managed = "PodLevelResourceManagers" in gates and pod.pod_level
        serves = pod.qos == qos.GUARANTEED and not (pod.pod_level and not _pod_level_served(gates, minor))
        self._policy = policy if serves else None
        self._groups: dict[int, int] = {}
        self._taken: dict[tuple[int, str], int] = {}
        self._reusable: dict[tuple[int, str], int] = {}

    def container_hints(self, container: ContainerView, *, singles: bool) -> Hints:
        """Return the hints for one container, the same for each of its memory types; None: no preference."""
        request = self._request(container)
        return self._hints_for(request, singles=singles) if request else None

    def pod_hints(self, *, singles: bool) -> Hints:
        """Return the hints for the pod's sum; none possible where nothing is left for containers that share its memory."""
        request = self._pod_request()
        if self._policy is None or request is None:
            return None
        if self._pod_managed and self._empty_pool(request):
            return dict.fromkeys(request, ())
        return self._hints_for(request, singles=singles) if request else None

    def allocate(self, container: ContainerView, hint: Hint) -> Refusal | None:
        """Pin a container's memory."""
        if self._policy is None:
            return None
        request = self._request(container)
        if request is None:
            return unexpected("[memorymanager] failed to represent quantity as int64")
        if not request and self._minor >= _SKIPS_EMPTY_SINCE:
            return None
        mask = self._place(self._policy, request, hint)
        if isinstance(mask, Refusal):
            return mask
        self._take(self._policy, mask, request)
        self._pin(container.name, mask, request)
        self._book_reusable(container.kind, mask, request)
        return None

    def allocate_pod(self, hint: Hint) -> Refusal | None:
        """Pin the pod's memory as a whole; every container, exclusive or not, gets its share of it."""
        request = self._pod_request()
        if self._policy is None or not self._pod_managed or request is None:
            return None
        if problem := self._empty_pool(request):
            return Refusal(EMPTY_POD_SHARED_POOL_ERROR, problem)
        mask = self._place(self._policy, request, hint)
        if isinstance(mask, Refusal):
            return mask
        self._take(self._policy, mask, request)
        for container in self._pod.containers:
            self._pin(container.name, mask, self._request(container) or request)
        return None

    def _request(self, container: ContainerView) -> dict[str, int] | None:
        """Return the bytes that a container has pinned for itself; None where an amount is no whole number of bytes."""
        if self._pod_managed and not qos.equivalent_guaranteed(container.requests, container.limits):
            return {}
        return _whole(container.requests)

    def _pod_request(self) -> dict[str, int] | None:
        if self._pod_managed:
            request = _whole(self._pod.requests)
            return None if request is None else {name: size for name, size in request.items() if size > 0}
        return _summed((container.kind, self._request(container)) for container in self._pod.containers)

    def _empty_pool(self, total: Request) -> str:
        """Return the kubelet's words where containers that share the pod's memory would find none, else nothing."""
        exclusive = Counter[str]()
        sharing = False
        for container in self._pod.containers:
            request = self._request(container)
            if request is None:
                return "[memorymanager] failed to represent quantity as int64"
            if container.kind is Kind.INIT:
                short = next((name for name, size in total.items() if exclusive[name] >= size), None)
                if not request and short:
                    return f"pod rejected, pod has shared init containers but no {short} available for them"
                continue
            sharing = sharing or not request
            for name, size in request.items():
                exclusive[name] += size
        short = next((name for name, size in total.items() if exclusive[name] >= size), None)
        if sharing and short:
            return (
                f"pod rejected, sum of exclusive container {short} requests equals pod budget, "
                "leaving no memory for shared containers"
            )
        return ""

    def _hints_for(self, request: Request, *, singles: bool) -> Hints:
        """Return the hints by memory type. Where no mask at all fits, that is an empty mapping: "no preference", oddly."""
        policy = self._policy
        if policy is None:
            return None
        if not singles:
            found = self._calculate(policy, request)
        else:
            self._check_types(policy, request)
            found = tuple(Hint(mask, True) for mask in masks.singles(policy.everything) if self._passes(policy, mask, request))  # noqa: FBT003
            if not found and self._passes_wider(policy, request):
                return dict.fromkeys(request, ())
        return dict.fromkeys(request, found) if found else None

    def _calculate(self, policy: StaticMemoryPolicy, request: Request) -> tuple[Hint, ...]:
        """Return the hints over all masks, narrow ones first."""
        self._check_types(policy, request)
        if not request:
            return ()
        key = tuple(sorted(request.items()))
        idle = policy.idle_hints(key)
        if not self._groups:
            return idle
        return tuple(hint for hint in idle if hint.mask is not None and self._passes(policy, hint.mask, request))

    def _check_types(self, policy: StaticMemoryPolicy, request: Request) -> None:
        for name in request:
            if name not in policy.types:
                raise KubeletPanicError(f"nil pointer dereference: the Memory Manager has no {name} on any NUMA node")

    def _passes(self, policy: StaticMemoryPolicy, mask: int, request: Request) -> bool:
        """Tell whether a mask can serve the request: allocatable, by the groups, and free."""
        if not policy.fits(mask, request) or not self._group_allows(mask):
            return False
        return all(self._free(policy, mask, name) + self._reusable.get((mask, name), 0) >= size for name, size in request.items())

    def _passes_wider(self, policy: StaticMemoryPolicy, request: Request) -> bool:
        """Tell whether some mask of two or more nodes passes, without trying all: the widest of unused nodes, groups, reuse."""
        unused = policy.everything & ~masks.of(self._groups)
        candidates = {unused, *self._groups.values(), *(mask for mask, _ in self._reusable)}
        return any(mask.bit_count() > 1 and self._passes(policy, mask, request) for mask in candidates)

    def _group_allows(self, mask: int) -> bool:
        """Tell whether the group rule allows the mask: nodes used alone stay alone, nodes of a group stay with it."""
        if mask.bit_count() == 1:
            return self._groups.get(mask.bit_length() - 1, mask).bit_count() == 1
        return not self._breaks_groups(mask)

    def _breaks_groups(self, mask: int) -> bool:
        if mask.bit_count() == 1:
            return False
        return any(self._groups.get(node, mask) != mask for node in masks.bits(mask))

    def _free(self, policy: StaticMemoryPolicy, mask: int, name: str) -> int:
        return sum(policy.allocatable[node][name] - self._taken.get((node, name), 0) for node in masks.bits(mask))

    def _place(self, policy: StaticMemoryPolicy, request: Request, hint: Hint) -> int | Refusal:
        """Return the mask to pin to: the hint's own, the best one without a hint, or a wider one where it has too little free."""
        self._check_types(policy, request)
        if hint.mask is None:
            found = self._default(policy, request, hint)
            if isinstance(found, Refusal):
                return found
            hint = found
        mask = hint.mask or 0
        if any(self._free(policy, mask, name) < size for name, size in request.items()):
            extended = self._extend(policy, request, mask)
            if extended is None:
                return unexpected("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
            if hint.preferred and not extended.preferred:
                return unexpected("[memorymanager] failed to find the extended preferred hint")
            mask = extended.mask or 0
        if self._breaks_groups(mask):
            return unexpected("[memorymanager] preferred hint violates NUMA node allocation")
        return mask

    def _default(self, policy: StaticMemoryPolicy, request: Request, hint: Hint) -> Hint | Refusal:
        found = self._calculate(policy, request)
        if not found:
            return unexpected(
                "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available"
            )
        best = _best(found) if MEMORY in request else Hint(None, preferred=False)
        if hint.preferred and not best.preferred:
            return unexpected("[memorymanager] failed to find the default preferred hint")
        if best.mask is None:
            raise KubeletPanicError(
                "nil pointer dereference: the Memory Manager looks for hints of memory, and only pages are requested"
            )
        return best

    def _extend(self, policy: StaticMemoryPolicy, request: Request, mask: int) -> Hint | None:
        found = self._calculate(policy, request) if MEMORY in request else ()
        wider = tuple(hint for hint in found if hint.mask is not None and hint.mask & mask == mask)
        return _best(wider) if wider else None

    def _take(self, policy: StaticMemoryPolicy, mask: int, request: Request) -> None:
        """Book the request on the mask's nodes, the lowest first; what init containers left on this mask comes first."""
        for name, size in request.items():
            rest = max(0, size - self._reusable.get((mask, name), 0))
            for node in masks.bits(mask):
                self._groups[node] = mask
                part = min(rest, policy.allocatable[node][name] - self._taken.get((node, name), 0))
                self._taken[node, name] = self._taken.get((node, name), 0) + part
                rest -= part

    def _pin(self, container: str, mask: int, request: Request) -> None:
        if request:
            self.pinned[container] = mask
            self.sizes[container] = request

    def _book_reusable(self, kind: Kind, mask: int, request: Request) -> None:
        for name, size in request.items():
            left = self._reusable.get((mask, name), 0)
            self._reusable[mask, name] = max(left, size) if kind is Kind.INIT else max(0, left - size)


def _pod_level_served(gates: frozenset[str], minor: int) -> bool:
    """Tell whether the manager serves a pod with pod-level resources; before 1.36 it only looks away while the gate is on."""
    if minor < _POD_LEVEL_MANAGERS_SINCE:
        return "PodLevelResources" not in gates
    return {"PodLevelResources", "PodLevelResourceManagers"} <= gates


def _whole(requests: Mapping[str, int]) -> dict[str, int] | None:
    request = {}
    for name, amount in requests.items():
        if is_memory(name):
            if not quantities.fits_int64(amount):
                return None
            request[name] = quantities.value(amount)
    return request


def _summed(requests: Iterator[tuple[Kind, dict[str, int] | None]]) -> dict[str, int] | None:
    """Return the pod's sum of ordinary containers; types that no app container requests are left out, as the kubelet does."""
    sidecars: dict[str, int] = {}
    peaks: dict[str, int] = {}
    apps: dict[str, int] = {}
    for kind, request in requests:
        if request is None:
            return None
        for name, size in request.items():
            if kind is Kind.INIT:
                peaks[name] = max(peaks.get(name, 0), sidecars.get(name, 0) + size)
            else:
                running = sidecars if kind is Kind.SIDECAR else apps
                running[name] = running.get(name, 0) + size
    return {name: max(size + sidecars.get(name, 0), peaks.get(name, 0)) for name, size in apps.items()}


def _best(hints: tuple[Hint, ...]) -> Hint:
    """Return the best hint: preferred, then narrow, then numerically low."""
    return min(hints, key=lambda hint: (not hint.preferred, (hint.mask or 0).bit_count(), hint.mask or 0))

"""The Device Manager (`pkg/kubelet/cm/devicemanager/{manager,topology_hints}.go`).

Devices of one resource that report the same NUMA nodes are interchangeable, so only how many of each such group are free is
kept. All devices are healthy. `DevicePolicy` is what depends on the class alone, `DeviceManager` the manager during the
admission of one pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from webhook.core import quantities
from webhook.core.containers import Kind
from webhook.core.kubelet import masks
from webhook.core.kubelet.chance import Chooser, Spread
from webhook.core.kubelet.contract import ContainerView, Hint, Hints, PodView, Refusal
from webhook.core.kubelet.cpu import unexpected
from webhook.core.kubelet.machine import DeviceGroup, union
from webhook.core.kubelet.totals import pod_total

_CACHED_ANSWERS: Final = 4096
_HOSTING_NODES_SINCE: Final = 36


class DevicePolicy:
    """The devices of one class. Answers are cached; nothing else changes."""

    def __init__(self, devices: Mapping[str, Sequence[DeviceGroup]], everything: int, minor: int) -> None:
        self.groups = {name: tuple(groups) for name, groups in devices.items()}
        self.capacities = {name: tuple(group.count for group in groups) for name, groups in self.groups.items()}
        self.numa_bound = frozenset(name for name, groups in self.groups.items() if any(group.mask for group in groups))
        self._everything = everything
        self._hosting_only = minor >= _HOSTING_NODES_SINCE
        self.hints = lru_cache(_CACHED_ANSWERS)(self._hints)
        self.single_hints = lru_cache(_CACHED_ANSWERS)(self._single_hints)
        self.fewest_nodes = lru_cache(_CACHED_ANSWERS)(self._fewest_nodes)

    def touching(self, name: str, counts: Spread, mask: int) -> int:
        """Return how many of the counted devices have a NUMA node in the mask."""
        return sum(count for group, count in zip(self.groups[name], counts, strict=True) if group.mask & mask)

    def _nodes(self, name: str) -> int:
        """Return the nodes that masks are made of: all, or from 1.36 those that host the resource if any does."""
        if not self._hosting_only:
            return self._everything
        hosting = union(group.mask for group in self.groups[name])
        return hosting & self._everything or self._everything

    def _hints(self, name: str, free: Spread, reusable: Spread, count: int) -> tuple[Hint, ...]:
        """Return the hints over all masks, narrow ones first. The narrowest width counts devices in use too."""
        nodes = self._nodes(name)
        narrowest = self._fewest_nodes(name, count)
        return tuple(
            Hint(mask, mask.bit_count() == narrowest)
            for mask in masks.subsets(nodes)
            if self._serves(name, mask, free, reusable, count)
        )

    def _single_hints(self, name: str, free: Spread, reusable: Spread, count: int) -> tuple[Hint, ...]:
        """Return the hints of one node only; such a mask is always the narrowest possible."""
        return tuple(
            Hint(mask, True)  # noqa: FBT003
            for mask in masks.singles(self._nodes(name))
            if self._serves(name, mask, free, reusable, count)
        )

    def _serves(self, name: str, mask: int, free: Spread, reusable: Spread, count: int) -> bool:
        """Tell whether a mask touches every reusable device (that has a node) and enough devices in all."""
        groups = self.groups[name]
        if any(left and group.mask and not group.mask & mask for group, left in zip(groups, reusable, strict=True)):
            return False
        kept = sum(left for group, left in zip(groups, reusable, strict=True) if group.mask)
        return kept + self.touching(name, free, mask) >= count

    def _fewest_nodes(self, name: str, count: int) -> int:
        """Return the smallest width of a mask that touches so many devices, used or not; the number of nodes if none does."""
        for mask in self._widening(name):
            if self.touching(name, self.capacities[name], mask) >= count:
                return mask.bit_count()
        return self._nodes(name).bit_count()

    def _widening(self, name: str) -> Iterator[int]:
        """Yield masks that can be the narrowest for some count, narrow ones first.

        While no device reports several nodes, those are the nodes with the most devices; this never tries all masks.
        """
        groups = [group for group in self.groups[name] if group.mask & self._everything]
        if any(group.mask.bit_count() > 1 for group in groups):
            yield from masks.subsets(masks.of(node for group in groups for node in masks.bits(group.mask)) & self._everything)
            return
        mask = 0
        for group in sorted(groups, key=lambda group: -group.count):
            mask |= group.mask
            yield mask


class DeviceManager:
    """The Device Manager during the admission of one pod.

    Attributes:
        held: container -> resource -> devices taken of each of the resource's groups.
    """

    def __init__(self, policy: DevicePolicy, pod: PodView, chooser: Chooser) -> None:
        self.held: dict[str, dict[str, Spread]] = {}
        self._policy = policy
        self._pod = pod
        self._chooser = chooser
        self._last_user = {name: container.name for container in pod.containers for name in container.limits}
        self._free: dict[str, Spread] = {}
        self._reusable: dict[str, Spread] = {}

    def container_hints(self, container: ContainerView, *, singles: bool) -> Hints:
        """Return the hints for each device resource in the container's limits, zero requests included."""
        return {name: self._hints_for(name, count, singles=singles) for name, count in self._requests(container.limits).items()}

    def pod_hints(self, *, singles: bool) -> Hints:
        """Return the hints for each device resource of the pod's sum."""
        total = pod_total((container.kind, container.limits) for container in self._pod.containers)
        return {name: self._hints_for(name, count, singles=singles) for name, count in self._requests(total).items()}

    def allocate_pod(self, hint: Hint) -> Refusal | None:
        """Do nothing: devices of a pod with pod-level resources are taken when its containers are created."""

    def allocate(self, container: ContainerView, hint: Hint) -> Refusal | None:
        """Take a container's devices: first what init containers left, then those near the hint, then the others."""
        held = {}
        for name, count in self._requests(container.limits).items():
            reused = self._reuse(name, count, container)
            taken = self._take(name, count - sum(reused), hint.mask, container)
            if isinstance(taken, Refusal):
                return taken
            self._book(container.kind, name, reused, taken)
            held[name] = _add(reused, taken)
        self.held[container.name] = held
        return None

    def _requests(self, limits: Mapping[str, int]) -> dict[str, int]:
        return {name: quantities.value(amount) for name, amount in limits.items() if name in self._policy.groups}

    def _hints_for(self, name: str, count: int, *, singles: bool) -> tuple[Hint, ...] | None:
        if name not in self._policy.numa_bound:
            return None
        free, reusable = self._free_of(name), self._reusable_of(name)
        if sum(free) + sum(reusable) < count:
            return ()
        return (self._policy.single_hints if singles else self._policy.hints)(name, free, reusable, count)

    def _free_of(self, name: str) -> Spread:
        return self._free.get(name, self._policy.capacities[name])

    def _reusable_of(self, name: str) -> Spread:
        return self._reusable.get(name) or (0,) * len(self._policy.groups[name])

    def _reuse(self, name: str, count: int, container: ContainerView) -> Spread:
        reusable = self._reusable_of(name)
        part = min(count, sum(reusable))
        # an init container gives back what it reused, so it does not matter which ones those were
        return _first(reusable, part) if container.kind is Kind.INIT else self._pick(name, reusable, part, container)

    def _take(self, name: str, count: int, mask: int | None, container: ContainerView) -> Spread | Refusal:
        """Return what is taken of each group beyond the reused devices."""
        free = self._free_of(name)
        if not sum(self._policy.capacities[name]):
            return unexpected(f"no healthy devices present; cannot allocate unhealthy devices {name}")
        if sum(free) < count:
            return unexpected(f"requested number of devices unavailable for {name}. Requested: {count}, Available: {sum(free)}")
        taken = (0,) * len(free)
        for tier in self._tiers(name, free, mask):
            part = min(count - sum(taken), sum(tier))
            taken = _add(taken, self._pick(name, tier, part, container))
        return taken

    def _tiers(self, name: str, free: Spread, mask: int | None) -> tuple[Spread, ...]:
        """Return the free devices in the order they are taken: near the hint, elsewhere, without topology; else all at once."""
        if mask is None or name not in self._policy.numa_bound:
            return (free,)
        groups = self._policy.groups[name]

        def only(near: bool | None) -> Spread:  # noqa: FBT001
            return tuple(
                count if (bool(group.mask & mask) if group.mask else None) is near else 0
                for group, count in zip(groups, free, strict=True)
            )

        return only(True), only(False), only(None)  # noqa: FBT003

    def _pick(self, name: str, capacities: Spread, count: int, container: ContainerView) -> Spread:
        """Take devices out of one tier; which ones is chance, unless it has just so many or only one group."""
        if count == 0:
            return (0,) * len(capacities)
        if count == sum(capacities):
            return capacities
        last = self._last_user[name] == container.name
        if max(capacities) == sum(capacities) or (last and container.kind is Kind.INIT):
            return _first(capacities, count)
        return self._chooser.pick(capacities, count, last=last)

    def _book(self, kind: Kind, name: str, reused: Spread, taken: Spread) -> None:
        self._free[name] = _add(self._free_of(name), taken, sign=-1)
        if kind is Kind.INIT:
            self._reusable[name] = _add(self._reusable_of(name), taken)
        else:
            self._reusable[name] = _add(self._reusable_of(name), reused, sign=-1)


def _add(left: Spread, right: Spread, sign: int = 1) -> Spread:
    return tuple(one + sign * other for one, other in zip(left, right, strict=True))


def _first(capacities: Spread, count: int) -> Spread:
    taken = []
    for capacity in capacities:
        taken.append(min(capacity, count))
        count -= taken[-1]
    return tuple(taken)

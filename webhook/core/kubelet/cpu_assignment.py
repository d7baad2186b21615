"""Which CPUs the static policy picks: `takeByTopology` of `pkg/kubelet/cm/cpumanager/cpu_assignment.go`.

Packed fills whole NUMA nodes, sockets, (caches,) cores and threads, fullest first; distributed hands out equal shares of the
fewest NUMA nodes that can hold the request (KEP-2902). The quirks of the original decide verdicts, so they are kept, and marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from webhook.core.kubelet import masks
from webhook.core.kubelet.machine import CpuTopology, union


class NotEnoughCpusError(Exception):
    """The kubelet's own allocation error; `args[0]` is its message."""


class EndlessLoopError(Exception):
    """The kubelet would never return from this allocation (kubernetes issue 140730)."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How CPUs are picked, from the CPU Manager's options.

    Attributes:
        distribute: distribute-cpus-across-numa.
        group: CPUs that are handed out together under `distribute`: the SMT width with full-pcpus-only, else 1.
        spread: distribute-cpus-across-cores.
        uncore: prefer-align-cpus-by-uncorecache.
        by_socket: combinations of NUMA nodes within one socket come first under `distribute` (align-by-socket, from 1.37).
        clamp: a share is never more than a chosen node has (from 1.37).
    """

    distribute: bool
    group: int
    spread: bool
    uncore: bool
    by_socket: bool
    clamp: bool


def take_by_topology(topology: CpuTopology, strategy: Strategy, free: int, count: int) -> int:
    """Return `count` CPUs of the set `free` as a set.

    Raises:
        NotEnoughCpusError: where the kubelet returns an error.
        EndlessLoopError: where the kubelet hangs.
    """
    if strategy.distribute and count % strategy.group == 0:
        return _Distribution(topology, strategy, free, count).take()
    return _packed(topology, free, count, spread=strategy.spread, uncore=strategy.uncore and not strategy.distribute)


def _packed(topology: CpuTopology, free: int, count: int, *, spread: bool, uncore: bool = False) -> int:
    if count < 1:
        return 0
    acc = _Accumulator(topology, free, count)
    acc.check()
    stages = [acc.take_whole_first, acc.take_whole_second]
    if uncore:
        stages.append(acc.take_uncore_caches)
    if not spread:
        stages.append(acc.take_whole_cores)
    stages.append(acc.take_threads_spread if spread else acc.take_threads)
    for stage in stages:
        stage()
        if acc.satisfied:
            return acc.taken
    raise NotEnoughCpusError("failed to allocate cpus")


class _Accumulator:
    """CPUs taken so far, those still free, and how many are still needed."""

    def __init__(self, topology: CpuTopology, free: int, needed: int) -> None:
        self._topology = topology
        self.free = free
        self.needed = needed
        self.taken = 0

    @property
    def satisfied(self) -> bool:
        return self.needed < 1

    def check(self) -> None:
        """Raise the kubelet's error where the request is more than what is free."""
        if self.needed > self.free.bit_count():
            raise NotEnoughCpusError(
                f"not enough cpus available to satisfy request: requested={self.needed}, available={self.free.bit_count()}"
            )

    def take(self, cpus: int) -> None:
        self.taken |= cpus
        self.free &= ~cpus
        self.needed -= cpus.bit_count()

    def by_free(self, units: Mapping[int, int], within: int = -1) -> list[tuple[int, int]]:
        """Return (id, CPU set) of the units with a free CPU in `within`, those with the fewest free CPUs first."""
        found = [(unit, cpus) for unit, cpus in units.items() if cpus & self.free & within]
        return sorted(found, key=lambda unit: ((unit[1] & self.free).bit_count(), unit[0]))

    def _first_level(self) -> list[tuple[int, int]]:
        return self.by_free(self._topology.numa if self._topology.numa_first else self._topology.sockets)

    def _second_level(self) -> list[tuple[int, int]]:
        units = self._topology.sockets if self._topology.numa_first else self._topology.numa
        return [unit for _, cpus in self._first_level() for unit in self.by_free(units, cpus)]

    def numa_nodes(self) -> list[tuple[int, int]]:
        """Return NUMA nodes with free CPUs in the order in which they are considered."""
        return self._first_level() if self._topology.numa_first else self._second_level()

    def _cores(self) -> Iterator[tuple[int, int]]:
        for _, cpus in self._second_level():
            yield from self.by_free(self._topology.cores, cpus)

    def take_whole_first(self) -> None:
        self._take_units(self._first_level(), sockets=not self._topology.numa_first)

    def take_whole_second(self) -> None:
        self._take_units(self._second_level(), sockets=self._topology.numa_first)

    def _take_units(self, units: list[tuple[int, int]], *, sockets: bool) -> None:
        """Take whole units that fit. Whether a socket is free is told by the average size of a socket, as in the original."""
        free, average = self.free, self._topology.cpus_per_socket
        for _, cpus in units:
            whole = average if sockets else cpus.bit_count()
            if (cpus & free).bit_count() == whole and self.needed >= cpus.bit_count():
                self.take(cpus)

    def take_whole_cores(self) -> None:
        width = self._topology.threads_per_core
        if self.needed < width:
            return
        free = self.free
        for _, cpus in list(self._cores()):
            if self.needed < width:
                return
            if cpus & free == cpus:
                self.take(cpus)

    def take_threads(self) -> None:
        ordered = [cpu for _, core in self._cores() for cpu in masks.bits(core & self.free)]
        self._take_first(ordered)

    def take_threads_spread(self) -> None:
        second = not self._topology.numa_first
        sockets = self._first_level() if second else self._second_level()
        self._take_first([cpu for _, cpus in sockets for cpu in masks.bits(cpus & self.free)])

    def _take_first(self, cpus: list[int]) -> None:
        self.take(masks.of(cpus[: self.needed]))

    def _uncores(self) -> list[tuple[int, int]]:
        return [unit for _, cpus in self.numa_nodes() for unit in self.by_free(self._topology.uncores, cpus)]

    def take_uncore_caches(self) -> None:
        """Take whole caches while they fit, then a part of one cache that can hold exactly the rest."""
        for _, cpus in self._uncores():
            if self.needed >= self._topology.cpus_per_uncore:
                self._take_whole_uncores()
            if not self.satisfied:
                self._take_part_of_uncore(cpus)
            if self.satisfied:
                return

    def _take_whole_uncores(self) -> None:
        free = self.free
        for _, cpus in self._uncores():
            if cpus & free == cpus and self.needed >= cpus.bit_count():
                self.take(cpus)

    def _take_part_of_uncore(self, cache: int) -> None:
        width = self._topology.threads_per_core
        wanted = -(-self.needed // width)
        cores = (core for core in self._topology.cores.values() if core & cache & self.free)
        found = list(masks.bits(union(islice(cores, wanted)) & self.free))
        if self.needed % 2 and width > 1 and len(found) > self.needed:
            found.pop()
        if len(found) == self.needed:
            self.take(masks.of(found))


class _Distribution:
    """One run of the distributed algorithm; all numbers are CPUs."""

    def __init__(self, topology: CpuTopology, strategy: Strategy, free: int, count: int) -> None:
        self._topology = topology
        self._strategy = strategy
        self._count = count
        self._acc = _Accumulator(topology, free, count)
        self._free = {node: (cpus & free).bit_count() for node, cpus in self._acc.numa_nodes()}

    def take(self) -> int:
        if self._count < 1:
            return 0
        self._acc.check()
        for width in self._widths():
            best = self._best(width)
            if best is not None:
                return self._allocate(*best)
        return _packed(self._topology, self._acc.free, self._count, spread=self._strategy.spread)

    def _widths(self) -> range:
        """Return how many NUMA nodes are tried: from the fewest that could hold the groups on an empty machine."""
        group = self._strategy.group
        groups = -(-self._topology.cpus.bit_count() // group)
        per_node = -(-groups // len(self._topology.numa))
        needed = -(-self._count // group)
        return range(-(-needed // per_node), min(needed, len(self._free)) + 1)

    def _best(self, width: int) -> tuple[list[int], list[int]] | None:
        """Return the combination of NUMA nodes that leaves the machine most even, and those of it that give the remainder."""
        best_score, best_local = float("inf"), False
        best: tuple[list[int], list[int]] | None = None
        for combination in _combinations(list(self._free), width):
            if best_score == 0 and (not self._strategy.by_socket or best_local):
                break
            scored = self._score(combination[:width])
            if scored is None:
                continue
            score, remainder = scored
            local = self._strategy.by_socket and self._in_one_socket(combination[:width])
            better = local if local != best_local else score < best_score
            if better:
                best_score, best_local, best = score, local, (combination, remainder)
        return None if best is None else (best[0][:width], best[1])

    def _score(self, nodes: list[int]) -> tuple[float, list[int]] | None:
        """Return the deviation after an even hand-out from these nodes and who gives the remainder; None: impossible."""
        group = self._strategy.group
        if sum(self._free[node] // group for node in nodes) * group < self._count:
            return None
        share = self._share(nodes, clamp=self._strategy.by_socket)
        if any(self._free[node] < share for node in nodes):
            return None
        left = {**self._free, **{node: self._free[node] - share for node in nodes}}
        remainder = self._count - share * len(nodes)
        if remainder == 0:
            return _deviation(left), []
        return self._hand_out(left, remainder, [node for node in nodes if left[node] >= group])

    def _share(self, nodes: list[int], *, clamp: bool) -> int:
        group = self._strategy.group
        share = self._count // len(nodes) // group * group
        return min(share, *(self._free[node] // group * group for node in nodes)) if clamp else share

    def _hand_out(self, left: dict[int, int], remainder: int, givers: list[int]) -> tuple[float, list[int]]:
        best_score, best, size = float("inf"), list[int](), 0
        for width in range(len(givers), 0, -1):
            for subset in _combinations(givers, width):
                nodes = subset[:width]
                if sum(left[node] for node in nodes) < remainder:
                    continue
                score = _deviation(self._without_remainder(left, remainder, nodes))
                if score < best_score:
                    best_score, best, size = score, subset, width
        return best_score, best[:size]

    def _without_remainder(self, left: dict[int, int], remainder: int, nodes: list[int]) -> dict[int, int]:
        after, group = dict(left), self._strategy.group
        while remainder:
            before = remainder
            for node in nodes:
                if remainder and after[node] >= group:
                    after[node] -= group
                    remainder -= group
            if remainder == before:
                raise EndlessLoopError
        return after

    def _in_one_socket(self, nodes: list[int]) -> bool:
        cpus = union(self._topology.numa[node] for node in nodes)
        return sum(1 for socket in self._topology.sockets.values() if socket & cpus) <= 1

    def _allocate(self, nodes: list[int], givers: list[int]) -> int:
        share = self._share(nodes, clamp=self._strategy.clamp)
        for node in nodes:
            self._take_from(node, share)
        remainder, group = self._count - share * len(nodes), self._strategy.group
        while remainder:
            before = remainder
            for node in givers:
                if remainder and (self._topology.numa[node] & self._acc.free).bit_count() >= group:
                    self._take_from(node, group)
                    remainder -= group
            if remainder == before:
                raise EndlessLoopError
        if self._acc.needed:
            raise NotEnoughCpusError(f"accounting error, not enough CPUs allocated, remaining: {self._acc.needed}")
        return self._acc.taken

    def _take_from(self, node: int, count: int) -> None:
        """Take CPUs of one node; where it has too few, nothing is taken and nothing said, as in the original."""
        try:
            self._acc.take(
                _packed(self._topology, self._topology.numa[node] & self._acc.free, count, spread=self._strategy.spread)
            )
        except NotEnoughCpusError:
            return


def _combinations(items: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield lists whose first `width` entries (at least one) are the subsets of `items`, in order.

    As in the original, a list that was yielded may be written to while the iteration goes on: Go's `append` doubles its
    arrays, so siblings share one. What a caller keeps can thus become the last sibling, and the kubelet acts on that.
    """

    def extend(start: int, chosen: list[int], length: int) -> Iterator[list[int]]:
        if length == width:
            yield chosen
            return
        for position in range(start, len(items) - width + length + 1):
            grown = chosen if length < len(chosen) else chosen + [0] * max(1, length)
            grown[length] = items[position]
            yield from extend(position + 1, grown, length + 1)

    return extend(0, [], 0)


def _deviation(counts: Mapping[int, int]) -> float:
    """Return the standard deviation, rounded to thousandths at both steps as the original does."""
    mean = _thousandths(sum(counts.values()) / len(counts))
    return _thousandths(math.sqrt(sum((count - mean) * (count - mean) for count in counts.values()) / len(counts)))


def _thousandths(number: float) -> float:
    return math.floor(number * 1000 + 0.5) / 1000

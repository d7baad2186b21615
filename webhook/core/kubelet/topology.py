"""The Topology Manager: which NUMA nodes the hints of all managers agree on (`pkg/kubelet/cm/topologymanager`).

The kubelet tries every combination of one hint per resource, which is exponential in the number of resources. The best of
them is found here by folding one list at a time:

* a combination is preferred only if all its hints are, and are the very same mask, so the preferred results are the
  intersection of the lists' preferred masks;
* any other result is an AND over one mask of each list, so the set of the reachable ANDs is all that needs to be carried on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from itertools import chain, permutations, product
from math import prod
from operator import and_, or_

from webhook.core.kubelet import masks
from webhook.core.kubelet.config import KubeletConfig
from webhook.core.kubelet.contract import ChancePanicError, Hint, Hints, KubeletPanicError
from webhook.core.kubelet.machine import Machine

NONE = "none"
BEST_EFFORT = "best-effort"
RESTRICTED = "restricted"
SINGLE_NUMA_NODE = "single-numa-node"

_ANY = (Hint(None, True),)  # noqa: FBT003 (a hint is written as the kubelet prints it)
_IMPOSSIBLE = (Hint(None, False),)  # noqa: FBT003

_MOST_COMBINATIONS = 1 << 16

HintList = tuple[Hint, ...]
Order = Callable[[int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge: the hint to store, and whether the policy admits it."""

    hint: Hint
    admit: bool


@dataclass(frozen=True, slots=True)
class TopologyPolicy:
    """The policy of one class (`policy_*.go`), ready to merge hints.

    Attributes:
        name: one of the four policies.
        everything: the mask of all NUMA nodes, the default affinity.
        distances: node id -> distances as the machine lists them, with prefer-closest-numa-nodes; else None.
    """

    name: str
    everything: int
    distances: dict[int, tuple[int, ...]] | None = field(default=None)

    @property
    def singles(self) -> bool:
        """Tell whether the policy looks at hints of one node only."""
        return self.name == SINGLE_NUMA_NODE

    def merge(self, provided: Iterable[Hints]) -> Merged:
        """Return what the policy makes of the providers' hints.

        Raises:
            KubeletPanicError: where prefer-closest-numa-nodes looks up a distance that the machine does not list.
        """
        if self.singles:
            hint = self._best([_single(hints) for hints in filtered(provided)])
            return Merged(Hint(None, hint.preferred) if hint.mask == self.everything else hint, hint.preferred)
        hint = self._best_in_any_order(list(provided)) if self._misses_distances() else self._best(filtered(provided))
        return Merged(hint, hint.preferred or self.name == BEST_EFFORT)

    def _best(self, lists: Sequence[HintList]) -> Hint:
        if preferred := _preferred(lists, self.everything):
            return Hint(self._pick(preferred, _width), preferred=True)
        if self.name == BEST_EFFORT:
            aim = max((_narrowest(hints) for hints in lists), default=0)
            if reachable := _reachable(tuple(lists), self.everything):
                return Hint(self._pick(reachable, _towards(aim)), preferred=False)
        # restricted and single-numa-node refuse whatever is not preferred: which mask it would be does not matter
        return Hint(self.everything, preferred=False)

    def _misses_distances(self) -> bool:
        """Tell whether some node's id is no index into the distances: the kubelet panics where it looks it up."""
        if self.distances is None:
            return False
        return any(len(row) < self.everything.bit_length() for row in self.distances.values())

    def _best_in_any_order(self, provided: Sequence[Hints]) -> Hint:
        """Return the best hint where distances are missing: whether one of them is looked up hangs on the order of combinations.

        The kubelet walks a provider's resources in the random order of a Go map.
        """
        panic = "index out of range: the distances of some NUMA nodes are missing"
        orders = [set(permutations(filtered([hints]))) for hints in provided]
        if prod(map(len, filtered(provided))) * prod(map(len, orders)) > _MOST_COMBINATIONS:
            raise ChancePanicError(panic)
        found = {self._best_of_all(tuple(chain.from_iterable(order))) for order in product(*orders)}
        best = {hint for hint in found if hint is not None}
        if not best:
            raise KubeletPanicError(panic)
        if len(found) > 1:
            raise ChancePanicError(panic)
        return best.pop()

    def _best_of_all(self, lists: Sequence[HintList]) -> Hint | None:
        """Go through all combinations in this order; None: the kubelet panics."""
        distances = self.distances or {}
        aim = max((_narrowest(hints) for hints in lists), default=0)
        best: Hint | None = None
        for combination in product(*lists):
            found = _merged(combination, self.everything)
            try:
                if found.mask and (best is None or _better(found, best, aim, distances)):
                    best = found
            except IndexError:
                return None
        return best or Hint(self.everything, preferred=False)

    def _pick(self, candidates: Collection[int], order: Order) -> int:
        """Return the best mask: first by `order`, then the closest or else the numerically lowest one."""
        level = min(map(order, candidates))
        tied = [mask for mask in candidates if order(mask) == level]
        if self.distances is None or len(tied) == 1:
            return min(tied)
        distances = self.distances
        return min(tied, key=lambda mask: (_spread(mask, distances), mask))


def policy_of(config: KubeletConfig, machine: Machine) -> TopologyPolicy:
    """Return the policy of a class."""
    closest = config.prefer_closest and config.topology_policy in {RESTRICTED, BEST_EFFORT}
    distances = {cell.id: cell.distances for cell in machine.cells} if closest else None
    return TopologyPolicy(config.topology_policy, machine.numa_mask, distances)


def filtered(provided: Iterable[Hints]) -> list[HintList]:
    """Return a list of hints per resource; "no preference" and "not possible" become one hint without a mask."""
    lists: list[HintList] = []
    for hints in provided:
        if not hints:
            lists.append(_ANY)
            continue
        lists.extend(_ANY if found is None else found or _IMPOSSIBLE for found in hints.values())
    return lists


def _single(hints: HintList) -> HintList:
    return tuple(hint for hint in hints if hint.preferred and (hint.mask is None or _is_single(hint.mask)))


def _is_single(mask: int) -> bool:
    return mask.bit_count() == 1


def _preferred(lists: Sequence[HintList], everything: int) -> set[int]:
    """Return the masks that every list offers as preferred; a list without a mask offers any."""
    common: set[int] | None = None
    for hints in lists:
        offered = {hint.mask for hint in hints if hint.preferred}
        if None in offered:
            continue
        masks_offered = {mask for mask in offered if mask is not None}
        common = masks_offered if common is None else common & masks_offered
        if not common:
            return set()
    return {everything} if common is None else common


@lru_cache(maxsize=256)
def _reachable(lists: tuple[HintList, ...], everything: int) -> frozenset[int]:
    """Return every non-empty AND over one hint of each list; a list without a mask restricts nothing.

    Short lists come first: of the long ones only what lies on the nodes reached so far makes a difference.
    """
    reached = {everything}
    for hints in sorted(lists, key=len):
        nodes = reduce(or_, reached, 0)
        offered = {nodes if hint.mask is None else hint.mask & nodes for hint in hints}
        reached = {mask & other for mask in reached for other in offered}
    return frozenset(reached - {0})


def _narrowest(hints: HintList) -> int:
    return min((hint.mask.bit_count() for hint in hints if hint.mask is not None), default=0)


def _width(mask: int) -> tuple[int, ...]:
    return (mask.bit_count(),)


def _towards(aim: int) -> Order:
    """Order masks by width as HintMerger does: `aim` first, then narrower ones from the widest down, then wider ones."""

    def order(mask: int) -> tuple[int, ...]:
        width = mask.bit_count()
        return (0, aim - width) if width <= aim else (1, width)

    return order


def _merged(combination: Sequence[Hint], everything: int) -> Hint:
    offered = [hint.mask for hint in combination if hint.mask is not None]
    preferred = all(hint.preferred for hint in combination) and len(set(offered)) <= 1
    return Hint(reduce(and_, offered, everything), preferred)


def _better(found: Hint, best: Hint, aim: int, distances: dict[int, tuple[int, ...]]) -> bool:
    """Tell whether a hint replaces the best one so far (`HintMerger.compare`)."""
    mask, other = found.mask or 0, best.mask or 0
    if found.preferred is not best.preferred:
        return found.preferred
    if mask == other:
        return False
    if mask.bit_count() == other.bit_count():
        now = (_spread(other, distances), other)
        return (_spread(mask, distances), mask) < now
    order = _width if found.preferred else _towards(aim)
    return order(mask) < order(other)


def _spread(mask: int, distances: dict[int, tuple[int, ...]]) -> int:
    """Return the sum of the distances between all nodes of a mask; equal widths make it as good as the average.

    Raises:
        IndexError: where the machine lists no such distance.
    """
    nodes = masks.ids(mask)
    return sum(distances[one][other] for one in nodes for other in nodes)

"""Which attribute says, for all the devices that a claim could get, on which NUMA node they sit.

Sources: "Standard Device Attributes for DRA" (kubernetes.io), KEP-6072; the drivers' own slices for the aliases. A constraint
takes one name for every device, so only a name that the candidates share will do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from webhook.core.dra.candidates import Wanted
from webhook.core.dra.devices import Type

NUMA_NODE: Final = "resource.kubernetes.io/numaNode"
PCIE_ROOT: Final = "resource.kubernetes.io/pcieRoot"

ALIASES: Final = ("dra.net/numaNode", "dra.cpu/numaNodeID", "dra.cpu/numaNode", "gpu.amd.com/numaNode", "gpu.nvidia.com/numa")
"""What drivers called it before 1.37 had a name: dranet, SR-IOV, CPU and memory; CPU; memory; AMD; NVIDIA up to v0.4.1."""

ORDER: Final = (NUMA_NODE, *ALIASES, PCIE_ROOT)

ACCELERATOR_DRIVERS: Final = frozenset(
    {
        "gpu.nvidia.com",
        "gpu.amd.com",
        "gpu.intel.com",
        "gaudi.intel.com",
        "neuron.aws.com",
        "tpu.google.com",
        "hami-core-gpu.project-hami.io",
    }
)


class Coverage(StrEnum):
    """How many of a request's candidates publish an attribute."""

    ALL = "all"
    SOME = "some"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Shared:
    """An attribute, and whose candidates publish it.

    Attributes:
        covered: requests all of whose candidates publish it.
        partly: requests of which some do.
        doubted: names of those among `partly` with candidates that publish a value which says nothing (-1, "").
    """

    name: str
    covered: tuple[Wanted, ...]
    partly: tuple[Wanted, ...]
    doubted: frozenset[str] = frozenset()

    @property
    def both(self) -> tuple[Wanted, ...]:
        """Return the requests that it could align."""
        return (*self.covered, *self.partly)

    @property
    def names(self) -> tuple[str, ...]:
        """Return their names."""
        return tuple(each.request.name for each in self.both)

    @property
    def is_complete(self) -> bool:
        """Tell whether no candidate of a request that has the attribute lacks it."""
        return not self.partly

    @property
    def devices(self) -> int:
        """Return how many devices of the claim it could align."""
        return sum(each.request.count for each in self.both)


def shared_attributes(everything: Sequence[Wanted]) -> tuple[Shared, ...]:
    """Return the attributes that could align at least two devices, the best one first.

    Better is what covers more accelerators, then more requests, then all candidates; then comes `ORDER`.
    """
    published = [(each, _published(each)) for each in everything]
    found = [_shared(name, published) for name in ORDER]
    return tuple(sorted((each for each in found if each is not None and each.devices >= 2), key=_rank))


def _rank(shared: Shared) -> tuple[int, int, bool, int]:
    return -sum(map(is_accelerator, shared.both)), -len(shared.both), not shared.is_complete, ORDER.index(shared.name)


@dataclass(frozen=True, slots=True)
class _Published:
    """What a request's candidates publish, by attribute.

    Attributes:
        candidates: how many there are.
        known: how many publish a value that says something; `types`: of which types.
        doubted: attributes for which some publish a value that says nothing.
    """

    candidates: int
    known: Mapping[str, int]
    types: Mapping[str, set[Type]]
    doubted: frozenset[str]

    def coverage(self, name: str) -> Coverage:
        known = self.known.get(name, 0)
        if not known:
            return Coverage.NONE
        return Coverage.ALL if known == self.candidates else Coverage.SOME


_NAMES: Final = frozenset(ORDER)


def _published(each: Wanted) -> _Published:
    candidates, known, types, doubted = 0, Counter[str](), dict[str, set[Type]](), set[str]()
    for device in each.devices():
        candidates += 1
        for name in _NAMES & device.attributes.keys():
            value = device.published(name)
            if value is None:
                doubted.add(name)
            else:
                known[name] += 1
                types.setdefault(name, set()).add(value.type)
    return _Published(candidates, known, types, frozenset(doubted))


def _shared(name: str, everything: Sequence[tuple[Wanted, _Published]]) -> Shared | None:
    types = {kind for _, published in everything for kind in published.types.get(name, ())}
    if len(types) != 1:
        return None  # nobody publishes it, or as different things, which never match
    covered = tuple(each for each, published in everything if published.coverage(name) is Coverage.ALL)
    partly = tuple(each for each, published in everything if published.coverage(name) is Coverage.SOME)
    return Shared(name, covered, partly, frozenset(each.request.name for each, found in everything if name in found.doubted))


def is_accelerator(each: Wanted) -> bool:
    """Tell whether a request could get an accelerator."""
    return any(device.driver in ACCELERATOR_DRIVERS for device in each.devices())

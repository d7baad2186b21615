"""Which attribute says, for all the devices that a claim could get, on which NUMA node they sit.

Sources: "Standard Device Attributes for DRA" (kubernetes.io), KEP-6072; the drivers' own slices for the aliases. A constraint
takes one name for every device, so only a name that the candidates share will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from webhook.core.dra.candidates import Wanted

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
    found = [_shared(name, everything) for name in ORDER]
    return tuple(sorted((each for each in found if each is not None and each.devices >= 2), key=_rank))


def _rank(shared: Shared) -> tuple[int, int, bool, int]:
    return -sum(map(is_accelerator, shared.both)), -len(shared.both), not shared.is_complete, ORDER.index(shared.name)


def _shared(name: str, everything: Iterable[Wanted]) -> Shared | None:
    by_coverage: dict[Coverage, list[Wanted]] = {coverage: [] for coverage in Coverage}
    types, doubted = set(), set()
    for each in everything:
        coverage = _coverage(name, each)
        by_coverage[coverage].append(each)
        types |= {value.type for device in each.devices() if (value := device.published(name)) is not None}
        if any(name in device.attributes and device.published(name) is None for device in each.devices()):
            doubted.add(each.request.name)
    if len(types) != 1:
        return None  # nobody publishes it, or as different things, which never match
    return Shared(name, tuple(by_coverage[Coverage.ALL]), tuple(by_coverage[Coverage.SOME]), frozenset(doubted))


def _coverage(name: str, each: Wanted) -> Coverage:
    publish = {device.published(name) is not None for device in each.devices()}
    if publish == {True}:
        return Coverage.ALL
    return Coverage.SOME if True in publish else Coverage.NONE


def is_accelerator(each: Wanted) -> bool:
    """Tell whether a request could get an accelerator."""
    return any(device.driver in ACCELERATOR_DRIVERS for device in each.devices())

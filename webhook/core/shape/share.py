"""The share: what an accelerator may take of its NUMA node, so that all accelerators of the node can be used at once.

share of a container = floor(what a NUMA node leaves to pods / accelerators on it) x accelerators requested, the smallest over
the NUMA nodes that have such accelerators, and over the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from webhook.core.quantities import MI
from webhook.core.shape.candidate import Candidate, Home

_PerAccelerator = Callable[[Home], int]


def cpu(units: Mapping[str, int], candidates: Iterable[Candidate], per_accelerator: int | None) -> int | None:
    """Return milli-CPUs, whole CPUs for each accelerator unless `per_accelerator` (milli-CPUs) fixes them.

    None: no candidate has such accelerators at CPUs.
    """
    if not units:
        return None
    if per_accelerator is not None:
        return per_accelerator * sum(units.values())
    return _smallest(units, candidates, lambda home: home.cpu // 1000 // home.accelerators * 1000)


def memory(units: Mapping[str, int], candidates: Iterable[Candidate]) -> int | None:
    """Return bytes, in whole Mi; None as for `cpu`."""
    size = _smallest(units, candidates, lambda home: home.memory // home.accelerators)
    return None if size is None else size // MI * MI


def half_node(candidates: Iterable[Candidate]) -> int:
    """Return half the memory of the smallest NUMA node of any candidate: what tmpfs without a sizeLimit can grow to at most."""
    homes = [home.memory for candidate in candidates for home in candidate.homes if home.memory]
    return min(homes, default=0) // 2


def _smallest(units: Mapping[str, int], candidates: Iterable[Candidate], each: _PerAccelerator) -> int | None:
    sums = [_on(units, candidate, each) for candidate in candidates]
    return min((found for found in sums if found is not None), default=None)


def _on(units: Mapping[str, int], candidate: Candidate, each: _PerAccelerator) -> int | None:
    total = None
    for resource, count in units.items():
        found = [each(home) for home in candidate.homes if home.devices.get(resource)]
        if found:
            total = (total or 0) + min(found) * count
    return total

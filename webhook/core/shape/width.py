"""Numbers that need as many NUMA nodes as a container's devices do.

Under `restricted` all hints must agree on the very same NUMA nodes, each at its own minimal width (`topologymanager/policy.go`):
devices that need two nodes with CPUs or memory that need one are refused. Where an author left CPU and memory to us, we may as
well take what needs two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from webhook.core.containers import Container
from webhook.core.quantities import MI
from webhook.core.shape.candidate import Candidate
from webhook.core.shape.scene import Scene, whole_mi
from webhook.core.supply import fewest_nodes


class Least(NamedTuple):
    """The least that is wide enough: milli-CPUs, bytes; 0 where anything is."""

    cpu: int
    memory: int


def least(scene: Scene, container: Container, units: int, all_units: int) -> Least:
    """Return the least that a device container needs to be as wide as its devices on every restricted candidate.

    Under pod scope the pod's containers must be that wide together, each by its accelerators (`units` of `all_units`).
    """
    found = [_on(scene, container, each, units, all_units) for each in scene.candidates if _is_restricted(each)]
    return Least(max((each.cpu for each in found), default=0), max((each.memory for each in found), default=0))


def _is_restricted(candidate: Candidate) -> bool:
    return candidate.several and candidate.node.config.topology_policy == "restricted"


def _on(scene: Scene, container: Container, candidate: Candidate, units: int, all_units: int) -> Least:
    if candidate.node.config.topology_scope == "container" or not units:
        return _wider_than(candidate, _nodes_needed(candidate, scene.devices[container.path]) - 1)
    wanted: dict[str, int] = {}
    for path in scene.bearers:
        for resource, count in scene.devices[path].items():
            wanted[resource] = wanted.get(resource, 0) + count
    whole = _wider_than(candidate, _nodes_needed(candidate, wanted) - 1)
    return Least(-(-whole.cpu * units // all_units), whole_mi(-(-whole.memory * units // all_units)))


def _nodes_needed(candidate: Candidate, devices: Mapping[str, int]) -> int:
    """Return the fewest NUMA nodes that have so many devices of each resource."""
    offers = {name: [home.devices.get(name, 0) for home in candidate.homes] for name in devices}
    return max((fewest_nodes(offers[name], count) for name, count in devices.items()), default=1)


def _wider_than(candidate: Candidate, nodes: int) -> Least:
    """Return the least that does not fit so many NUMA nodes: the kubelet measures CPUs by all there are, reserved ones too."""
    if nodes < 1:
        return Least(0, 0)
    cpus = sorted((home.all_cpus for home in candidate.homes), reverse=True)[:nodes]
    sizes = sorted((home.pinnable for home in candidate.homes), reverse=True)[:nodes]
    return Least(sum(cpus) * 1000 + 1000, whole_mi(sum(sizes) + MI) if sum(sizes) else 0)

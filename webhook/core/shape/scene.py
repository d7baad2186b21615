"""Who wants what where: a pod and its candidates, prepared for the shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from webhook.core.accelerators import Asks, Kind, extended_resources
from webhook.core.containers import Container, Path, Pod, visit
from webhook.core.containers import Kind as ContainerKind
from webhook.core.policy import Policy
from webhook.core.quantities import MI, milli, parse, value
from webhook.core.resource_names import CPU, is_memory
from webhook.core.shape.candidate import Candidate


@dataclass(frozen=True, slots=True)
class Declared:
    """What an author wrote of CPU (milli-CPUs) or memory (bytes) for one container; requests have come from limits."""

    request: int | None
    limit: int | None

    @property
    def is_silent(self) -> bool:
        """Tell whether the author wrote nothing."""
        return self.request is None

    @property
    def is_fixed(self) -> bool:
        """Tell whether requests equal limits."""
        return self.limit is not None and self.request == self.limit


@dataclass(frozen=True, slots=True)
class Scene:
    """A pod, its containers and its candidates.

    Attributes:
        units: container -> accelerator resource -> units asked for, as the kubelet counts them.
        devices: container -> NUMA-bound device resource -> devices asked for; NICs included.
        bearers: the device containers: sidecars and app containers that ask for NUMA-bound devices.
        smt_width: what CPUs of device containers must be a multiple of, so that every candidate takes them.
    """

    pod: Pod
    policy: Policy
    candidates: tuple[Candidate, ...]
    containers: tuple[Container, ...]
    units: Mapping[Path, Mapping[str, int]]
    devices: Mapping[Path, Mapping[str, int]]
    bearers: frozenset[Path]
    smt_width: int


def scene(pod: Pod, policy: Policy, asks: Asks, candidates: tuple[Candidate, ...]) -> Scene:
    """Return the scene of a pod."""
    containers = visit(pod)
    units: dict[Path, dict[str, int]] = {}
    for ask in asks.accelerators:
        units.setdefault(ask.container.path, {})[ask.resource] = ask.units
    bound = frozenset[str]().union(*(each.bound for each in candidates if each.several))
    devices: dict[Path, dict[str, int]] = {}
    for container in containers:
        wanted = {**extended_resources(container), **units.get(container.path, {})}
        devices[container.path] = {name: count for name, count in wanted.items() if count and name in bound}
    return Scene(
        pod=pod,
        policy=policy,
        candidates=candidates,
        containers=containers,
        units=units,
        devices=devices,
        bearers=frozenset(c.path for c in containers if c.kind is not ContainerKind.INIT and devices[c.path]),
        smt_width=math.lcm(*(each.smt_width for each in candidates if each.several)),
    )


def declared(container: Container, resource: str) -> Declared:
    """Return what the author wrote of CPU or memory."""
    return declared_in(container.quantities("requests"), container.quantities("limits"), resource)


def declared_in(requests: Mapping[str, object], limits: Mapping[str, object], resource: str) -> Declared:
    """Return what stands in a pair of requests and limits."""
    whole = milli if resource == CPU else value
    limit = whole(parse(limits[resource])) if resource in limits else None
    return Declared(whole(parse(requests[resource])) if resource in requests else limit, limit)


def is_pod_level(pod: Pod) -> bool:
    """Tell whether pod-level resources are set, as `IsPodLevelResourcesSet` does."""
    resources = pod["spec"].get("resources") or {}
    return any(name == CPU or is_memory(name) for side in ("requests", "limits") for name in resources.get(side) or ())


def shares_silently(scene: Scene, asks: Asks) -> bool:
    """Tell whether a container asks for shared tokens and declares neither CPU nor memory: nobody knows what it should get."""
    shared = {name for each in scene.candidates for name, replicas in each.node.node_class.sharing.items() if replicas > 1}
    return any(
        (ask.entry.kind is Kind.SHARED or ask.resource in shared)
        and declared(ask.container, CPU).is_silent
        and declared(ask.container, "memory").is_silent
        for ask in asks.accelerators
    )


def whole_mi(size: int) -> int:
    """Return bytes rounded up to whole Mi."""
    return -(-size // MI) * MI

"""Who wants what where: a pod and its candidates, prepared for the shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from webhook.core.accelerators import Asks, Kind, extended_resources
from webhook.core.containers import Container, Path, Pod, visit
from webhook.core.containers import Kind as ContainerKind
from webhook.core.limitranges import Bounds, Breach, breaches
from webhook.core.policy import Policy
from webhook.core.quantities import MI, milli, parse, value
from webhook.core.resource_names import CPU, MEMORY, is_memory
from webhook.core.shape import share
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
        bounds: what the namespace's LimitRanges accept.
        beyond: what they have against the pod as its author wrote it; that is not for us to mend.
        shares: device container, and whether shared accelerators count -> its share, milli-CPUs and bytes, see `share`.
    """

    pod: Pod
    policy: Policy
    candidates: tuple[Candidate, ...]
    containers: tuple[Container, ...]
    units: Mapping[Path, Mapping[str, int]]
    devices: Mapping[Path, Mapping[str, int]]
    bearers: frozenset[Path]
    smt_width: int
    bounds: Bounds = ()
    beyond: frozenset[Breach] = frozenset()
    shares: Mapping[tuple[Path, bool], tuple[int | None, int | None]] = field(default_factory=dict)

    def new_breaches(self, shaped: Pod) -> frozenset[Breach]:
        """Return what the LimitRanges have against the pod in a shape, and not against it as its author wrote it."""
        return breaches(shaped, self.bounds) - self.beyond


def scene(pod: Pod, policy: Policy, asks: Asks, candidates: tuple[Candidate, ...], bounds: Bounds = ()) -> Scene:
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
    made = Scene(
        pod=pod,
        policy=policy,
        candidates=candidates,
        containers=containers,
        units=units,
        devices=devices,
        bearers=frozenset(c.path for c in containers if c.kind is not ContainerKind.INIT and devices[c.path]),
        smt_width=math.lcm(*(each.smt_width for each in candidates if each.several)),
        bounds=bounds,
        beyond=breaches(pod, bounds),
    )
    bearers = [container for container in containers if container.path in made.bearers]
    return replace(made, shares={(c.path, shared): _share(made, c, shared=shared) for c in bearers for shared in (False, True)})


def _share(made: Scene, container: Container, *, shared: bool) -> tuple[int | None, int | None]:
    wanted, sizing = made.units.get(container.path, {}), sized_by(made, container, shared=shared)
    return share.cpu(wanted, sizing, made.policy.cpu.per_accelerator), share.memory(wanted, sizing)


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


def whole_devices(scene: Scene, container: Container) -> tuple[Candidate, ...]:
    """Return the candidates on which none of the accelerators that a container asks for is shared."""
    resources = scene.units.get(container.path, {})
    return tuple(each for each in scene.candidates if not any(_is_shared(each, resource) for resource in resources))


def sized_by(scene: Scene, container: Container, *, shared: bool) -> tuple[Candidate, ...]:
    """Return the candidates whose share a device container gets: all of them, or those where it shares no accelerator.

    A silent container gets no share of a shared one, unless the policy says so: nobody knows how much a part of a GPU needs.
    """
    whole = whole_devices(scene, container)
    return whole if whole and not scene.policy.shape_shared and (is_silent(container) or not shared) else scene.candidates


def shares_silently(scene: Scene, asks: Asks) -> bool:
    """Tell whether a device container asks for parts of devices, wherever it may land, and declares neither CPU nor memory."""
    if scene.policy.shape_shared:
        return False
    return any(
        ask.container.path in scene.bearers
        and is_silent(ask.container)
        and (ask.entry.kind is Kind.SHARED or not whole_devices(scene, ask.container))
        for ask in asks.accelerators
    )


def is_silent(container: Container) -> bool:
    """Tell whether the author declared neither CPU nor memory."""
    return declared(container, CPU).is_silent and declared(container, MEMORY).is_silent


def _is_shared(candidate: Candidate, resource: str) -> bool:
    return candidate.node.node_class.sharing.get(resource, 1) > 1


def whole_mi(size: int) -> int:
    """Return bytes rounded up to whole Mi."""
    return -(-size // MI) * MI

"""What the managers and the Topology Manager say to each other (`pkg/kubelet/cm/topologymanager/topology_manager.go`).

NUMA masks are ints: bit i stands for the NUMA node with id i. CPU sets are ints too: bit i stands for CPU i. Quantities are
nano units (see `quantities`). Nothing here is shared between two judgements: a manager is made anew for each pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from webhook.core.containers import Kind


class Hint(NamedTuple):
    """A NUMA mask that could serve a request; mask None means "any node" (a nil NUMANodeAffinity)."""

    mask: int | None
    preferred: bool


Hints = Mapping[str, tuple[Hint, ...] | None] | None
"""What a provider returns for one container or pod: per resource its hints. As in Go, None and an empty mapping mean "no
preference", a resource with None means "no preference for it", a resource with an empty tuple means "not possible"."""


class KubeletPanicError(Exception):
    """The kubelet's admission panics or never ends here; `args[0]` says at what. Only `admit` catches it."""


class ChancePanicError(KubeletPanicError):
    """Whether the kubelet's admission panics here is left to chance."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an allocation failed: the word the kubelet puts on the pod, and its message."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ContainerView:
    """A container as the managers see it, after the API server's defaults. Requests and limits are nano units."""

    name: str
    kind: Kind
    requests: Mapping[str, int]
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod as the managers see it, after the API server's defaults.

    Attributes:
        containers: init and sidecar containers in declared order, then app containers.
        qos: `Guaranteed`, `Burstable` or `BestEffort`, as `status.qosClass` would say.
        pod_level: `IsPodLevelResourcesSet`: some cpu, memory or hugepages stand in `spec.resources`.
        requests: pod-level requests, nano units; empty without `spec.resources`.
        limits: pod-level limits.
        overhead: `spec.overhead`, nano units.
    """

    containers: tuple[ContainerView, ...]
    qos: str
    pod_level: bool = False
    requests: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    overhead: Mapping[str, int] = field(default_factory=dict)


class HintProvider(Protocol):
    """A manager during the admission of one pod. Providers are asked in the order device, cpu, memory.

    `singles` tells that the policy is single-numa-node: masks wider than one node are filtered out by it anyway, so a
    provider may leave them out (an empty tuple then still means what it means to the policy: not possible).
    """

    def container_hints(self, container: ContainerView, *, singles: bool) -> Hints:
        """Return the hints for one container with what is left."""

    def pod_hints(self, *, singles: bool) -> Hints:
        """Return the hints for the whole pod (pod scope)."""

    def allocate_pod(self, hint: Hint) -> Refusal | None:
        """Take the pod's bubble under the pod's hint (pod-level resources under pod scope, 1.36 and later)."""

    def allocate(self, container: ContainerView, hint: Hint) -> Refusal | None:
        """Take what the container needs under its stored hint, or say why not."""

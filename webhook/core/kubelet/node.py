"""A node class, compiled: everything about its kubelet that does not depend on the pod.

Built once per class by `compile_class` and kept by its owner; the managers of each judgement read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.core.kubelet.config import KubeletConfig
from webhook.core.kubelet.machine import Machine
from webhook.core.model import NodeClass


@dataclass(frozen=True, slots=True)
class NodeKubelet:
    """The kubelet of an idle node of one class.

    Attributes:
        node_class: what it was compiled from.
        machine: its hardware.
        config: its configuration, resolved.
        minor: the Kubernetes minor whose rules apply, one of `model.MINORS`.
        start: why it would not start, in the kubelet's own words; None: it starts.
        gates: the feature gates that are on.
        reserved_cpus: CPU set that no container gets exclusively (empty without the static CPU policy).
        available_cpus: CPU set that containers may get exclusively.
        memory_allocatable: NUMA node -> resource (`memory`, `hugepages-1Gi`, ...) -> bytes: the Memory Manager's table on an
            idle node (`memorymanager/policy_static.go`); the same resources on every node.
        fit_allocatable: resource (cpu, memory, hugepages-*, device resources) -> nano units: the node's allocatable of the fit check.
    """

    node_class: NodeClass
    machine: Machine
    config: KubeletConfig
    minor: int
    start: str | None
    gates: frozenset[str]
    reserved_cpus: int
    available_cpus: int
    memory_allocatable: Mapping[int, Mapping[str, int]]
    fit_allocatable: Mapping[str, int]


def compile_class(node_class: NodeClass) -> NodeKubelet:
    """Return the compiled class; a kubelet that would not start has `start` set, and nothing else of it counts."""
    raise NotImplementedError

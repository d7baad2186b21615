"""A KubeletConfiguration v1beta1 excerpt, resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CpuOptions:
    """cpuManagerPolicyOptions, resolved."""

    full_pcpus_only: bool = False
    strict_cpu_reservation: bool = False
    prefer_align_by_uncore_cache: bool = False
    distribute_across_numa: bool = False
    align_by_socket: bool = False
    distribute_across_cores: bool = False


@dataclass(frozen=True, slots=True)
class KubeletConfig:
    """What the kubelet makes of its configuration, for the fields that concern admission.

    Attributes:
        topology_policy: `none`, `best-effort`, `restricted` or `single-numa-node`.
        topology_scope: `container` or `pod`.
        prefer_closest: the Topology Manager's option prefer-closest-numa-nodes.
        max_numa_nodes: its option max-allowable-numa-nodes.
        cpu_static: the CPU Manager's policy is `static`.
        memory_static: the Memory Manager's policy is `Static`.
        reserved_system_cpus: the CPU set of `reservedSystemCPUs`; None: not set.
        reserved_cpu: kubeReserved + systemReserved, milli-CPUs (for a CPU set: its size).
        reserved_memory: kubeReserved + systemReserved + hard eviction threshold, bytes.
        memory_manager_reserved: NUMA node -> resource -> bytes (`reservedMemory`).
    """

    topology_policy: str = "none"
    topology_scope: str = "container"
    prefer_closest: bool = False
    max_numa_nodes: int = 8
    cpu_static: bool = False
    cpu_options: CpuOptions = CpuOptions()
    memory_static: bool = False
    reserved_system_cpus: int | None = None
    reserved_cpu: int = 0
    reserved_memory: int = 0
    memory_manager_reserved: Mapping[int, Mapping[str, int]] | None = None

"""A KubeletConfiguration v1beta1 excerpt, resolved.

Defaults are those of `pkg/kubelet/apis/config/v1beta1/defaults.go`; reservations are summed up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.core.kubelet import features, reservation
from webhook.core.kubelet.machine import Machine
from webhook.core.quantities import parse, value

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


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
        gates: the feature gates that are on.
        topology_policy: `none`, `best-effort`, `restricted` or `single-numa-node`.
        topology_scope: `container` or `pod`.
        prefer_closest: the Topology Manager's option prefer-closest-numa-nodes.
        cpu_static: the CPU Manager's policy is `static`.
        cpu_options: its options.
        memory_static: the Memory Manager's policy is `Static`.
        reserved_system_cpus: the CPU set of `reservedSystemCPUs`; None: not set.
        reserved_cpu: kubeReserved + systemReserved, nano units (for a CPU set: its size).
        reserved_memory: kubeReserved + systemReserved + hard eviction threshold, nano units.
        memory_manager_reserved: NUMA node -> resource -> bytes (`reservedMemory`).
    """

    gates: frozenset[str] = frozenset()
    topology_policy: str = "none"
    topology_scope: str = "container"
    prefer_closest: bool = False
    cpu_static: bool = False
    cpu_options: CpuOptions = CpuOptions()
    memory_static: bool = False
    reserved_system_cpus: int | None = None
    reserved_cpu: int = 0
    reserved_memory: int = 0
    memory_manager_reserved: Mapping[int, Mapping[str, int]] = field(default_factory=dict)


def resolve(excerpt: Mapping[str, Any], minor: int, machine: Machine) -> KubeletConfig:
    """Return the configuration of a kubelet that starts (`start.start_errors`)."""
    policy = text_field(excerpt, "topologyManagerPolicy", "none")
    topology_options = excerpt.get("topologyManagerPolicyOptions") or {}
    cpu_set = reserved_cpu_set(excerpt)
    return KubeletConfig(
        gates=features.enabled_gates(minor, excerpt.get("featureGates") or {}),
        topology_policy=policy,
        topology_scope=text_field(excerpt, "topologyManagerScope", "container"),
        prefer_closest=policy != "none" and parse_bool(topology_options.get("prefer-closest-numa-nodes", "false")) is True,
        cpu_static=text_field(excerpt, "cpuManagerPolicy", "none") == "static",
        cpu_options=cpu_options(excerpt.get("cpuManagerPolicyOptions") or {}),
        memory_static=text_field(excerpt, "memoryManagerPolicy", "None") == "Static",
        reserved_system_cpus=cpu_set,
        reserved_cpu=reservation.reserved(excerpt, "cpu", minor, cpu_set),
        reserved_memory=reserved_memory(excerpt, minor, machine),
        memory_manager_reserved=memory_manager_reserved(excerpt),
    )


def text_field(excerpt: Mapping[str, Any], name: str, default: str) -> str:
    """Return a string field; an empty one has the default too."""
    return excerpt.get(name) or default


def cpu_options(options: Mapping[str, str]) -> CpuOptions:
    """Return the CPU Manager's options; what is no boolean counts as off."""

    def on(name: str) -> bool:
        return parse_bool(options.get(name, "false")) is True

    return CpuOptions(
        full_pcpus_only=on("full-pcpus-only"),
        strict_cpu_reservation=on("strict-cpu-reservation"),
        prefer_align_by_uncore_cache=on("prefer-align-cpus-by-uncorecache"),
        distribute_across_numa=on("distribute-cpus-across-numa"),
        align_by_socket=on("align-by-socket"),
        distribute_across_cores=on("distribute-cpus-across-cores"),
    )


def reserved_memory(excerpt: Mapping[str, Any], minor: int, machine: Machine) -> int:
    """Return the memory that Node Allocatable keeps back, nano units."""
    return reservation.reserved(excerpt, "memory", minor, None) + reservation.eviction_memory(excerpt, machine.memory)


def memory_manager_reserved(excerpt: Mapping[str, Any]) -> dict[int, dict[str, int]]:
    """Return NUMA node -> resource -> bytes of `reservedMemory`."""
    found: dict[int, dict[str, int]] = {}
    for entry in excerpt.get("reservedMemory") or ():
        for resource, amount in (entry.get("limits") or {}).items():
            found.setdefault(entry.get("numaNode") or 0, {})[resource] = value(parse(amount))
    return found


def reserved_cpu_set(excerpt: Mapping[str, Any]) -> int | None:
    """Return the CPU set of `reservedSystemCPUs`; None where it is not set.

    Raises:
        ValueError: if it is no CPU list.
    """
    text = excerpt.get("reservedSystemCPUs")
    return parse_cpu_list(text) if text else None


def parse_cpu_list(text: str) -> int:
    """Return a CPU list such as `0-3,8` as a set (`k8s.io/utils/cpuset`).

    Raises:
        ValueError: if it is none; `args[0]` says it as the kubelet does.
    """
    cpus = 0
    for run in text.split(","):
        first, last = (_number(part) for part in (run.split("-", 1) if "-" in run else (run, run)))
        if last < first:
            raise ValueError(f'invalid range "{run}" ({first} > {last})')
        cpus |= (1 << last + 1) - (1 << first)
    return cpus


def _number(text: str) -> int:
    if not is_go_int(text):
        raise ValueError(f'strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)


def is_go_int(text: str) -> bool:
    """Tell whether Go's `strconv.Atoi` takes it."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit()


def parse_bool(text: str) -> bool | None:
    """Return a boolean as Go's `strconv.ParseBool` reads it; None: it is none."""
    if text in _TRUE:
        return True
    return False if text in _FALSE else None

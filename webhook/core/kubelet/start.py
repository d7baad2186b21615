"""Would the kubelet start? The rules of its validation and of the managers' constructors, in the order in which it applies them.

Sources: `pkg/kubelet/apis/config/validation`, `cmd/kubelet/app/server.go`, `pkg/kubelet/cm/node_container_manager_linux.go`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from webhook.core.kubelet import config, features, reservation
from webhook.core.kubelet.excerpt import COUNTS, Case, StartError, decode_errors
from webhook.core.kubelet.machine import Machine, format_set
from webhook.core.kubelet.start_memory import memory_policy
from webhook.core.kubelet.start_options import cpu_policy, numa_node_count, topology_options
from webhook.core.quantities import NANO, format_bytes, parse, value

_TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
_SCOPES = ("container", "pod")
_SYSTEM_CGROUP = ("systemReservedCgroup", "--system-reserved-cgroup")
_KUBE_CGROUP = ("kubeReservedCgroup", "--kube-reserved-cgroup")
_COMPRESSIBLE = ("system-reserved", "kube-reserved")
_ENFORCEMENTS = {
    "pods": ("", ""),
    "system-reserved": _SYSTEM_CGROUP,
    "system-reserved-compressible": _SYSTEM_CGROUP,
    "kube-reserved": _KUBE_CGROUP,
    "kube-reserved-compressible": _KUBE_CGROUP,
    "none": ("", ""),
}


_Rule = Callable[[Case], Iterator[StartError]]


def start_errors(excerpt: Mapping[str, Any], minor: int, machine: Machine) -> Iterator[StartError]:
    """Yield why the kubelet would not start, what it reports first in front.

    The kubelet stops at the first stage with an error, and so do we: later rules would build on what is wrong.
    """
    undecodable = tuple(decode_errors(excerpt))
    if undecodable:
        yield from undecodable
        return
    gates = features.enabled_gates(minor, excerpt.get("featureGates") or {})
    case = Case(excerpt, minor, machine, gates)
    for stage in _STAGES:
        errors = [error for rule in stage for error in rule(case)]
        if errors:
            yield from errors
            return


def _feature_gates(case: Case) -> Iterator[StartError]:
    for gate, message in features.gate_errors(case.minor, case.excerpt.get("featureGates") or {}):
        yield StartError(f"featureGates[{gate}]", message)


def _counts(case: Case) -> Iterator[StartError]:
    for name, flag in COUNTS.items():
        found = case.excerpt.get(name) or 0
        if found < 0:
            yield _invalid(name, f"{name} ({flag}) {found} must not be a negative number")


def _policies(case: Case) -> Iterator[StartError]:
    policies = " ".join(f'"{name}"' for name in _TOPOLOGY_POLICIES)
    for field, flag, allowed, names in (
        ("topologyManagerPolicy", "topology-manager-policy", _TOPOLOGY_POLICIES, f"[{policies}]"),
        ("topologyManagerScope", "topology-manager-scope", _SCOPES, '"container", or "pod"'),
    ):
        found = config.text_field(case.excerpt, field, allowed[0])
        if found not in allowed:
            yield _invalid(field, f'{field} (--{flag}) "{found}" must be one of: {names}')


def _enforcement(case: Case) -> Iterator[StartError]:
    given = case.excerpt.get("enforceNodeAllocatable")
    enforced: Sequence[str] = ["pods"] if given is None else given
    field = "enforceNodeAllocatable (--enforce-node-allocatable)"
    for one in _COMPRESSIBLE:
        if {one, f"{one}-compressible"} <= set(enforced):
            yield _invalid(
                "enforceNodeAllocatable", f'both "{one}" and "{one}-compressible" cannot be specified together in {field}'
            )
    for name, times in Counter(enforced).items():
        if name not in _ENFORCEMENTS:
            names = ", ".join(f'"{each}"' for each in _ENFORCEMENTS)
            yield _invalid("enforceNodeAllocatable", f'option "{name}" specified for {field}. Valid options are {names}')
            continue
        if times > 1:
            yield _invalid("enforceNodeAllocatable", f'duplicated enforcements "{name}" in {field}')
        if name == "none" and len(enforced) > 1:
            message = f'{field} may not contain additional enforcements when "none" is specified'
            yield _invalid("enforceNodeAllocatable", message)
        cgroup, flag = _ENFORCEMENTS[name]
        if cgroup and not case.excerpt.get(cgroup):
            yield _invalid(cgroup, f'{cgroup} ({flag}) must be specified when "{name}" included in {field}')
        if name != "none" and case.excerpt.get("cgroupsPerQOS") is False:
            message = f'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "{name}" contained in {field}'
            yield _invalid("cgroupsPerQOS", message)


def _reserved_cpu_list(case: Case) -> Iterator[StartError]:
    text, field = case.excerpt.get("reservedSystemCPUs"), "reservedSystemCPUs (--reserved-cpus)"
    if not text:
        return
    if case.excerpt.get("systemReservedCgroup") or case.excerpt.get("kubeReservedCgroup"):
        cgroups = "systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"
        yield _invalid("reservedSystemCPUs", f"can't use {field} with {cgroups}")
    try:
        config.reserved_cpu_set(case.excerpt)
    except ValueError as error:
        yield _invalid("reservedSystemCPUs", f"unable to parse {field} {text}, error: {error}")


def _reserved_memory_list(case: Case) -> Iterator[StartError]:
    seen = set[tuple[int, str]]()
    for index, entry in enumerate(case.excerpt.get("reservedMemory") or ()):
        node = entry.get("numaNode") or 0
        for resource, amount in (entry.get("limits") or {}).items():
            path, where = f"reservedMemory[{index}].limits[{resource}]", f'NUMA node {node} and resource "{resource}"'
            if resource != "memory" and not resource.startswith("hugepages-"):
                kinds = "only [memory hugepages-<HugePageSize>] is accepted"
                yield _invalid(path, f'the limit type "{resource}" for NUMA node {node} is not supported, {kinds}')
            if parse(amount) == 0:
                yield _invalid(path, f"reserved memory may not be zero for {where}")
            if (node, resource) in seen:
                yield _invalid(path, f"the reserved memory has a duplicate value for {where}")
            seen.add((node, resource))


def _reserved_cpus_online(case: Case) -> Iterator[StartError]:
    cpus, online = config.reserved_cpu_set(case.excerpt) or 0, case.machine.cpu_topology.cpus
    if cpus & ~online:
        yield StartError(
            "reservedSystemCPUs", f"reserved-cpus: {format_set(cpus)} is not a subset of online-cpus: {format_set(online)}"
        )


def _kube_reserved(case: Case) -> Iterator[StartError]:
    return reservation.reservation_errors(case.excerpt, "kubeReserved", config.reserved_cpu_set(case.excerpt))


def _system_reserved(case: Case) -> Iterator[StartError]:
    return reservation.reservation_errors(case.excerpt, "systemReserved", config.reserved_cpu_set(case.excerpt))


def _eviction(case: Case) -> Iterator[StartError]:
    return reservation.eviction_errors(case.excerpt)


def _capacity(case: Case) -> Iterator[StartError]:
    cpu_set = config.reserved_cpu_set(case.excerpt)
    for resource, kept, capacity in (
        (
            "cpu",
            reservation.reserved(case.excerpt, "cpu", case.minor, cpu_set),
            case.machine.cpu_topology.cpus.bit_count() * NANO,
        ),
        ("memory", config.reserved_memory(case.excerpt, case.minor, case.machine), case.machine.memory * NANO),
    ):
        if kept > capacity:
            yield StartError(
                f"systemReserved[{resource}]",
                f'invalid Node Allocatable configuration. Resource "{resource}" has a reservation of {format_bytes(value(kept))} '
                f"but capacity of {format_bytes(value(capacity))}. Expected capacity >= reservation.",
            )


def _invalid(path: str, message: str) -> StartError:
    return StartError(path, f"invalid configuration: {message}")


_STAGES: tuple[tuple[_Rule, ...], ...] = (
    (_feature_gates,),
    (_counts, _policies, _enforcement, _reserved_cpu_list, _reserved_memory_list),
    (_reserved_cpus_online,),
    (_kube_reserved,),
    (_system_reserved,),
    (_eviction,),
    (topology_options,),
    (numa_node_count,),
    (_capacity, cpu_policy),
    (memory_policy,),
)

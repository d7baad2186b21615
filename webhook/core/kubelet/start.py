"""Would the kubelet start? The rules of its validation and of the managers' constructors, in the order in which it applies them.

Sources: `pkg/kubelet/apis/config/validation`, `cmd/kubelet/app/server.go`, and under `pkg/kubelet/cm` the `policy_options.go` of
topologymanager and cpumanager, `memorymanager/memory_manager.go`, `node_container_manager_linux.go`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from webhook.core.kubelet import config, features, reservation
from webhook.core.kubelet.excerpt import StartError, decode_errors
from webhook.core.kubelet.machine import Machine, format_set
from webhook.core.quantities import MI, NANO, format_bytes, parse, value

_TOPOLOGY_POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
_SCOPES = ("container", "pod")
_ENFORCEMENTS = {
    "pods": "",
    "system-reserved": "systemReservedCgroup",
    "system-reserved-compressible": "systemReservedCgroup",
    "kube-reserved": "kubeReservedCgroup",
    "kube-reserved-compressible": "kubeReservedCgroup",
    "none": "",
}


class _Case(NamedTuple):
    """What the rules look at; the excerpt's types have been checked."""

    excerpt: Mapping[str, Any]
    minor: int
    machine: Machine
    gates: frozenset[str]


_Rule = Callable[[_Case], Iterator[StartError]]


def start_errors(excerpt: Mapping[str, Any], minor: int, machine: Machine) -> Iterator[StartError]:
    """Yield why the kubelet would not start, what it reports first in front.

    The kubelet stops at the first stage with an error, and so do we: later rules would build on what is wrong.
    """
    undecodable = tuple(decode_errors(excerpt))
    if undecodable:
        yield from undecodable
        return
    gates = features.enabled_gates(minor, excerpt.get("featureGates") or {})
    case = _Case(excerpt, minor, machine, gates)
    for stage in _STAGES:
        errors = [error for rule in stage for error in rule(case)]
        if errors:
            yield from errors
            return


def _feature_gates(case: _Case) -> Iterator[StartError]:
    for gate, message in features.gate_errors(case.minor, case.excerpt.get("featureGates") or {}):
        yield StartError(f"featureGates[{gate}]", message)


def _policies(case: _Case) -> Iterator[StartError]:
    for field, allowed, default in (
        ("topologyManagerPolicy", _TOPOLOGY_POLICIES, "none"),
        ("topologyManagerScope", _SCOPES, "container"),
    ):
        found = config.text_field(case.excerpt, field, default)
        if found not in allowed:
            yield StartError(field, f'invalid configuration: {field} "{found}" must be one of: {", ".join(allowed)}')


def _enforcement(case: _Case) -> Iterator[StartError]:
    given = case.excerpt.get("enforceNodeAllocatable")
    enforced: Sequence[str] = ["pods"] if given is None else given
    for name, times in Counter(enforced).items():
        path = "enforceNodeAllocatable"
        if name not in _ENFORCEMENTS:
            yield StartError(
                path, f'invalid configuration: option "{name}" specified for {path}. Valid options are {list(_ENFORCEMENTS)}'
            )
            continue
        cgroup = _ENFORCEMENTS[name]
        if times > 1:
            yield StartError(path, f'invalid configuration: duplicated enforcements "{name}" in {path}')
        if name == "none" and len(enforced) > 1:
            yield StartError(
                path, f'invalid configuration: {path} may not contain additional enforcements when "none" is specified'
            )
        if cgroup and not case.excerpt.get(cgroup):
            yield StartError(cgroup, f'invalid configuration: {cgroup} must be specified when "{name}" included in {path}')
        if name != "none" and case.excerpt.get("cgroupsPerQOS") is False:
            yield StartError(
                "cgroupsPerQOS", f'invalid configuration: cgroupsPerQOS must be set to true when "{name}" contained in {path}'
            )


def _reserved_cpu_list(case: _Case) -> Iterator[StartError]:
    path = "reservedSystemCPUs"
    if not case.excerpt.get(path):
        return
    if case.excerpt.get("systemReservedCgroup") or case.excerpt.get("kubeReservedCgroup"):
        yield StartError(path, f"invalid configuration: can't use {path} with systemReservedCgroup or kubeReservedCgroup")
    try:
        config.reserved_cpu_set(case.excerpt)
    except ValueError as error:
        yield StartError(path, f"invalid configuration: unable to parse {path} {case.excerpt[path]}, error: {error}")


def _reserved_memory_list(case: _Case) -> Iterator[StartError]:
    seen = set[tuple[int, str]]()
    for index, entry in enumerate(case.excerpt.get("reservedMemory") or ()):
        node = entry.get("numaNode") or 0
        for resource, amount in (entry.get("limits") or {}).items():
            path, where = f"reservedMemory[{index}].limits[{resource}]", f'NUMA node {node} and resource "{resource}"'
            if resource != "memory" and not resource.startswith("hugepages-"):
                yield StartError(
                    path,
                    f'invalid configuration: the limit type "{resource}" for NUMA node {node} is not supported, '
                    "only [memory hugepages-<HugePageSize>] is accepted",
                )
            if parse(amount) == 0:
                yield StartError(path, f"invalid configuration: reserved memory may not be zero for {where}")
            if (node, resource) in seen:
                yield StartError(path, f"invalid configuration: the reserved memory has a duplicate value for {where}")
            seen.add((node, resource))


def _reserved_cpus_online(case: _Case) -> Iterator[StartError]:
    cpus, online = config.reserved_cpu_set(case.excerpt) or 0, case.machine.cpu_topology.cpus
    if cpus & ~online:
        yield StartError(
            "reservedSystemCPUs", f"reserved-cpus: {format_set(cpus)} is not a subset of online-cpus: {format_set(online)}"
        )


def _kube_reserved(case: _Case) -> Iterator[StartError]:
    return reservation.reservation_errors(case.excerpt, "kubeReserved")


def _system_reserved(case: _Case) -> Iterator[StartError]:
    return reservation.reservation_errors(case.excerpt, "systemReserved")


def _eviction(case: _Case) -> Iterator[StartError]:
    return reservation.eviction_errors(case.excerpt)


def _topology_options(case: _Case) -> Iterator[StartError]:
    options, path = case.excerpt.get("topologyManagerPolicyOptions"), "topologyManagerPolicyOptions"
    if options is not None and "TopologyManagerPolicyOptions" not in case.gates:
        yield StartError(path, "topology manager policy options require feature gates TopologyManagerPolicyOptions enabled")
        return
    if config.text_field(case.excerpt, "topologyManagerPolicy", "none") == "none":
        return
    for name, text in (options or {}).items():
        message = _topology_option_error(name, text, case)
        if message:
            yield StartError(f"{path}[{name}]", message)


def _topology_option_error(name: str, text: str, case: _Case) -> str:
    if name == "prefer-closest-numa-nodes":
        return "" if config.parse_bool(text) is not None else _bad_bool(name, text)
    if name != "max-allowable-numa-nodes":
        return f'unknown Topology Manager Policy option: "{name}"'
    if case.minor < 35 and "TopologyManagerPolicyBetaOptions" not in case.gates:
        return f'topology manager policy beta-level options not enabled, but option "{name}" provided'
    if not _is_go_int(text):
        return f'unable to convert policy option to integer "{name}": strconv.Atoi: parsing "{text}": invalid syntax'
    least = config.DEFAULT_MAX_NUMA_NODES
    return f'the minimum value of "{name}" should not be less than {least}' if int(text) < least else ""


def _numa_node_count(case: _Case) -> Iterator[StartError]:
    options = case.excerpt.get("topologyManagerPolicyOptions") or {}
    allowed = int(options.get("max-allowable-numa-nodes", config.DEFAULT_MAX_NUMA_NODES))
    found = len(case.machine.cells)
    if config.text_field(case.excerpt, "topologyManagerPolicy", "none") != "none" and found > allowed:
        yield StartError(
            "topologyManagerPolicy",
            f"unsupported on machines with more than {allowed} NUMA Nodes",
            f'topologyManagerPolicyOptions: {{max-allowable-numa-nodes: "{found}"}}',
        )


def _cpu_policy(case: _Case) -> Iterator[StartError]:
    policy = config.text_field(case.excerpt, "cpuManagerPolicy", "none")
    options = case.excerpt.get("cpuManagerPolicyOptions") or {}
    if policy == "none" and options:
        shown = " ".join(f"{name}:{text}" for name, text in sorted(options.items()))
        yield StartError(
            "cpuManagerPolicyOptions", f"new none policy error: None policy: received unsupported options=map[{shown}]"
        )
    elif policy not in ("none", "static"):
        yield StartError("cpuManagerPolicy", f'unknown policy: "{policy}"', "cpuManagerPolicy: static")
    elif policy == "static":
        cpu_set = config.reserved_cpu_set(case.excerpt)
        if not reservation.reserved(case.excerpt, "cpu", case.minor, cpu_set):
            yield StartError(
                "systemReserved[cpu]",
                "[cpumanager] unable to determine reserved CPU resources for static policy",
                "reserve CPUs: systemReserved, kubeReserved or reservedSystemCPUs",
            )
        yield from _cpu_options(case, options)


def _cpu_options(case: _Case, options: Mapping[str, str]) -> Iterator[StartError]:
    path, failed = "cpuManagerPolicyOptions", "new static policy error: "
    single = [(name, _cpu_option_error(name, text, case)) for name, text in options.items()]
    for name, message in single:
        if message:
            yield StartError(f"{path}[{name}]", failed + message)
    on = {name for name, text in options.items() if config.parse_bool(text)}
    for one, other in _EXCLUSIVE_CPU_OPTIONS:
        if {one, other} <= on:
            yield StartError(path, f"{failed}static policy options {one} and {other} can not be used at the same time")
    if "align-by-socket" in on:
        yield from _align_by_socket(case, f"{path}[align-by-socket]", failed)


_EXCLUSIVE_CPU_OPTIONS = (
    ("full-pcpus-only", "distribute-cpus-across-cores"),
    ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)
_GA = 0
_CPU_OPTION_STAGES: Mapping[str, tuple[str, int]] = {
    "full-pcpus-only": ("", _GA),
    "strict-cpu-reservation": ("Beta", 35),
    "prefer-align-cpus-by-uncorecache": ("Beta", 36),
    "distribute-cpus-across-numa": ("Beta", 99),
    "align-by-socket": ("Alpha", 99),
    "distribute-cpus-across-cores": ("Alpha", 99),
}
"""Option -> (stage, the minor from which on it is GA and needs no gate)."""


def _cpu_option_error(name: str, text: str, case: _Case) -> str:
    if name not in _CPU_OPTION_STAGES:
        return f'unknown CPU Manager Policy option: "{name}"'
    stage, stable_since = _CPU_OPTION_STAGES[name]
    if case.minor < stable_since and f"CPUManagerPolicy{stage}Options" not in case.gates:
        return f'CPU Manager Policy {stage}-level Options not enabled, but option "{name}" provided'
    return "" if config.parse_bool(text) is not None else _bad_bool(name, text)


def _align_by_socket(case: _Case, path: str, failed: str) -> Iterator[StartError]:
    if case.excerpt.get("topologyManagerPolicy") == "single-numa-node":
        message = "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"
        yield StartError(path, failed + message)
    topology = case.machine.cpu_topology
    if topology.socket_count > len(topology.numa):
        message = "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA"
        yield StartError(path, failed + message)


def _memory_policy(case: _Case) -> Iterator[StartError]:
    policy = config.text_field(case.excerpt, "memoryManagerPolicy", "None")
    if policy == "BestEffort":
        yield StartError(
            "memoryManagerPolicy", 'policy "BestEffort" is not available for platform "linux"', "memoryManagerPolicy: Static"
        )
    elif policy not in ("None", "Static"):
        yield StartError("memoryManagerPolicy", f'unknown policy: "{policy}"', "memoryManagerPolicy: Static")
    elif policy == "Static":
        yield from _reserved_memory_nodes(case)


def _reserved_memory_nodes(case: _Case) -> Iterator[StartError]:
    nodes = {cell.id for cell in case.machine.cells}
    missing = [node for node in config.memory_manager_reserved(case.excerpt) if node not in nodes]
    for node in missing:
        yield StartError(
            "reservedMemory",
            f"the reserved memory configuration references a NUMA node {node} that does not exist on this machine",
        )
    if not missing:
        yield from _reserved_memory_sums(case)


def _reserved_memory_sums(case: _Case) -> Iterator[StartError]:
    """Each type's sum must be what Node Allocatable keeps back of it, to the byte; of hugepages it keeps back none."""
    expected = config.reserved_memory(case.excerpt, case.minor, case.machine)
    sums = Counter({"memory": 0})
    for entry in case.excerpt.get("reservedMemory") or ():
        for resource, amount in (entry.get("limits") or {}).items():
            sums[resource] += parse(amount)
    wrong = False
    for resource, total in sums.items():
        wanted = expected if resource == "memory" else 0
        if total != wanted:
            wrong = True
            yield StartError(
                "reservedMemory",
                f'the total amount "{format_bytes(value(total))}" of type "{resource}" is not equal to the value '
                f'"{format_bytes(value(wanted))}" determined by Node Allocatable feature',
                _reserved_memory_fix(value(expected), case.machine),
            )
    if not wrong:
        yield from _reserved_memory_use(case, expected)


def _reserved_memory_use(case: _Case, expected: int) -> Iterator[StartError]:
    if expected == 0:
        yield StartError("reservedMemory", "[memorymanager] you should specify the system reserved memory")
    reserved = config.memory_manager_reserved(case.excerpt)
    for cell in case.machine.cells:
        kept = reserved.get(cell.id, {}).get("memory", 0)
        left = cell.memory - sum(cell.hugepages.values())
        if kept > left:
            yield StartError(
                "reservedMemory",
                f"{format_bytes(kept)} of memory are reserved on NUMA node {cell.id}, which has "
                f"{format_bytes(left)} besides hugepages",
                "reserve less on it: the Memory Manager would take it for endless",
            )


def _reserved_memory_fix(total: int, machine: Machine) -> str:
    """Return `reservedMemory` that adds up, split evenly over the nodes with CPUs in whole Mi where possible."""
    nodes = [cell.id for cell in machine.cells if cell.cpus] or [cell.id for cell in machine.cells]
    share = total // len(nodes) // MI * MI
    amounts = [total - share * (len(nodes) - 1), *[share] * (len(nodes) - 1)]
    entries = [
        f"{{numaNode: {node}, limits: {{memory: {format_bytes(amount)}}}}}" for node, amount in zip(nodes, amounts, strict=True)
    ]
    return (
        f"reservedMemory: [{', '.join(entries)}], and no hugepages" if total else "reserve memory: systemReserved or evictionHard"
    )


def _capacity(case: _Case) -> Iterator[StartError]:
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


def _bad_bool(name: str, text: str) -> str:
    return f'bad value for option "{name}": strconv.ParseBool: parsing "{text}": invalid syntax'


def _is_go_int(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit()


_STAGES: tuple[tuple[_Rule, ...], ...] = (
    (_feature_gates,),
    (_policies, _enforcement, _reserved_cpu_list, _reserved_memory_list),
    (_reserved_cpus_online,),
    (_kube_reserved,),
    (_system_reserved,),
    (_eviction,),
    (_topology_options,),
    (_numa_node_count,),
    (_capacity, _cpu_policy),
    (_memory_policy,),
)

"""A node class, compiled: everything about its kubelet that does not depend on the pod.

Built once per class by `compile_class` and kept by its owner; the managers of each judgement read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.core.kubelet.aligned import Idle
from webhook.core.kubelet.config import KubeletConfig, resolve
from webhook.core.kubelet.contract import Refusal
from webhook.core.kubelet.cpu import StaticCpuPolicy
from webhook.core.kubelet.devices import DevicePolicy
from webhook.core.kubelet.excerpt import StartError
from webhook.core.kubelet.machine import Machine, build_machine
from webhook.core.kubelet.memory import StaticMemoryPolicy
from webhook.core.kubelet.start import start_errors
from webhook.core.kubelet.topology import TopologyPolicy, policy_of
from webhook.core.model import MINORS, NodeClass
from webhook.core.quantities import NANO, format_bytes


@dataclass(frozen=True, slots=True)
class NodeKubelet:
    """The kubelet of an idle node of one class.

    Attributes:
        node_class: what it was compiled from.
        machine: its hardware.
        config: its configuration, resolved.
        minor: the Kubernetes minor whose rules apply, one of `model.MINORS`.
        errors: why it would not start; if any, nothing else of it counts.
        gates: the feature gates that are on.
        cpu_policy: the static CPU policy; None under policy none.
        reserved_cpus: CPU set that no container gets exclusively (empty without the static CPU policy).
        available_cpus: CPU set that containers may get exclusively.
        memory_allocatable: NUMA node -> resource (`memory`, `hugepages-1Gi`, ...) -> bytes: the Memory Manager's table on an
            idle node (`memorymanager/policy_static.go`); the same resources on every node. Empty without the Static policy.
        fit_allocatable: resource (cpu, memory, hugepages-*, device resources) -> nano units: the node's allocatable for the fit
            check.
        memory_policy: the Memory Manager's Static policy; None under policy None.
        device_policy: the devices that its plugins report.
        topology_policy: how hints are merged.
        idle: what alignment is measured against.
    """

    node_class: NodeClass
    machine: Machine
    config: KubeletConfig
    minor: int
    errors: tuple[StartError, ...]
    gates: frozenset[str]
    cpu_policy: StaticCpuPolicy | None
    reserved_cpus: int
    available_cpus: int
    memory_allocatable: Mapping[int, Mapping[str, int]]
    fit_allocatable: Mapping[str, int]
    memory_policy: StaticMemoryPolicy | None
    device_policy: DevicePolicy
    topology_policy: TopologyPolicy
    idle: Idle

    @property
    def start(self) -> str | None:
        """Return why it would not start, in the kubelet's own words; None: it starts."""
        return self.errors[0].message if self.errors else None


def compile_class(node_class: NodeClass) -> NodeKubelet:
    """Return the compiled class; a kubelet that would not start has `errors`, and nothing else of it counts."""
    minor = nearest_minor(node_class.minor)
    machine = build_machine(node_class)
    errors = tuple(start_errors(node_class.kubelet, minor, machine))
    config = KubeletConfig() if errors else resolve(node_class.kubelet, minor, machine)
    policy, problem = _static_policy(machine, config, minor) if config.cpu_static else (None, None)
    table = _memory_allocatable(machine, config) if config.memory_static else {}
    memory_policy = StaticMemoryPolicy(table) if table else None
    device_policy = DevicePolicy(machine.devices, machine.numa_mask, minor)
    available = policy.available if policy else 0
    return NodeKubelet(
        node_class=node_class,
        machine=machine,
        config=config,
        minor=minor,
        errors=(*errors, problem) if problem else errors,
        gates=config.gates,
        cpu_policy=policy,
        reserved_cpus=policy.reserved if policy else 0,
        available_cpus=available,
        memory_allocatable=table,
        fit_allocatable=_fit_allocatable(machine, config),
        memory_policy=memory_policy,
        device_policy=device_policy,
        topology_policy=policy_of(config, machine),
        idle=Idle(machine.numa_mask, machine.cpu_topology, available, memory_policy, device_policy),
    )


def nearest_minor(minor: int) -> int:
    """Return the minor whose rules are used for another one."""
    return min(max(minor, MINORS[0]), MINORS[-1])


def hugepages_resource(size: int) -> str:
    """Return the resource name of a page size in bytes: `hugepages-2Mi`."""
    return f"hugepages-{format_bytes(size)}"


def _static_policy(machine: Machine, config: KubeletConfig, minor: int) -> tuple[StaticCpuPolicy | None, StartError | None]:
    """Return the policy with its reserved CPUs: those given, or as many as are reserved, picked as it picks for containers."""
    topology, options = machine.cpu_topology, config.cpu_options
    if config.reserved_system_cpus:
        return StaticCpuPolicy(topology, options, minor, config.reserved_system_cpus), None
    wanted = -(-config.reserved_cpu // NANO)
    reserved = StaticCpuPolicy(topology, options, minor, 0).take(topology.cpus, wanted)
    if isinstance(reserved, Refusal) or reserved.bit_count() != wanted:
        found = 0 if isinstance(reserved, Refusal) else reserved.bit_count()
        message = f"[cpumanager] unable to reserve the required amount of CPUs (size of {found} did not equal {wanted})"
        return None, StartError("systemReserved[cpu]", f"new static policy error: {message}")
    return StaticCpuPolicy(topology, options, minor, reserved), None


def _memory_allocatable(machine: Machine, config: KubeletConfig) -> dict[int, dict[str, int]]:
    table = {}
    for cell in machine.cells:
        reserved = config.memory_manager_reserved.get(cell.id, {})
        pages = {hugepages_resource(size): amount for size, amount in cell.hugepages.items()}
        memory = cell.memory - reserved.get("memory", 0) - sum(cell.hugepages.values())
        table[cell.id] = {"memory": memory, **pages}
    return table


def _fit_allocatable(machine: Machine, config: KubeletConfig) -> dict[str, int]:
    """Return the node's allocatable (`pkg/kubelet/nodestatus/setters.go`): memory without what hugepages take."""
    pages = {hugepages_resource(size): sum(cell.hugepages[size] for cell in machine.cells) * NANO for size in machine.page_sizes}
    memory = machine.memory * NANO - config.reserved_memory - sum(pages.values())
    devices = {resource: sum(group.count for group in groups) * NANO for resource, groups in machine.devices.items()}
    cpu = machine.cpu_topology.cpus.bit_count() * NANO - config.reserved_cpu
    return {"cpu": max(cpu, 0), "memory": max(memory, 0), **pages, **devices}

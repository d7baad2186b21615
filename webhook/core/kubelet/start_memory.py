"""Would the kubelet start with its Memory Manager's policy and `reservedMemory`?

Sources: `pkg/kubelet/cm/memorymanager/memory_manager.go`, `policy_static.go`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from webhook.core.kubelet import config
from webhook.core.kubelet.excerpt import Case, StartError
from webhook.core.kubelet.machine import Machine
from webhook.core.quantities import MI, format_bytes, parse, value


def memory_policy(case: Case) -> Iterator[StartError]:
    """Yield what is wrong with the Memory Manager's policy and, under Static, with what is reserved for the system."""
    policy = config.text_field(case.excerpt, "memoryManagerPolicy", "None")
    if policy == "BestEffort":
        yield StartError(
            "memoryManagerPolicy", 'policy "BestEffort" is not available for platform "linux"', "memoryManagerPolicy: Static"
        )
    elif policy not in ("None", "Static"):
        yield StartError("memoryManagerPolicy", f'unknown policy: "{policy}"', "memoryManagerPolicy: Static")
    elif policy == "Static":
        yield from _reserved_memory_nodes(case)


def _reserved_memory_nodes(case: Case) -> Iterator[StartError]:
    nodes = {cell.id for cell in case.machine.cells}
    missing = [node for node in config.memory_manager_reserved(case.excerpt) if node not in nodes]
    for node in missing:
        yield StartError(
            "reservedMemory",
            f"the reserved memory configuration references a NUMA node {node} that does not exist on this machine",
        )
    if not missing:
        yield from _reserved_memory_sums(case)


def _reserved_memory_sums(case: Case) -> Iterator[StartError]:
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


def _reserved_memory_use(case: Case, expected: int) -> Iterator[StartError]:
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

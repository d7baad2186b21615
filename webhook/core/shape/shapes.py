"""The shapes of a pod, in order of least surprise: the CPU and memory numbers that a mutation would give it.

A shape is data until it is applied: container -> (milli-CPUs, bytes), requests = limits, for every container, because the
kubelet gives CPUs of their own and pinned memory to Guaranteed pods only (`pkg/apis/core/v1/helper/qos/qos.go`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from webhook.core.containers import Container, Kind, Path, Pod
from webhook.core.edit import get, put
from webhook.core.kubelet.totals import pod_total
from webhook.core.quantities import MILLI_IN_NANO, NANO, format_bytes, format_cpu, parse
from webhook.core.resource_names import CPU, MEMORY
from webhook.core.shape import cpu, memory, share, width
from webhook.core.shape.amounts import Amounts
from webhook.core.shape.capped import UNCAPPED, Sizes, cap
from webhook.core.shape.initcontainers import InitMemory, memory_floor
from webhook.core.shape.scene import Scene, declared, is_silent

Shape = Mapping[Path, Amounts]

_NO_ROOM = Amounts(0, 0)


@dataclass(frozen=True, slots=True)
class _Choice:
    """What a shape may do one way or another.

    Attributes:
        wide: give silent device containers what needs as many NUMA nodes as their devices do.
        roomy: memory-backed volumes without a sizeLimit count as if they were filled; else the share has to do for them.
        round_up: also integers with requests = limits are rounded up to whole cores.
        leave_room: take what the pod's other containers need off the share.
        shared: declared containers get the share of a candidate that shares the accelerator, too.
        init_memory: where the memory of init containers comes from.
        most: cuts the share to what LimitRanges accept.
    """

    shared: bool
    wide: bool
    roomy: bool
    round_up: bool
    leave_room: bool
    init_memory: InitMemory
    most: Amounts = UNCAPPED

    def width(self, scene: Scene) -> int:
        """Return what CPUs that the author fixed have to be a multiple of."""
        return scene.smt_width if self.round_up else 1


def shapes(scene: Scene) -> Iterator[Shape]:
    """Yield the shapes of a pod without pod-level resources, each once; none where a container cannot be made Guaranteed.

    One that LimitRanges refuse is followed by the nearest one that they accept.
    """
    if not scene.bearers or any(not _can_change(scene, container) for container in scene.containers):
        return
    seen: list[Shape] = []
    for choice in _choices():
        shape = _shape(scene, choice)
        if shape is None or shape in seen:
            continue
        for each in (shape, _capped(scene, choice, shape)):
            if each is not None and each not in seen:
                seen.append(each)
                yield each


def _capped(scene: Scene, choice: _Choice, shape: Shape) -> Shape | None:
    """Return the shape with less of the share; None where LimitRanges accept it as it is."""
    if not scene.bounds:
        return None

    def sizes(most: Amounts) -> Sizes | None:
        made = _shape(scene, replace(choice, most=most))
        return None if made is None else _sizes(scene, made)

    whole = _sizes(scene, shape).container
    most = cap(scene.bounds, sizes, whole)
    return None if most is None else _shape(scene, replace(choice, most=most))


def _sizes(scene: Scene, shape: Shape) -> Sizes:
    each = [shape[container.path] for container in scene.containers]
    kinds = [container.kind for container in scene.containers]
    total = pod_total((kind, {CPU: one.cpu, MEMORY: one.memory}) for kind, one in zip(kinds, each, strict=True))
    largest = Amounts(max(one.cpu for one in each), max(one.memory for one in each))
    return Sizes(largest, Amounts(total[CPU], total[MEMORY]))


def _choices() -> Iterator[_Choice]:
    """Yield all choices, the least surprising ones first."""
    no_first, yes_first = (False, True), (True, False)
    for wide, roomy, shared, leave_room, round_up in product(no_first, yes_first, yes_first, no_first, no_first):
        for init_memory in InitMemory:
            yield _Choice(shared, wide, roomy, round_up, leave_room, init_memory)


def applied(pod: Pod, shape: Shape) -> Pod:
    """Return the pod in a shape; quantities that have the value already stay as they are written."""
    for path, amounts in shape.items():
        for side in ("requests", "limits"):
            pod = with_quantity(pod, (*path, "resources", side, CPU), amounts.cpu)
            pod = with_quantity(pod, (*path, "resources", side, MEMORY), amounts.memory)
    return pod


def with_quantity(pod: Pod, path: Path, amount: int) -> Pod:
    """Return the pod with an amount of CPU (milli-CPUs) or memory (bytes) at a path."""
    present: Any = get(pod, path)
    unit, text = (MILLI_IN_NANO, format_cpu) if path[-1] == CPU else (NANO, format_bytes)
    return pod if present is not None and parse(present) == amount * unit else put(pod, path, text(amount))


def unfixed_memory(scene: Scene) -> Iterator[Container]:
    """Yield the containers whose memory would have to change: with the policy's `memory.inject: never` it is the author's to."""
    return (container for container in scene.containers if not declared(container, MEMORY).is_fixed)


def _can_change(scene: Scene, container: Container) -> bool:
    """Tell whether a container can become Guaranteed: a limit of 0 is an author's own number, and not ours to raise."""
    if declared(container, CPU).limit == 0 or declared(container, MEMORY).limit == 0:
        return False
    return scene.policy.memory.inject != "never" or declared(container, MEMORY).is_fixed


def _shape(scene: Scene, choice: _Choice) -> Shape | None:
    """Return one shape, None where the choice makes no sense for this pod."""
    others = {
        c.path: _other(scene, c, choice) for c in scene.containers if c.kind is not Kind.INIT and c.path not in scene.bearers
    }
    if choice.leave_room and not others:
        return None
    room = _total(others.values()) if choice.leave_room else _NO_ROOM
    if choice.leave_room and any(_starves(scene, c, choice, room) for c in scene.containers if c.path in scene.bearers):
        return None
    bearers = {c.path: _bearer(scene, c, choice, room) for c in scene.containers if c.path in scene.bearers}
    apps = [(others | bearers)[c.path] for c in scene.containers if c.kind is Kind.APP]
    inits = {c.path: _init(scene, c, apps, choice) for c in scene.containers if c.kind is Kind.INIT}
    return others | bearers | inits


def _total(amounts: Iterable[Amounts]) -> Amounts:
    found = list(amounts)
    return Amounts(sum(each.cpu for each in found), sum(each.memory for each in found))


def _other(scene: Scene, container: Container, choice: _Choice) -> Amounts:
    return Amounts(
        cpu.of_other_container(declared(container, CPU), scene.policy.cpu.default, choice.width(scene)),
        memory.of_container(declared(container, MEMORY), scene.policy.memory.default, _tmpfs(scene, container, choice)),
    )


def _bearer(scene: Scene, container: Container, choice: _Choice, room: Amounts) -> Amounts:
    declared_cpu, declared_memory = declared(container, CPU), declared(container, MEMORY)
    fixed = declared_cpu.is_fixed and (declared_cpu.request or 0) % 1000 == 0
    step = choice.width(scene) if fixed else scene.smt_width
    cpus, size = _share(scene, container, choice, room)
    if choice.wide and is_silent(container):
        least = width.least(scene, container, *_units(scene, container))
        # Rounded up here, for a share is rounded down.
        cpus = max(cpus or 0, -(-least.cpu // (step * 1000)) * step * 1000)
        size = max(size, least.memory)
    return Amounts(
        cpu.of_device_container(declared_cpu, cpus, step, scene.policy.cpu),
        memory.of_container(declared_memory, size, _tmpfs(scene, container, choice)),
    )


def _share(scene: Scene, container: Container, choice: _Choice, room: Amounts) -> tuple[int | None, int]:
    """Return a device container's milli-CPUs, None without accelerators, and its bytes."""
    cpus, size = scene.shares[container.path, choice.shared]
    mine, whole = _units(scene, container)
    if cpus is not None and whole:
        cpus = min(max(cpus - -(-room.cpu * mine // whole), 0), choice.most.cpu * mine)
    if size is not None and whole:
        size = min(size - -(-room.memory * mine // whole), choice.most.memory * mine)
    # A share may be next to nothing, where many share a node; then it is no better than any container's default.
    return cpus, max(size or 0, scene.policy.memory.default)


def _starves(scene: Scene, container: Container, choice: _Choice, room: Amounts) -> bool:
    """Tell whether making room takes more than half of a share on which a silent container relies.

    Aligned accelerators that wait for CPUs are no better off; what the others ask for is then the author's to lower.
    """
    (cpus, size), (all_cpus, all_size) = (_share(scene, container, choice, each) for each in (room, _NO_ROOM))
    fewer = declared(container, CPU).is_silent and 2 * (cpus or 0) < (all_cpus or 0)
    return fewer or (declared(container, MEMORY).is_silent and 2 * size < all_size)


def _units(scene: Scene, container: Container) -> tuple[int, int]:
    """Return the accelerators that a device container asks for, and those of all device containers."""
    counts = {path: sum(scene.units.get(path, {}).values()) for path in scene.bearers}
    return counts[container.path], sum(counts.values())


def _init(scene: Scene, container: Container, apps: list[Amounts], choice: _Choice) -> Amounts:
    floor = memory_floor(choice.init_memory, [each.memory for each in apps], scene.policy)
    return Amounts(
        cpu.of_init_container(declared(container, CPU), sum(each.cpu for each in apps), choice.width(scene)),
        memory.of_container(declared(container, MEMORY), floor, _tmpfs(scene, container, choice)),
    )


def _tmpfs(scene: Scene, container: Container, choice: _Choice) -> int:
    return memory.tmpfs(scene.pod, container, share.half_node(scene.candidates) if choice.roomy else 0)

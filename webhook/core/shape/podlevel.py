"""The shape of a pod with pod-level resources (KEP-2837, KEP-5526): only `spec.resources` changes, never its containers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from webhook.core.containers import Pod
from webhook.core.kubelet.totals import pod_total
from webhook.core.resource_names import CPU, MEMORY
from webhook.core.shape import cpu, memory, share
from webhook.core.shape.amounts import Amounts
from webhook.core.shape.capped import UNCAPPED, Sizes, cap
from webhook.core.shape.scene import Declared, Scene, declared, declared_in
from webhook.core.shape.shapes import with_quantity


def pod_level_shapes(scene: Scene) -> Iterator[Amounts]:
    """Yield what the pod as a whole may get; what LimitRanges refuse is followed by the nearest amounts that they accept."""
    resources = scene.pod["spec"]["resources"]
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    cpus, size = declared_in(requests, limits, CPU), declared_in(requests, limits, MEMORY)
    never = scene.policy.memory.inject == "never" and not size.is_fixed
    if cpus.limit == 0 or size.limit == 0 or never or not scene.bearers:
        return
    for unlimited in (share.half_node(scene.candidates), 0):
        yield from _sizes(scene, partial(_amounts, scene, cpus, size, unlimited))


def _sizes(scene: Scene, made: Callable[[Amounts], Amounts]) -> Iterator[Amounts]:
    amounts = made(UNCAPPED)
    yield amounts
    most = cap(scene.bounds, lambda most: Sizes(Amounts(0, 0), made(most)), amounts) if scene.bounds else None
    if most is not None:
        yield made(most)


def _amounts(scene: Scene, cpus: Declared, size: Declared, unlimited: int, most: Amounts) -> Amounts:
    """Apply the rules of a device container to the pod."""
    units = _units(scene)
    count = sum(units.values())
    fair_cpu = share.cpu(units, scene.candidates, scene.policy.cpu.per_accelerator)
    floor = max(min(share.memory(units, scene.candidates) or 0, most.memory * count), scene.policy.memory.default)
    amount = cpu.of_device_container(
        _at_least(cpus, _containers_total(scene, CPU)),
        None if fair_cpu is None else min(fair_cpu, most.cpu * count),
        scene.smt_width,
        scene.policy.cpu,
    )
    tmpfs = sum(memory.tmpfs(scene.pod, each, unlimited) for each in scene.containers)
    return Amounts(amount, memory.of_container(_at_least(size, _containers_total(scene, MEMORY)), floor, tmpfs))


def applied_to_pod(pod: Pod, amounts: Amounts) -> Pod:
    """Return the pod with these pod-level requests and limits."""
    for side in ("requests", "limits"):
        pod = with_quantity(pod, ("spec", "resources", side, CPU), amounts.cpu)
        pod = with_quantity(pod, ("spec", "resources", side, MEMORY), amounts.memory)
    return pod


def _units(scene: Scene) -> Mapping[str, int]:
    total: dict[str, int] = {}
    for path in scene.bearers:
        for resource, count in scene.units.get(path, {}).items():
            total[resource] = total.get(resource, 0) + count
    return total


def _containers_total(scene: Scene, resource: str) -> int:
    """Return what the containers request themselves: the pod's request must not be under it."""
    each = ((c.kind, {resource: declared(c, resource).request or 0}) for c in scene.containers)
    return pod_total(each).get(resource, 0)


def _at_least(given: Declared, total: int) -> Declared:
    return given if given.request is None and not total else Declared(max(given.request or 0, total), given.limit)

"""HAMi: its annotation, and its own view of a pod beside the kubelet's.

HAMi advertises each GPU several times. The kubelet counts replicas, HAMi gives a container as many *distinct* GPUs as it asks
for (`pkg/device/nvidia/device.go`, Fit): four GPUs on a NUMA node look like forty to the kubelet, and serve four.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from webhook.core.accelerators import Ask, Asks, Kind
from webhook.core.containers import Kind as ContainerKind
from webhook.core.containers import Pod
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.model import Hami, NodeClass
from webhook.core.patch import HAMI_ALIGNMENT
from webhook.core.policy import Mode
from webhook.core.shape.candidate import Candidate
from webhook.core.verdict import Gap, Verdict

VALUES = ("best-effort", "strict")
_NOWHERE = -1
_OPT_OUT = "hami.io/webhook"
_SCHEDULERS = (None, "", "default-scheduler", "hami-scheduler")


def seen_by_hami(verdict: Verdict, node: NodeKubelet, asks: Asks) -> Verdict:
    """Return the kubelet's verdict with HAMi's view added, on classes that run it."""
    hami = node.node_class.hami
    if hami is None or hami.mode == "mig" or not verdict.admitted:
        return verdict
    mine = [ask for ask in asks.accelerators if _is_managed(ask)]
    physical = _physical(node.node_class)
    for ask in mine:
        there = sum(physical.get(ask.resource, {}).values())
        if ask.devices > there:
            message = f"{ask.devices} GPUs for one container, {there} are there; HAMi never gives it two parts of one GPU"
            return Verdict(reason="NodeInsufficientDevice", message=message, container=ask.container.name)
    gaps = tuple(gap for ask in mine if (gap := _gap(ask, verdict, physical.get(ask.resource, {}))))
    return replace(verdict, aligned=False, gaps=(*verdict.gaps, *gaps)) if gaps else verdict


def _gap(ask: Ask, verdict: Verdict, physical: Mapping[int, int]) -> Gap | None:
    mask = verdict.masks.get(ask.container.name)
    if mask is None:
        return None
    there = sum(physical.get(numa_node, 0) for numa_node in (*mask, _NOWHERE))
    if ask.devices <= there:
        return None
    where = ",".join(map(str, mask))
    return Gap(ask.container.name, "HamiDevicesApart", f"HAMi gives {ask.devices} distinct GPUs, NUMA node {where} has {there}")


def _physical(node_class: NodeClass) -> dict[str, dict[int, int]]:
    """Return resource -> NUMA node -> physical devices; `_NOWHERE` for devices without a NUMA node, or with several."""
    topology = node_class.topology
    found: dict[str, dict[int, int]] = {}
    for node in topology.numa_nodes:
        for resource, count in node.devices.items():
            found.setdefault(resource, {})[node.id] = count
    elsewhere = [*topology.devices_without_topology.items(), *((s.resource, s.count) for s in topology.devices_on_several_nodes)]
    for resource, count in elsewhere:
        nodes = found.setdefault(resource, {})
        nodes[_NOWHERE] = nodes.get(_NOWHERE, 0) + count
    return found


def alignment(pod: Pod, mode: Mode, asks: Asks, fitting: Iterable[Candidate]) -> str | None:
    """Return the value of `hami.io/numa-alignment` to inject, None for none.

    `strict` only in strict mode, where HAMi can move every container to the GPUs that the kubelet picked: its refit has to work
    on all the classes concerned, and counts wrongly where ordinary init containers have GPUs.

    Args:
        pod: the author's pod.
        mode: of the request.
        asks: what its containers ask for.
        fitting: the candidates on which the pod is aligned, in HAMi's view too.
    """
    concerned = [hami for each in fitting if (hami := each.node.node_class.hami) and _can_align(hami)]
    mine = [ask for ask in asks.accelerators if _is_managed(ask)]
    if not concerned or not mine or written(pod) is not None or not _is_placed_by_hami(pod):
        return None
    in_init = any(ask.container.kind is ContainerKind.INIT for ask in mine)
    return "strict" if mode is Mode.STRICT and all(hami.refit for hami in concerned) and not in_init else "best-effort"


def warning(pod: Pod) -> str | None:
    """Return what is wrong with the author's own annotation; HAMi itself refuses such a pod."""
    value = written(pod)
    if value is None or (isinstance(value, str) and value.strip().lower() in VALUES):
        return None
    return f"{HAMI_ALIGNMENT} must be best-effort or strict; HAMi refuses anything else"


def written(pod: Pod) -> object | None:
    """Return the annotation's present value."""
    return ((pod.get("metadata") or {}).get("annotations") or {}).get(HAMI_ALIGNMENT)


def _can_align(hami: Hami) -> bool:
    return hami.numa_topology and hami.mode != "mig"


def _is_managed(ask: Ask) -> bool:
    return ask.entry.hami and ask.entry.kind is not Kind.PARTITION


def _is_placed_by_hami(pod: Pod) -> bool:
    labels = (pod.get("metadata") or {}).get("labels") or {}
    return labels.get(_OPT_OUT) != "ignore" and pod["spec"].get("schedulerName") in _SCHEDULERS

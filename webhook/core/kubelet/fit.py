"""The kubelet's fit check, which follows the managers (`pkg/kubelet/lifecycle/predicate.go`).

It is the scheduler's filter on the node's allocatable resources (`scheduler/framework/plugins/noderesources/fit.go`), for a
node with no other pod. Extended resources that the node does not report are left out first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from webhook.core import quantities
from webhook.core.kubelet.contract import PodView, Refusal
from webhook.core.kubelet.totals import pod_total
from webhook.core.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended


@dataclass(frozen=True, slots=True)
class Shortage:
    """What does not fit: the kubelet's refusal, and whether it names the same resource each time."""

    refusal: Refusal
    certain: bool


def shortage(pod: PodView, allocatable: Mapping[str, int], *, pod_level: bool) -> Shortage | None:
    """Return what of the pod's requests the idle node lacks; None: it fits.

    `allocatable` is in nano units, `pod_level` tells whether pod-level resources count (gate PodLevelResources). The kubelet
    reports the first shortage: CPU, then memory, then the others in random order.
    """
    request = _request(pod, allocatable, pod_level=pod_level)
    ordered = [name for name in (CPU, MEMORY) if name in request] + [name for name in request if name not in (CPU, MEMORY)]
    short = [name for name in ordered if _whole(name, request[name]) > _whole(name, allocatable.get(name, 0))]
    if not short:
        return None
    name = short[0]
    message = (
        f"Node didn't have enough resource: {name}, requested: {_whole(name, request[name])}, used: 0, "
        f"capacity: {_whole(name, allocatable.get(name, 0))}"
    )
    return Shortage(Refusal(f"OutOf{name}", message), certain=name in (CPU, MEMORY) or len(short) == 1)


def _request(pod: PodView, allocatable: Mapping[str, int], *, pod_level: bool) -> dict[str, int]:
    """Return what the pod asks of the node: its containers' peak, pod-level requests instead where set, and the overhead."""
    total = pod_total(
        (container.kind, {name: amount for name, amount in container.requests.items() if _counts(name, allocatable)})
        for container in pod.containers
    )
    if pod_level:
        total.update(pod.requests)
    for name, amount in pod.overhead.items():
        total[name] = total.get(name, 0) + amount
    total.pop(EPHEMERAL_STORAGE, None)
    return total


def _counts(name: str, allocatable: Mapping[str, int]) -> bool:
    return name in allocatable or not is_extended(name)


def _whole(name: str, nano: int) -> int:
    """Return the amount as the fit check compares it: thousandths of CPUs, else whole units; both rounded up."""
    return quantities.milli(nano) if name == CPU else quantities.value(nano)

"""What a fix may turn: the amounts of a pod that the kubelet places, with the values worth trying for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from webhook.core import supply
from webhook.core.accelerators import Catalogue
from webhook.core.change import Change, setting
from webhook.core.containers import Container, Kind, Pod, visit
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.quantities import (
    GI,
    MI,
    MILLI_IN_NANO,
    NANO,
    InvalidQuantityError,
    format_bytes,
    format_cpu,
    is_whole,
    milli,
    parse,
    value,
)
from webhook.core.resource_names import CPU, MEMORY, is_memory, page_size

OTHERS_CPU: Final = 500 * MILLI_IN_NANO
OTHERS_MEMORY: Final = GI * NANO
"""What a container without devices is offered where it names nothing: too little to matter for the placement."""

_EVENED_OUT: Final = 0.05
"""Making request and limit equal counts as a small change: it is about the form of the pod, not its size."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One resource of one container, with the amounts worth trying. Amounts are nano units.

    Attributes:
        present: what the container asks now.
        least: the least that still makes sense; 0: the container can do without it.
        unit: amounts between are multiples of it.
        guesses: amounts below the present one, largest first, that are likely limits.
        rounded_up: amounts above it to which a number that is not whole could be rounded.
    """

    container: Container
    resource: str
    present: int
    least: int
    unit: int
    guesses: tuple[int, ...] = ()
    rounded_up: tuple[int, ...] = ()

    def __hash__(self) -> int:
        return hash((self.container.path, self.resource))

    def to(self, amount: int) -> Change:
        """Return the change to another amount."""
        size = abs(self.present - amount) / self.present
        return setting(self.container, self.resource, written(self.resource, amount), size)

    def between(self, low: int, high: int) -> int | None:
        """Return an amount about halfway, None where none is left."""
        middle = (low + high) // 2 // self.unit * self.unit
        return middle if low < middle < high else None


def written(resource: str, amount: int) -> str:
    """Return an amount as an author writes it; nothing at all for zero."""
    if not amount:
        return ""
    if resource == CPU:
        return format_cpu(milli(amount))
    return format_bytes(value(amount)) if is_memory(resource) else str(value(amount))


def amount_of(container: Container, resource: str) -> int:
    """Return what a container asks of a resource: its request, by default its limit; 0 where neither can be read."""
    for field in ("requests", "limits"):
        if resource in container.quantities(field):
            return _parsed(container.quantities(field)[resource])
    return 0


def _uneven(container: Container, resource: str) -> bool:
    """Tell whether the limit is not the request: making them equal comes first, see `missing_limits`."""
    request, limit = (container.quantities(field).get(resource) for field in ("requests", "limits"))
    return request is not None and limit is not None and _parsed(request) != _parsed(limit)


def _parsed(quantity: object) -> int:
    try:
        return max(parse(quantity), 0)
    except InvalidQuantityError:
        return 0


def find(pod: Pod, node: NodeKubelet, catalogue: Catalogue) -> tuple[Knob, ...]:
    """Return the pod's knobs on one class: accelerators first, they are what the author wants most; then NICs, memory, CPUs."""
    everything = [knob for container in visit(pod) for knob in _of(container, pod, node, catalogue)]
    return tuple(sorted(everything, key=lambda knob: _rank(knob.resource, catalogue)))


def _rank(resource: str, catalogue: Catalogue) -> int:
    if resource == CPU:
        return 3
    if is_memory(resource):
        return 2
    entry = catalogue.find(resource)
    return 0 if entry is not None and entry.is_accelerator else 1


def _of(container: Container, pod: Pod, node: NodeKubelet, catalogue: Catalogue) -> Iterator[Knob]:
    names = dict.fromkeys((*container.quantities("limits"), *container.quantities("requests")))
    for resource in names:
        present = amount_of(container, resource)
        if not present or _uneven(container, resource):
            continue
        if resource == CPU:
            yield _cpu(container, present, pod, node)
        elif is_memory(resource):
            yield _memory(container, resource, present, pod, node)
        elif resource in node.machine.devices:
            least = NANO if _rank(resource, catalogue) == 0 else 0
            yield Knob(container, resource, present, min(least, present), NANO, _guesses(container, resource, pod, node, NANO))


def _cpu(container: Container, present: int, pod: Pod, node: NodeKubelet) -> Knob:
    width = smt_width(node) * NANO
    guesses = list(_guesses(container, CPU, pod, node, width))
    if is_whole(present) and not has_devices(container, node):
        # Just below a whole number it runs in the shared pool and takes no CPUs from the devices' NUMA node.
        guesses.insert(0, present - MILLI_IN_NANO)
    up = -(-present // width) * width
    if up != present:
        guesses.append(up - width)
    candidates = tuple(sorted({guess for guess in guesses if guess > 0}, reverse=True))
    least = min(width, present)
    if is_whole(least) and least % width:
        # Too few for a core of its own, but some of the shared pool will do.
        least -= MILLI_IN_NANO
    return Knob(container, CPU, present, least, width, candidates, (up,) if up != present else ())


def _memory(container: Container, resource: str, present: int, pod: Pod, node: NodeKubelet) -> Knob:
    if resource != MEMORY:
        unit = (page_size(resource) or MI) * NANO
        return Knob(container, resource, present, 0, unit, _guesses(container, resource, pod, node, unit))
    unit = (GI if present >= 2 * GI * NANO else MI) * NANO
    return Knob(container, MEMORY, present, min(unit, present), unit, _guesses(container, MEMORY, pod, node, unit))


def smt_width(node: NodeKubelet) -> int:
    """Return what CPUs of a container's own come in multiples of."""
    return node.machine.cpu_topology.threads_per_core if node.config.cpu_options.full_pcpus_only else 1


def _guesses(container: Container, resource: str, pod: Pod, node: NodeKubelet, unit: int) -> tuple[int, ...]:
    """Return the NUMA nodes' capacities, and what they leave beside the pod's other containers, largest first."""
    capacities = set(supply.per_numa_node(node, resource).values())
    running = (c for c in visit(pod) if c.kind is not Kind.INIT and c.path != container.path)
    others = sum(amount_of(c, resource) for c in running) if capacities else 0
    offers = capacities | {capacity - others for capacity in capacities}
    return tuple(sorted({offer // unit * unit for offer in offers if offer >= unit}, reverse=True))


def has_devices(container: Container, node: NodeKubelet) -> bool:
    """Tell whether a container asks for devices whose NUMA nodes the class's kubelet knows."""
    limits = container.quantities("limits")
    return any(any(g.mask for g in node.machine.devices.get(name, ())) and _parsed(q) for name, q in limits.items())


def missing_limits(pod: Pod, node: NodeKubelet) -> tuple[Change, ...]:
    """Return what would have to be filled in for the pod to be Guaranteed; empty: it is, or it has pod-level resources.

    The kubelet gives CPUs and memory of its own only to pods of which every container has CPU and memory with request equal to
    limit (`pkg/apis/core/helper/qos/qos.go`).
    """
    if (pod.get("spec") or {}).get("resources"):
        return ()
    return tuple(_gaps(visit(pod), node))


def _gaps(containers: Iterable[Container], node: NodeKubelet) -> Iterator[Change]:
    for container in containers:
        for resource in (CPU, MEMORY):
            if (change := _evened_out(container, resource, node)) is not None:
                yield change


def _evened_out(container: Container, resource: str, node: NodeKubelet) -> Change | None:
    """Return the change that makes request and limit equal: a limit stays, a missing one becomes the request."""
    request, limit = (container.quantities(field).get(resource) for field in ("requests", "limits"))
    asked = {field: _parsed(quantity) for field, quantity in (("requests", request), ("limits", limit)) if quantity is not None}
    if limit is not None and len(set(asked.values())) == 1:
        return None
    wanted = asked.get("limits", asked.get("requests")) or _share(container, resource, node)
    amount = _exclusive_or_shared(container, wanted, asked.get("requests", 0), node) if resource == CPU else wanted
    # A request that is missing needs no writing: the API server takes it from the limit.
    now = {"requests": amount, "limits": None, **asked}
    fields = tuple(field for field in ("requests", "limits") if now[field] != amount)
    present = (limit if fields[-1] == "limits" else request) or ""
    text = written(resource, amount)
    return Change(container.name, container.path, fields, resource, str(present), text, _EVENED_OUT, evens_out=True)


def _exclusive_or_shared(container: Container, wanted: int, least: int, node: NodeKubelet) -> int:
    """Return CPUs that the kubelet takes: whole cores beside devices; elsewhere what is no whole core is shared."""
    width = smt_width(node) * NANO
    if container.kind is not Kind.INIT and has_devices(container, node):
        lower = wanted // width * width
        return lower if lower >= max(least, width) else -(-wanted // width) * width
    return wanted - MILLI_IN_NANO if is_whole(wanted) and wanted % width else wanted


def _share(container: Container, resource: str, node: NodeKubelet) -> int:
    """Return a NUMA node's part for a container's devices, or a little for a container without devices."""
    unit = smt_width(node) * NANO if resource == CPU else GI * NANO
    parts = list(_parts(container, resource, node))
    if not parts:
        return OTHERS_CPU if resource == CPU else OTHERS_MEMORY
    return max(min(parts) // unit * unit, unit)


def _parts(container: Container, resource: str, node: NodeKubelet) -> Iterator[int]:
    for name, quantity in container.quantities("limits").items():
        there = supply.per_numa_node(node, name)
        most = max(there.values(), default=0)
        asked = _parsed(quantity)
        if most and asked:
            offers = supply.per_numa_node(node, resource)
            yield from (offers[cell] * min(asked, most) // most for cell, count in there.items() if count and cell in offers)

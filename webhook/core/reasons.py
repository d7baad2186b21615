"""Why one class does not align a pod: a short stable word, and a sentence with the numbers.

The words are the kubelet's own where it refuses (`TopologyAffinityError`, ...) and the gaps' where it admits (`SharedCPUs`, ...).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from webhook.core import supply, wording
from webhook.core.change import Change
from webhook.core.containers import Container, Pod, visit
from webhook.core.dra.served import CLAIMED
from webhook.core.fixes import Diagnosis
from webhook.core.knobs import Knob, amount_of
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.kubelet.totals import pod_total
from webhook.core.quantities import is_whole, parse
from webhook.core.resource_names import CPU, is_memory
from webhook.core.shape.scene import is_pod_level
from webhook.core.verdict import Gap, Outcome, Verdict
from webhook.core.widening import nodes_for_devices

UNALIGNED: Final = "would run unaligned: "
"""What the first clause begins with where the kubelet admits the pod."""

DOES_NOT_START: Final = "KubeletDoesNotStart"
UNKNOWN: Final = "Unknown"
SHARED_CPUS: Final = "SharedCPUs"
TOPOLOGY_AFFINITY_ERROR: Final = "TopologyAffinityError"
HAMI_LACKS_DEVICES: Final = "NodeInsufficientDevice"
HAMI_APART: Final = "HamiDevicesApart"

PLAIN: Final[Mapping[str, str]] = {
    "TopologyAffinityError": "the kubelet finds no NUMA node, or set of them, that serves all that the pod asks",
    "SMTAlignmentError": "the kubelet gives out whole cores only",
    "UnexpectedAdmissionError": "the kubelet cannot allocate what the pod asks",
    "EmptyPodSharedPoolError": "no CPU or memory of the pod is left for its containers without CPUs of their own",
    "PodLevelResourcesNotSupported": "the kubelet refuses spec.resources: its gate PodLevelResources is off",
    "NodeInsufficientDevice": "HAMi's scheduler finds no node with so many cards",
    "KubeletPanic": "the kubelet crashes or hangs when it admits this pod",
    "Invalid": "the API server refuses the pod",
}
"""What the kubelet's words mean, for where the model gives no better account."""

POD_LEVEL: Final = (
    "spec.resources gives no container CPUs of its own on these nodes (their gate PodLevelResourceManagers is off); "
    "remove it, and write limits for each container"
)

_LISTED_NODES: Final = 4


@dataclass(frozen=True, slots=True)
class Why:
    """Why one class does not align a pod.

    Attributes:
        word: the stable word.
        container: at which it strikes; empty where it is the pod's or the class's matter.
        clauses: what is wrong, a clause for each thing, with numbers and units.
    """

    word: str
    container: str
    clauses: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return all clauses on one line."""
        return "; ".join(self.clauses)


def word(verdict: Verdict) -> str:
    """Return the stable word of a verdict; empty where the pod is aligned."""
    if verdict.start is not None:
        return DOES_NOT_START
    if verdict.outcome is Outcome.UNKNOWN:
        return UNKNOWN
    if not verdict.admitted:
        return verdict.reason
    return verdict.gaps[0].reason if verdict.gaps else ""


def why(pod: Pod, verdict: Verdict, node: NodeKubelet, diagnosis: Diagnosis) -> Why:
    """Return why the class does not align the pod, with numbers and units."""
    found = word(verdict)
    if found == DOES_NOT_START:
        return Why(found, "", (f"its kubelet does not start: {verdict.start}",))
    if found == UNKNOWN:
        return Why(found, "", (f"no verdict: {verdict.unknown or 'the kubelet itself leaves it to chance'}",))
    if found == CLAIMED:
        return Why(found, "", tuple(dict.fromkeys(gap.detail for gap in verdict.gaps if gap.reason == CLAIMED)))
    clauses = tuple(dict.fromkeys(_clauses(pod, verdict, node, diagnosis))) or (_own_words(verdict),)
    first = f"{UNALIGNED}{clauses[0]}" if verdict.admitted else clauses[0]
    return Why(found, _container(verdict, diagnosis), (first, *clauses[1:]))


def _container(verdict: Verdict, diagnosis: Diagnosis) -> str:
    if diagnosis.blamed:
        return diagnosis.blamed[0].container.name
    if diagnosis.missing and diagnosis.fixes:
        return diagnosis.missing[0].container
    return verdict.container or next((gap.container for gap in verdict.gaps), "")


def _own_words(verdict: Verdict) -> str:
    if verdict.admitted:
        return "; ".join(_gap(gap) for gap in verdict.gaps[:2]) or "the kubelet does not keep it on one NUMA node"
    plain = PLAIN.get(verdict.reason, verdict.reason)
    says_more = verdict.message and verdict.reason != TOPOLOGY_AFFINITY_ERROR
    return f"{plain} ({verdict.message})" if says_more else plain


def _gap(gap: Gap) -> str:
    return f"{gap.container}: {gap.detail}" if gap.container else gap.detail


def _clauses(pod: Pod, verdict: Verdict, node: NodeKubelet, diagnosis: Diagnosis) -> Iterator[str]:
    if word(verdict) == SHARED_CPUS and is_pod_level(pod) and "PodLevelResourceManagers" not in node.gates:
        yield POD_LEVEL
    if diagnosis.widened:
        yield _too_narrow(diagnosis.widened, pod, node)
    for knob in () if diagnosis.widened else diagnosis.blamed or _surely(pod, node):
        yield _of_hami(knob, verdict) or _clause(knob, diagnosis.blamed, pod, verdict, node) or _own_words(verdict)
    evened_out = [change for fix in diagnosis.fixes[:1] for change in fix.changes if change.evens_out]
    if diagnosis.missing and evened_out:
        yield not_guaranteed(evened_out)


def _surely(pod: Pod, node: NodeKubelet) -> tuple[Knob, ...]:
    """Where no change was found, what no change of another resource could heal: more than there is where it must all be."""
    beyond: dict[str, Knob] = {}
    for container in visit(pod):
        for name in dict.fromkeys((*container.quantities("limits"), *container.quantities("requests"))):
            knob = Knob(container, name, amount_of(container, name), 0, 1)
            if knob.present and _is_beyond(_Demand.of(knob, pod, node), name, node):
                beyond.setdefault(name, knob)
    return tuple(beyond.values())


def _is_beyond(demand: _Demand, resource: str, node: NodeKubelet) -> bool:
    """Tell whether the node has not enough, or no NUMA node of it where all devices must be on one."""
    whole = supply.whole_node(node, resource)
    if whole is not None and demand.total > whole:
        return True
    groups = node.machine.devices.get(resource, ())
    if node.config.topology_policy != "single-numa-node" or not groups or not all(group.mask for group in groups):
        return False
    return demand.amount > max(supply.per_numa_node(node, resource).values())


def _of_hami(knob: Knob, verdict: Verdict) -> str:
    """Return what HAMi has against the devices; it counts cards where the kubelet counts parts of them."""
    if "/" not in knob.resource:
        return ""
    if verdict.reason == HAMI_LACKS_DEVICES:
        return verdict.message
    name = knob.container.name
    return next((f"{name}: {g.detail}" for g in verdict.gaps if g.reason == HAMI_APART and g.container == name), "")


def _clause(knob: Knob, blamed: Sequence[Knob], pod: Pod, verdict: Verdict, node: NodeKubelet) -> str:
    """Return what is wrong with one amount; empty where the numbers do not show it."""
    demand = _Demand.of(knob, pod, node)
    whole = supply.whole_node(node, knob.resource) or 0
    there = supply.per_numa_node(node, knob.resource)
    width = node.machine.cpu_topology.threads_per_core
    if demand.total > whole:
        return _beyond_node(demand, knob.resource, whole)
    if there and demand.amount > max(there.values()):
        return _beyond(demand, knob.resource, there)
    if knob.resource == CPU and knob.rounded_up and is_whole(knob.present):
        return f"{knob.container.name} asks {wording.amount(CPU, knob.present)}; these nodes give out whole cores of {width} CPUs"
    if knob.resource == CPU and knob.rounded_up and verdict.admitted:
        return f"{knob.container.name} asks {wording.amount(CPU, knob.present)}; only whole CPUs are a container's own"
    return _conflict(demand, knob, blamed, pod, node)


def _beyond_node(demand: _Demand, resource: str, whole: int) -> str:
    asked = wording.amount(resource, demand.total)
    who = f"the pod ({demand.parts}) asks {asked} in all" if demand.parts else f"{demand.who} asks {asked}"
    return f"{who}; {_whole(resource, whole)}"


def _whole(resource: str, whole: int) -> str:
    if not whole:
        return "these nodes have none"
    verb, tail = ("leaves", " to pods") if resource == CPU or is_memory(resource) else ("has", "")
    return f"a node {verb} {wording.bare(resource, whole)}{tail}"


@dataclass(frozen=True, slots=True)
class _Demand:
    """Who asks how much of a resource at one place: the pod under pod scope, else the container.

    Attributes:
        total: what the whole pod asks.
        parts: how the containers share in the total, for people; empty where only one asks.
    """

    who: str
    amount: int
    total: int
    parts: str

    @classmethod
    def of(cls, knob: Knob, pod: Pod, node: NodeKubelet) -> _Demand:
        asked = [(c, amount) for c in visit(pod) if (amount := amount_of(c, knob.resource))]
        # A container with a fraction of a CPU runs in the shared pool, and takes nothing from a NUMA node.
        placed = [(c, amount) for c, amount in asked if knob.resource != CPU or is_whole(amount) or c.path == knob.container.path]
        total = _together(asked, knob.resource)
        parts = _parts(asked, knob.resource)
        if node.config.topology_scope == "pod" and len(placed) > 1:
            return cls(f"the pod ({_parts(placed, knob.resource)})", _together(placed, knob.resource), total, parts)
        return cls(knob.container.name, knob.present, total, parts)


_Asked = Sequence[tuple[Container, int]]


def _together(asked: _Asked, resource: str) -> int:
    return pod_total((container.kind, {resource: amount}) for container, amount in asked).get(resource, 0)


def _parts(asked: _Asked, resource: str) -> str:
    if len(asked) < 2:
        return ""
    return wording.some([f"{container.name} {wording.bare(resource, amount)}" for container, amount in asked])


def _beyond(demand: _Demand, resource: str, there: Mapping[int, int]) -> str:
    asked = wording.amount(resource, demand.amount)
    if resource == CPU or is_memory(resource):
        return f"{demand.who} asks {asked}; {wording.numa_nodes(there, resource, 'leaves', ' to pods')}"
    has = wording.numa_nodes(there, resource, "has").replace("each NUMA node", "each")
    return f"{demand.who} needs {asked} on one NUMA node; {has}"


def _conflict(demand: _Demand, knob: Knob, blamed: Sequence[Knob], pod: Pod, node: NodeKubelet) -> str:
    """Each resource would fit somewhere, but not all of them on the same NUMA node, or not after the other containers."""
    same = [other.resource for other in blamed if other.container.path == knob.container.path]
    placed = [name for name in _placed(knob.container, node) if name in same or "/" in name or name == knob.resource]
    wanted = {name: _Demand.of(_like(knob, name), pod, node).amount for name in placed}
    asked = wording.joined([wording.amount(name, wanted[name]) for name in placed])
    offers = {name: supply.per_numa_node(node, name) for name in placed}
    cells = [cell.id for cell in node.machine.cells if cell.cpus]
    if any(all(offers[name].get(cell, 0) >= wanted[name] for name in placed) for cell in cells):
        alone = len([c for c in visit(pod) if _placed(c, node)]) == 1
        return "" if alone else f"{demand.who} asks {asked}; the pod's other containers leave no NUMA node with that"
    if len(cells) > _LISTED_NODES:
        return f"{demand.who} asks {asked}; no NUMA node has them all"
    listed = (
        f"node {cell} has {wording.joined([wording.amount(name, offers[name].get(cell, 0)) for name in placed])}"
        for cell in cells
    )
    return f"{demand.who} asks {asked} of one NUMA node; {', '.join(listed)}"


def _too_narrow(changes: Sequence[Change], pod: Pod, node: NodeKubelet) -> str:
    """The devices need several NUMA nodes, but CPUs or memory fewer, and there are no hints for both that agree."""
    container = next(each for each in visit(pod) if each.path == changes[0].where)
    needed = nodes_for_devices(container, node)
    devices = [name for name in container.quantities("limits") if "/" in name and supply.per_numa_node(node, name)]
    asked = wording.joined([wording.amount(name, amount_of(container, name)) for name in devices])
    fewer = wording.joined([wording.amount(each.resource, parse(each.present or each.value)) for each in changes])
    fewer += " only 1" if needed == 2 else " fewer"
    return f"{container.name}'s {asked} need {needed} NUMA nodes, its {fewer}; the kubelet aligns them only if all need as many"


def _like(knob: Knob, resource: str) -> Knob:
    return Knob(knob.container, resource, amount_of(knob.container, resource), 0, 1)


def _placed(container: Container, node: NodeKubelet) -> list[str]:
    names = dict.fromkeys((*container.quantities("limits"), *container.quantities("requests")))
    return [name for name in names if amount_of(container, name) and supply.per_numa_node(node, name)]


def not_guaranteed(missing: Sequence[Change]) -> str:
    """Return whose limits keep the pod from CPUs of its own: `istio-proxy has no CPU limit, so ...`."""
    first = missing[0].container
    mine = [change for change in missing if change.container == first]
    absent = [wording.noun(change.resource) for change in mine if not change.present]
    uneven = [wording.noun(change.resource) for change in mine if change.present]
    faults = [f"no {' and no '.join(absent)} limit"] if absent else []
    faults += [f"a {wording.joined(uneven)} request below its limit"] if uneven else []
    others = len({change.container for change in missing}) - 1
    also = f" (and {others} more like it)" if others else ""
    return f"{first} has {wording.joined(faults)}{also}, so the pod is not Guaranteed and gets no CPUs of its own"

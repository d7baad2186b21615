"""Pods on reference machines with the verdict that the kubelet's managers give, as plain data.

`cases()` yields every `Case`; a model of the kubelet can be checked against them without the oracle. An expectation
is written as the code of the outcome and, where the pod is admitted, each container's mask: `A a{0} b{0,1} c{*}`
(`{*}`: no mask). Codes are the keys of `REASONS`; `start` means that the class's kubelet does not start.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

JSON = dict[str, Any]

REASONS = {
    "A": "",
    "R": "TopologyAffinityError",
    "S": "SMTAlignmentError",
    "U": "UnexpectedAdmissionError",
    "P": "TopologyAffinityError",  # pod scope, pod-level resources
    "X": "EmptyPodSharedPoolError",
    "L": "PodLevelResourcesNotSupported",
    "panic": "KubeletPanic",
    "start": "",
    "Invalid": "Invalid",
    "OutOfcpu": "OutOfcpu",
    "OutOfmemory": "OutOfmemory",
}

SINGLE, RESTRICTED, BEST_EFFORT, NONE = "single-numa-node", "restricted", "best-effort", "none"
POLICIES = (SINGLE, RESTRICTED, BEST_EFFORT)
GPU, NIC = "nvidia.com/gpu", "nvidia.com/hostdev"


@dataclass(frozen=True, slots=True)
class Case:
    """One pod on one node class, and what the kubelet makes of it."""

    name: str
    node_class: JSON
    pod: JSON
    code: str
    masks: dict[str, list[int] | None] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """The reason on the refused pod; empty when it is admitted or the kubelet does not start."""
        return REASONS[self.code]

    @property
    def admitted(self) -> bool:
        """Whether the pod runs."""
        return self.code == "A"

    @property
    def starts(self) -> bool:
        """Whether the class's kubelet starts at all."""
        return self.code != "start"


def expectation(text: str) -> tuple[str, dict[str, list[int] | None]]:
    """Read `A a{0} b{*}` into the code and the masks."""
    code, _, rest = text.partition(" ")
    return code, {name: _mask(inside) for name, inside in re.findall(r"(\w+)\{([^}]*)\}", rest)}


def _mask(inside: str) -> list[int] | None:
    return None if inside == "*" else [int(number) for number in inside.split(",")]


# --- machines and kubelets -------------------------------------------------------------------------------------------


def numa(index: int, cpus: str | int, memory: str, **more: Any) -> JSON:
    """One NUMA node of a topology."""
    return {"id": index, "cpus": cpus, "memory": memory, **more}


def kubelet(policy: str = SINGLE, scope: str = "pod", *, memory: bool = True, cpu: str = "static", **more: Any) -> JSON:
    """A KubeletConfiguration that keeps back 4 CPUs and 12388Mi, half of it on each of NUMA nodes 0 and 1."""
    config: JSON = {
        "cpuManagerPolicy": cpu,
        "topologyManagerPolicy": policy,
        "topologyManagerScope": scope,
        "kubeReserved": {"cpu": "2", "memory": "4Gi"},
        "systemReserved": {"cpu": "2", "memory": "8Gi"},
    }
    if memory:
        config["memoryManagerPolicy"] = "Static"
        config["reservedMemory"] = reserved_memory("6194Mi", "6194Mi")
    return config | more


def reserved_memory(*amounts: str) -> list[JSON]:
    """Memory kept back on NUMA nodes 0, 1, ..."""
    return [{"numaNode": index, "limits": {"memory": amount}} for index, amount in enumerate(amounts)]


def node_class(nodes: list[JSON], config: JSON, *, sockets: int = 2, threads: int = 2, **topology: Any) -> JSON:
    """A whole NodeClass document."""
    return {
        "apiVersion": "numalign.io/v1alpha1",
        "kind": "NodeClass",
        "metadata": {"name": "table"},
        "spec": {
            "selector": {"class": "table"},
            "kubernetes": "1.37",
            "topology": {"sockets": sockets, "threadsPerCore": threads, "numaNodes": nodes, **topology},
            "kubelet": config,
        },
    }


def m128(
    config: JSON, first: JSON | None = None, second: JSON | None = None, hugepages: JSON | None = None, **topology: Any
) -> JSON:
    """2 sockets of 32 cores SMT2, 256Gi and 4 GPUs on each NUMA node."""
    pages = {"hugepages": hugepages} if hugepages else {}
    return node_class(
        [
            numa(0, "0-31,64-95", "256Gi", devices=first if first is not None else {GPU: 4}, **pages),
            numa(1, "32-63,96-127", "256Gi", devices=second if second is not None else {GPU: 4}, **pages),
        ],
        config,
        **topology,
    )


def m112(config: JSON, first: JSON | None = None, second: JSON | None = None) -> JSON:
    """2 sockets of 28 cores SMT2, 256Gi and 4 GPUs on each NUMA node."""
    return node_class(
        [
            numa(0, "0-27,56-83", "256Gi", devices=first if first is not None else {GPU: 4}),
            numa(1, "28-55,84-111", "256Gi", devices=second if second is not None else {GPU: 4}),
        ],
        config,
    )


def nps4(config: JSON) -> JSON:
    """8 NUMA nodes on 2 sockets, each of 8 cores SMT2 with 96Gi and one GPU."""
    nodes = [numa(i, f"{8 * i}-{8 * i + 7},{64 + 8 * i}-{71 + 8 * i}", "96Gi", devices={GPU: 1}) for i in range(8)]
    return node_class(nodes, config)


def nine(config: JSON) -> JSON:
    """9 NUMA nodes of 4 cores."""
    return node_class([numa(i, f"{4 * i}-{4 * i + 3}", "32Gi") for i in range(9)], config, sockets=1, threads=1)


def hbm(config: JSON, gpu_node: int = 0) -> JSON:
    """CPUs and 480Gi on NUMA node 0, 96Gi and no CPU on NUMA node 1."""
    nodes = [numa(0, "0-71", "480Gi"), numa(1, "", "96Gi")]
    nodes[gpu_node]["devices"] = {GPU: 1}
    return node_class(nodes, config, sockets=1, threads=1)


# --- pods ------------------------------------------------------------------------------------------------------------


def container(name: str, cpu: str | None = "2", memory: str | None = "1Gi", gpu: int | str | None = None, **more: Any) -> JSON:
    """A container with requests = limits; `more` are further resources (`nic`, `pages`) or `sidecar=True`."""
    sidecar = more.pop("sidecar", False)
    names = {"nic": NIC, "pages": "hugepages-1Gi", "foreign": "example.com/unknown", "odd_pages": "hugepages-64Ki"}
    amounts = {"cpu": cpu, "memory": memory, GPU: gpu} | {names[key]: value for key, value in more.items()}
    limits = {key: str(value) for key, value in amounts.items() if value is not None}
    made: JSON = {
        "name": name,
        "image": "registry.example/work",
        "resources": {"limits": limits, "requests": dict(limits)},
    }
    return made | ({"restartPolicy": "Always"} if sidecar else {})


def pod(*apps: JSON, init: tuple[JSON, ...] = (), resources: JSON | None = None) -> JSON:
    """A pod; `resources` are pod-level ones, requests = limits."""
    spec: JSON = {"containers": list(apps)}
    if init:
        spec["initContainers"] = list(init)
    if resources:
        spec["resources"] = {"limits": dict(resources), "requests": dict(resources)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "work", "namespace": "default"}, "spec": spec}


def burstable(name: str, request: str, limit: str, gpu: int) -> JSON:
    """A container whose CPU limit is above its request."""
    made = container(name, request, "64Gi", gpu)
    made["resources"]["limits"]["cpu"] = limit
    return made


# --- one app container: CPUs against GPUs against memory ---------------------------------------------------------------

_GRID_112 = """
cpus 8   gpus 1,2,4   A a{0}  | A a{0}   | A a{0}
cpus 8   gpus 5,6,8   R       | R        | A a{0,1}
cpus 56  gpus 1,2,4   A a{1}  | A a{1}   | A a{1}
cpus 56  gpus 5,6,8   R       | R        | A a{0,1}
cpus 60  gpus 1,2,4   R       | R        | A a{0,1}
cpus 60  gpus 5,6,8   R       | A a{0,1} | A a{0,1}
cpus 112 gpus 1,2,4   R       | R        | U
cpus 112 gpus 5,6,8   R       | R        | U
"""
_GRID_112_LISTED = """
cpus 56  gpus 1,2,4   R       | R        | A a{0,1}
cpus 56  gpus 5,6,8   R       | R        | A a{0,1}
cpus 60  gpus 1,2,4   R       | R        | A a{0,1}
cpus 60  gpus 5,6,8   R       | A a{0,1} | A a{0,1}
cpus 112 gpus 1,5,8   R       | R        | U
"""
_GRID_128 = """
cpus 8,56,60 gpus 1,2,4 A a{0} | A a{0}   | A a{0}
cpus 8,56,60 gpus 5,6,8 R      | R        | A a{0,1}
cpus 112     gpus 1,2,4 R      | R        | A a{0,1}
cpus 112     gpus 5,6,8 R      | A a{0,1} | A a{0,1}
"""
_GRID_128_64GI = """
cpus 8,56,60 gpus 1,2,4 A a{0} | A a{0}   | A a{0}
cpus 8,56,60 gpus 5,6,8 R      | R        | A a{0,1}
cpus 112     gpus 1,2,4 R      | R        | A a{0,1}
cpus 112     gpus 5,6,8 R      | R        | A a{0,1}
"""
_GRID_128_300GI = """
cpus 8,56,60 gpus 1,2,4 R      | R        | A a{0,1}
cpus 8,56,60 gpus 5,6,8 R      | R        | A a{0,1}
cpus 112     gpus 1,2,4 R      | R        | A a{0,1}
cpus 112     gpus 5,6,8 R      | A a{0,1} | A a{0,1}
"""


def _grid(name: str, text: str, machine: Callable[[JSON], JSON], amount: str, static: bool, **config: Any) -> Iterator[Case]:
    for cpus, gpus, outcomes in re.findall(r"cpus (\S+)\s+gpus (\S+)\s+(.*)", text):
        for cpu, gpu, (policy, outcome), scope in product(
            cpus.split(","), gpus.split(","), zip(POLICIES, outcomes.split("|"), strict=True), ("pod", "container")
        ):
            yield Case(
                f"{name} {cpu} CPU {gpu} GPU {policy} {scope}",
                machine(kubelet(policy, scope, memory=static, **config)),
                pod(container("a", cpu, amount, int(gpu))),
                *expectation(outcome.strip()),
            )


def grid_cases() -> Iterator[Case]:
    """One app container on two NUMA nodes: every width of CPUs, GPUs and memory."""
    yield from _grid("M112", _GRID_112, m112, "1Gi", static=False)
    yield from _grid("M112 listed", _GRID_112_LISTED, m112, "1Gi", static=False, reservedSystemCPUs="0,56,28,84")
    yield from _grid("M128", _GRID_128, m128, "1Gi", static=False)
    yield from _grid("M128 64Gi", _GRID_128_64GI, m128, "64Gi", static=True)
    yield from _grid("M128 300Gi", _GRID_128_300GI, m128, "300Gi", static=True)


# --- every policy and scope --------------------------------------------------------------------------------------------

FULL: JSON = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
PLR: JSON = {"featureGates": {"PodLevelResourceManagers": True}}
PAGES: JSON = {"hugepages": {"1Gi": "8Gi"}}
NO_GPU: JSON = {}

# name: (pod, kubelet fields, machine fields, "single/pod | single/container | restricted/pod | ... | best-effort/container")
_MATRIX: dict[str, tuple[JSON, JSON, JSON, str]] = {
    "E01 8 CPU 64Gi 2 GPU": (pod(container("a", "8", "64Gi", 2)), {}, {}, "A a{0} | A a{0} | A a{0} | A a{0} | A a{0} | A a{0}"),
    "E02 two of 40 CPU 2 GPU": (
        pod(container("a", "40", "64Gi", 2), container("b", "40", "64Gi", 2)),
        {},
        {},
        "R | A a{0} b{1} | R | A a{0} b{1} | A a{0,1} b{0,1} | A a{0} b{1}",
    ),
    "E03 two of 30 CPU 4 GPU": (
        pod(container("a", "30", "64Gi", 4), container("b", "30", "64Gi", 4)),
        {},
        {},
        "R | A a{0} b{1} | R | A a{0} b{1} | A a{0,1} b{0,1} | A a{0} b{1}",
    ),
    "E04 fraction of a CPU": (
        pod(container("a", "7.5", "64Gi", 4)),
        {},
        {},
        "A a{0} | A a{0} | A a{0} | A a{0} | A a{0} | A a{0}",
    ),
    "E05 burstable 4 GPU": (pod(burstable("a", "8", "16", 4)), {}, {}, "A a{0} | A a{0} | A a{0} | A a{0} | A a{0} | A a{0}"),
    "E06 burstable 5 GPU": (pod(burstable("a", "8", "16", 5)), {}, {}, "R | R | A a{0,1} | A a{0,1} | A a{0,1} | A a{0,1}"),
    "E07 best-effort class 5 GPU": (
        pod(container("a", None, None, 5)),
        {},
        {},
        "R | R | A a{0,1} | A a{0,1} | A a{0,1} | A a{0,1}",
    ),
    "E08 fraction 5 GPU, memory None": (
        pod(container("a", "7.5", "64Gi", 5)),
        {"memory": False},
        {},
        "R | R | A a{0,1} | A a{0,1} | A a{0,1} | A a{0,1}",
    ),
    "E09 zero GPU 112 CPU, memory None": (
        pod(container("a", "112", "64Gi", 0)),
        {"memory": False},
        {},
        "R | R | R | R | A a{0,1} | A a{0,1}",
    ),
    "E10 112 CPU, memory None": (
        pod(container("a", "112", "64Gi")),
        {"memory": False},
        {},
        "R | R | A a{0,1} | A a{0,1} | A a{0,1} | A a{0,1}",
    ),
    "E11 112 CPU 300Gi 8 GPU": (
        pod(container("a", "112", "300Gi", 8)),
        {},
        {},
        "R | R | A a{0,1} | A a{0,1} | A a{0,1} | A a{0,1}",
    ),
    "E12 112 CPU 64Gi 8 GPU": (pod(container("a", "112", "64Gi", 8)), {}, {}, "R | R | R | R | A a{0,1} | A a{0,1}"),
    "E13 init 60 app 60, whole cores": (
        pod(container("a", "60"), init=(container("i", "60"),)),
        FULL,
        {},
        "A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0}",
    ),
    "E14 init 64 app 64, whole cores": (
        pod(container("a", "64"), init=(container("i", "64"),)),
        FULL,
        {},
        "S | S | S | S | S | S",
    ),
    "E14b init 64 app 64": (
        pod(container("a", "64"), init=(container("i", "64"),)),
        {},
        {},
        "A i{1} a{1} | A i{1} a{1} | A i{1} a{1} | A i{1} a{1} | A i{1} a{1} | A i{1} a{1}",
    ),
    "E15 sidecar 40 app 40": (
        pod(container("a", "40"), init=(container("s", "40", sidecar=True),)),
        {},
        {},
        "R | A s{0} a{1} | R | A s{0} a{1} | A s{0,1} a{0,1} | A s{0} a{1}",
    ),
    "E16 sidecar 4 init 60 app 56": (
        pod(container("a", "56"), init=(container("s", "4", sidecar=True), container("i", "60"))),
        {},
        {},
        "A s{1} i{1} a{1} | A s{0} i{1} a{1} | A s{1} i{1} a{1} | A s{0} i{1} a{1} | A s{1} i{1} a{1} | A s{0} i{1} a{1}",
    ),
    "E17 init 2 GPU app 4 GPU": (
        pod(container("a", gpu=4), init=(container("i", gpu=2),)),
        {},
        {},
        "A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0}",
    ),
    "E18 small init, wide app": (
        pod(container("a", "112", "300Gi", 8), init=(container("i", "8", "1Gi", 1),)),
        {},
        {},
        "R | R | A i{0,1} a{0,1} | U | A i{0,1} a{0,1} | U",
    ),
    "E19 wide app, small app": (
        pod(container("a", "112", "300Gi"), container("b", "2", "1Gi")),
        {},
        {},
        "R | R | A a{0,1} b{0,1} | R | A a{0,1} b{0,1} | A a{0,1} b{0,1}",
    ),
    "E20 more memory than the node": (pod(container("a", "8", "600Gi")), {}, {}, "U | U | U | U | U | U"),
    "E21 more than a NUMA node leaves": (pod(container("a", "8", "255Gi")), {}, {}, "R | R | R | R | A a{0,1} | A a{0,1}"),
    "E22 odd CPUs, whole cores": (pod(container("a", "7")), FULL, {}, "S | S | S | S | S | S"),
    "E23 7 and 9 CPUs, whole cores": (pod(container("a", "7"), container("b", "9")), FULL, {}, "S | S | S | S | S | S"),
    "E24 9 GPU of 8": (pod(container("a", "8", "64Gi", 9)), {}, {}, "R | R | R | R | U | U"),
    "E25 GPU without topology": (
        pod(container("a", "8", "64Gi", 5)),
        {},
        {"first": NO_GPU, "second": NO_GPU, "devicesWithoutTopology": {GPU: 8}},
        "A a{0} | A a{0} | A a{0} | A a{0} | A a{0} | A a{0}",
    ),
    "E26 GPU on both NUMA nodes": (
        pod(container("a", "8", "64Gi", 5)),
        {},
        {"first": NO_GPU, "second": NO_GPU, "devicesOnSeveralNodes": [{"resource": GPU, "count": 8, "numaNodes": [0, 1]}]},
        "A a{0} | A a{0} | A a{0} | A a{0} | A a{0} | A a{0}",
    ),
    "E29 half the GPUs without topology": (
        pod(container("a", "8", "64Gi", 5)),
        {},
        {"second": NO_GPU, "devicesWithoutTopology": {GPU: 4}},
        "R | R | R | R | A a{0} | A a{0}",
    ),
    "E30 NIC on N1, 62 CPU": (
        pod(container("a", "62", "64Gi", 1, nic=1)),
        {},
        {"second": {GPU: 4, NIC: 1}},
        "A a{1} | A a{1} | A a{1} | A a{1} | A a{1} | A a{1}",
    ),
    "E31 NIC on N0, 62 CPU": (
        pod(container("a", "62", "64Gi", 1, nic=1)),
        {},
        {"first": {GPU: 4, NIC: 1}},
        "R | R | R | R | A a{0} | A a{0}",
    ),
    "E32 10Gi of pages": (pod(container("a", "8", "64Gi", pages="10Gi")), {}, PAGES, "R | R | R | R | A a{0,1} | A a{0,1}"),
    "E33 8Gi of pages": (
        pod(container("a", "8", "64Gi", pages="8Gi")),
        {},
        PAGES,
        "A a{0} | A a{0} | A a{0} | A a{0} | A a{0} | A a{0}",
    ),
    "E34 pod level, only shared": (
        pod(container("a", None, None, 2), container("b", None, None), resources={"cpu": "8", "memory": "64Gi"}),
        PLR,
        {},
        "A a{0} b{0} | A a{0} b{*} | A a{0} b{0} | A a{0} b{0,1} | A a{0} b{0} | A a{0} b{0,1}",
    ),
    "E35 pod level, no CPU left to share": (
        pod(container("a", "8", "32Gi"), container("b", None, None), resources={"cpu": "8", "memory": "64Gi"}),
        PLR,
        {},
        "P | A a{0} b{*} | P | A a{0} b{0,1} | X | A a{0} b{0,1}",
    ),
    "E36 pod level, wide": (
        pod(container("a", "8", "32Gi", 2), container("b", None, None), resources={"cpu": "112", "memory": "64Gi"}),
        PLR,
        {},
        "P | A a{0} b{*} | P | A a{0} b{0,1} | A a{0,1} b{0,1} | A a{0} b{0,1}",
    ),
    "E37 pod level, fraction 5 GPU": (
        pod(container("a", None, None, 5), resources={"cpu": "7.5", "memory": "64Gi"}),
        PLR,
        {},
        "P | R | P | A a{0,1} | A a{0,1} | A a{0,1}",
    ),
    "E38 pod level, no memory left to share": (
        pod(container("a", "8", "64Gi"), container("b", None, None), resources={"cpu": "16", "memory": "64Gi"}),
        PLR,
        {},
        "P | A a{0} b{*} | P | A a{0} b{0,1} | X | A a{0} b{0,1}",
    ),
    "E39 pages in init only": (
        pod(container("a", "8", "64Gi"), init=(container("i", "2", "1Gi", pages="4Gi"),)),
        {},
        PAGES,
        "A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0}",
    ),
    "E40 init 200Gi app 200Gi": (
        pod(container("a", "8", "200Gi"), init=(container("i", "8", "200Gi"),)),
        {},
        {},
        "A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0} | A i{0} a{0}",
    ),
    "E41 app 100Gi app 200Gi": (
        pod(container("a", "8", "100Gi"), container("b", "8", "200Gi")),
        {},
        {},
        "R | A a{0} b{1} | R | A a{0} b{1} | A a{0,1} b{0,1} | A a{0} b{1}",
    ),
    "E42 four of 30 CPU 1 GPU": (
        pod(*(container(name, "30", "50Gi", 1) for name in "abcd")),
        {},
        {},
        "R | A a{0} b{0} c{1} d{1} | R | A a{0} b{0} c{1} d{1} | A a{0,1} b{0,1} c{0,1} d{0,1} | A a{0} b{0} c{1} d{1}",
    ),
}


def matrix_cases() -> Iterator[Case]:
    """Pods of every kind under each policy and scope, on M128."""
    for name, (made, config, machine, outcomes) in _MATRIX.items():
        cells = product(POLICIES, ("pod", "container"))
        for (policy, scope), outcome in zip(cells, outcomes.split("|"), strict=True):
            yield Case(
                f"{name} {policy} {scope}", m128(kubelet(policy, scope, **config), **machine), made, *expectation(outcome.strip())
            )


# --- configurations and topologies -------------------------------------------------------------------------------------


def configuration_cases() -> Iterator[Case]:
    """Reservations, options and unusual machines; the kubelets that do not start."""
    yield from _reservation_cases()
    yield from _small_node_cases()
    yield from _many_node_cases()
    yield from _order_cases()
    yield from _start_cases()
    yield from _page_cases()
    yield from _other_cases()


def _three(
    name: str, machine: Callable[[JSON], JSON], made: JSON, outcomes: str, scope: str = "pod", **config: Any
) -> Iterator[Case]:
    """The outcomes under single-numa-node, restricted and best-effort, as far as given."""
    for policy, outcome in zip(POLICIES, outcomes.split("|"), strict=False):
        yield Case(f"{name} {policy} {scope}", machine(kubelet(policy, scope, **config)), made, *expectation(outcome.strip()))


def _reservation_cases() -> Iterator[Case]:
    plain: JSON = {"memory": False}
    one: JSON = {"reservedSystemCPUs": "0"}
    two: JSON = {"reservedSystemCPUs": "0,1"}
    yield from _three("F01 one thread reserved, 54 CPU", m112, pod(container("a", "54", gpu=1)), "A a{0}", **plain, **FULL, **one)
    yield from _three("F02 one thread reserved, 56 CPU", m112, pod(container("a", "56", gpu=1)), "A a{1}", **plain, **FULL, **one)
    nic = partial(m112, first={GPU: 4, NIC: 1})
    yield from _three("F03 half cores reserved", nic, pod(container("a", "54", gpu=1, nic=1)), "A a{0}", **plain, **FULL, **two)
    four: JSON = {"reservedSystemCPUs": "0,56,28,84"}
    yield from _three("F04 a core reserved on each", m112, pod(container("a", "56")), "R | R | A a{0,1}", **plain, **four)
    numeric: JSON = {"kubeReserved": {"cpu": "1500m"}, "systemReserved": {"cpu": "1"}}
    yield from _three("F05 2500m reserved, 53 CPU", m112, pod(container("a", "53")), "A a{0}", **plain, **numeric)
    yield from _three(
        "F36 distributed", m128, pod(container("a", "124")), "R | R | A a{0,1}", cpuManagerPolicyOptions=DISTRIBUTED
    )
    strict: JSON = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true", "strict-cpu-reservation": "true"}}
    yield from _three("F37 strict reservation", m128, pod(container("a", "60", gpu=4)), "A a{0}", **strict)


DISTRIBUTED: JSON = {"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"}


def _eight_reserved(memory: str = "12388Mi") -> JSON:
    return {"reservedMemory": [{"numaNode": 0, "limits": {"memory": memory}}]}


def _small_node_cases() -> Iterator[Case]:
    reserved = _eight_reserved()
    yield from _three("F06 NPS4 1 GPU", nps4, pod(container("a", "8", "32Gi", 1)), "A a{0} | A a{0} | A a{0}", **reserved)
    yield from _three("F07 NPS4 2 GPU narrow CPUs", nps4, pod(container("a", "8", "32Gi", 2)), "R | R | A a{0,1}", **reserved)
    yield from _three("F08 NPS4 2 GPU", nps4, pod(container("a", "28", "150Gi", 2)), "R | A a{0,1} | A a{0,1}", **reserved)
    wide = pod(container("a", "64", "360Gi", 4))
    yield from _three("F09 NPS4 4 GPU 64 CPU", nps4, wide, "R | A a{1,2,3,4} | A a{1,2,3,4}", **reserved)
    yield from _three(
        "F10 NPS4 4 GPU 60 CPU", nps4, pod(container("a", "60", "300Gi", 4)), "R | A a{0,1,2,3} | A a{0,1,2,3}", **reserved
    )
    socket: JSON = {
        "featureGates": {"CPUManagerPolicyAlphaOptions": True},
        "cpuManagerPolicyOptions": {"align-by-socket": "true"},
    }
    yield Case("F11 align-by-socket, single", nps4(kubelet(SINGLE, memory=False, **socket)), pod(container("a")), "start")
    narrow = pod(container("a", "8", "32Gi", 2))
    yield Case(
        "F12 align-by-socket, restricted", nps4(kubelet(RESTRICTED, memory=False, **socket)), narrow, *expectation("A a{0,1}")
    )


def _many_node_cases() -> Iterator[Case]:
    nine_nodes: JSON = {"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "9"}}
    one = pod(container("a", "1"))
    yield Case("F13 9 NUMA nodes", nine(kubelet(RESTRICTED, memory=False)), one, "start")
    yield Case("F14 9 NUMA nodes allowed", nine(kubelet(RESTRICTED, memory=False, **nine_nodes)), one, *expectation("A a{1}"))
    reserved = _eight_reserved()
    for policy in (SINGLE, RESTRICTED):
        config = kubelet(policy, **reserved)
        yield Case(f"F15 memory-only node {policy}", hbm(config), pod(container("a", "64", "400Gi", 1)), *expectation("A a{0}"))
        yield Case(f"F16 GPU on the memory-only node {policy}", hbm(config, 1), pod(container("a", "64", "80Gi", 1)), "R")
        yield Case(f"F17 memory of both {policy}", hbm(config), pod(container("a", "64", "500Gi", 1)), "R")


def _order_cases() -> Iterator[Case]:
    nailed = pod(container("a", "62", gpu=4), init=(container("i", "8", gpu=4),))
    yield Case("F18 init nails the app, pod", m128(kubelet()), nailed, *expectation("A i{1} a{1}"))
    yield Case("F18 init nails the app, container", m128(kubelet(scope="container")), nailed, "R")
    wide_init = pod(container("a", "8", nic=1), init=(container("i", "62"),))
    for scope in ("pod", "container"):
        yield Case(f"F19 wide init, NIC on N0 {scope}", m128(kubelet(scope=scope), first={GPU: 4, NIC: 1}), wide_init, "R")
    orders = {
        (1, 1, 3, 3): "R",
        (1, 3, 1, 3): "A a{0} b{0} c{1} d{1}",
        (2, 3, 3): "R",
        (1, 3, 4): "A a{0} b{0} c{1}",
        (2, 4, 2): "A a{0} b{1} c{0}",
        (3, 3, 2): "R",
    }
    for gpus, outcome in orders.items():
        made = pod(*(container(name, gpu=count) for name, count in zip("abcd", gpus, strict=False)))
        yield Case(f"F20 GPUs in order {gpus}", m128(kubelet(scope="container")), made, *expectation(outcome))
    for number, first, second in (("F38", "100", "20"), ("F39", "66", "58"), ("F40", "66", "20")):
        made = pod(container("a", first), container("b", second))
        config = kubelet(RESTRICTED, "container", memory=False)
        yield Case(f"{number} {first} then {second} CPU", m128(config), made, *expectation("A a{0,1} b{0}"))
    peak = pod(container("a", gpu=3), init=(container("s", gpu=1, sidecar=True), container("i", gpu=4)))
    yield Case("F41 peak of 5 GPU, pod", m128(kubelet()), peak, "R")
    yield Case("F42 peak of 5 GPU, container", m128(kubelet(scope="container")), peak, *expectation("A s{0} i{1} a{1}"))
    low = pod(container("a", gpu=3), init=(container("s", gpu=1, sidecar=True), container("i", gpu=3)))
    yield Case("F43 sidecar, init, app", m128(kubelet(scope="container")), low, *expectation("A s{0} i{0} a{0}"))
    group = pod(container("a", "112", "300Gi", 8), init=(container("s", "100m", "128Mi", sidecar=True),))
    yield from _three("F47 small sidecar, wide app", m128, group, "R | A s{0,1} a{0,1} | A s{0,1} a{0,1}")
    yield from _three("F47 small sidecar, wide app", m128, group, "R | U | U", scope="container")


def _start_cases() -> Iterator[Case]:
    small = pod(container("a"))
    gigabyte: JSON = {"hugepages-1Gi": "8Gi"}

    def reserving(*limits: JSON) -> JSON:
        return kubelet(reservedMemory=[{"numaNode": index, "limits": limit} for index, limit in enumerate(limits)])

    configs = {
        "F29 reservedMemory too small": reserving({"memory": "6Gi"}, {"memory": "6Gi"}),
        "F30 reservedMemory of pages only": reserving(gigabyte, gigabyte),
        "F31 reservedMemory with pages": reserving({"memory": "6194Mi"} | gigabyte, {"memory": "6194Mi"}),
        "no CPU reserved": kubelet(memory=False, kubeReserved={}, systemReserved={}),
        "memory policy in lower case": kubelet() | {"memoryManagerPolicy": "static"},
        "unknown topology policy": kubelet("single"),
        "unknown feature gate": kubelet(featureGates={"NoSuchGate": True}),
        "options that exclude each other": kubelet(
            cpuManagerPolicyOptions={"prefer-align-cpus-by-uncorecache": "true", "distribute-cpus-across-numa": "true"}
        ),
        "options with policy none": kubelet(cpu="none", **FULL),
        "reserved CPUs that do not exist": kubelet(reservedSystemCPUs="0,200"),
        "reserved hugepages": kubelet(memory=False, systemReserved={"cpu": "1", "hugepages-1Gi": "1Gi"}),
        "maxPods below zero": kubelet(maxPods=-1),
        "maxPods in words": kubelet(maxPods="many"),
        "eviction at zero": kubelet(memory=False, evictionHard={"memory.available": "0"}),
        "more reserved than there is": kubelet(memory=False, systemReserved={"cpu": "2", "memory": "600Gi"}),
    }
    for name, config in configs.items():
        yield Case(name, m128(config, hugepages={"1Gi": "16Gi"}), small, "start")


def _page_cases() -> Iterator[Case]:
    yield Case("F32 unknown page size", m128(kubelet()), pod(container("a", odd_pages="64Ki")), "panic")
    big = {"1Gi": "64Gi"}
    yield Case("F33 190Gi beside 64Gi of pages", m128(kubelet(), hugepages=big), pod(container("a", "8", "190Gi")), "R")
    fits = pod(container("a", "8", "185Gi"))
    yield Case("F34 185Gi beside 64Gi of pages", m128(kubelet(), hugepages=big), fits, *expectation("A a{0}"))
    second = [
        numa(0, "0-31,64-95", "256Gi", devices={GPU: 4}),
        numa(1, "32-63,96-127", "256Gi", devices={GPU: 4}, hugepages={"1Gi": "16Gi"}),
    ]
    machine = partial(node_class, second)
    init_only = pod(container("a", "8", gpu=2), init=(container("i", "2", pages="8Gi"),))
    yield from _three("F45 pages of N1 in init only", machine, init_only, "U | U | U")
    yield from _three("F45 pages of N1 in init only", machine, init_only, "A i{1} a{1}", scope="container")
    yield from _three("F46 pages of N1", machine, pod(container("a", "8", pages="8Gi")), "A a{1} | A a{1} | A a{1}")


LEVEL_GATES = (
    "PodLevelResources",
    "PodLevelResourceManagers",
    "PodLevelResourcesFixDefaulting",
    "PodLevelResourcesFixKubeletQOSClass",
    "InPlacePodLevelResourcesVerticalScaling",
)
"""Pod-level resources and, in 1.37, what depends on them."""


def _other_cases() -> Iterator[Case]:
    wide = pod(container("a", "112", "300Gi", 8))
    yield Case("F21 policy none", m128(kubelet(NONE)), wide, *expectation("A a{*}"))
    yield Case("F22 policy none, too much memory", m128(kubelet(NONE)), pod(container("a", "8", "600Gi")), "U")
    no_cpu = m128(kubelet(cpu="none"))
    yield Case("F23 cpuManager none", no_cpu, pod(container("a", "112", "64Gi", 4)), *expectation("A a{0}"))
    two = pod(container("a", "60"), container("b", "20500m"))
    yield Case("F24 whole and broken CPUs", m128(kubelet()), two, *expectation("A a{0} b{0}"))
    level = pod(container("a", None, None, 4), resources={"cpu": "112", "memory": "300Gi"})
    yield Case("F25 pod level, gate off", m128(kubelet()), level, *expectation("A a{0}"))
    yield Case("pod level, its gate off", m128(kubelet(featureGates=dict.fromkeys(LEVEL_GATES, False))), level, "L")
    foreign = pod(container("a", "8", foreign=1))
    yield Case("F26 resource without plugin", m128(kubelet()), foreign, *expectation("A a{0}"))
    apart = m128(kubelet(), first={NIC: 1}, second={GPU: 4})
    yield Case("GPU and NIC apart", apart, pod(container("a", gpu=2, nic=1)), "R")
    loose = pod(container("a", "124500m"))
    yield Case("fit: more CPU than allocatable", m128(kubelet()), loose, "OutOfcpu")
    bursting = pod(burstable("a", "100", "120", 1))
    bursting["spec"]["containers"][0]["resources"] = {"requests": {"memory": "600Gi"}}
    yield Case("fit: more memory than allocatable", m128(kubelet()), bursting, "OutOfmemory")
    for amount, outcome in (("20E", "A a{*}"), ("20000000000000000001", "OutOfmemory"), ("9223372036854775808", "A a{*}")):
        unpinned = m128(kubelet(NONE, memory=False))
        yield Case(f"memory of {amount}, not pinned", unpinned, pod(container("a", "1500m", amount)), *expectation(outcome))
        yield Case(f"memory of {amount}, pinned", m128(kubelet()), pod(container("a", "1500m", amount)), "U")
    yield Case("20E GPUs are none", m128(kubelet()), pod(container("a", "8", "1Gi", "20E")), *expectation("A a{0}"))
    invalid = pod(container("a"))
    invalid["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "8"
    yield Case("request above limit", m128(kubelet()), invalid, "Invalid")


def cases() -> Iterator[Case]:
    """Every case of every table."""
    yield from grid_cases()
    yield from matrix_cases()
    yield from configuration_cases()

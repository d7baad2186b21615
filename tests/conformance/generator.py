"""Random cases: a NodeClass and a Pod as plain data, weighted so that about half lie near the border of admission.

A case is a function of its seed and its number alone. The generator knows only the documents' form and, roughly, how much
a NUMA node leaves; what the kubelet makes of it is the business of the model and of the oracle.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]

GPU, NIC, FPGA = "nvidia.com/gpu", "nvidia.com/hostdev", "example.com/fpga"
MI, GI = 1 << 20, 1 << 30
PAGE_SIZES = {"2Mi": 2 * MI, "1Gi": GI}

_LEVEL = ("PodLevelResources",)
_SCALING = (*_LEVEL, "PodLevelResourceManagers", "InPlacePodLevelResourcesVerticalScaling")
LEVEL_GATES = {
    34: _LEVEL,
    35: _LEVEL,
    36: _SCALING,
    37: (*_SCALING, "PodLevelResourcesFixDefaulting", "PodLevelResourcesFixKubeletQOSClass"),
}
"""The gates to turn off for a kubelet of each minor without pod-level resources."""

MAX_PERMUTATIONS = 150_000
"""Hint combinations that one kubelet may have to merge; more would take it seconds."""


@dataclass(slots=True)
class Machine:
    """A topology under construction, and what each of its NUMA nodes leaves to pods (an estimate)."""

    topology: JSON
    cpus: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    pages: dict[str, list[int]] = field(default_factory=dict)
    devices: dict[str, list[int]] = field(default_factory=dict)
    loose: dict[str, int] = field(default_factory=dict)
    ids: list[int] = field(default_factory=list)

    @property
    def width(self) -> int:
        """How many NUMA nodes it has."""
        return len(self.ids)

    @property
    def resources(self) -> list[str]:
        """The device resources it offers."""
        return sorted({*self.devices, *self.loose})


def cases(seed: int, count: int, minor: int = 37, first: int = 0) -> Iterator[JSON]:
    """Yield cases number `first` and on: `{"nodeClass": ..., "pod": ...}`."""
    for number in range(first, first + count):
        yield case(seed, number, minor)


def case(seed: int, number: int, minor: int = 37) -> JSON:
    """Return one case for a Kubernetes minor."""
    rng = random.Random(f"{seed}/{number}")
    level = rng.random() < 0.18  # a pod with pod-level resources
    machine = _machine(rng)
    config = _kubelet(rng, machine, level=level, minor=minor)
    document: JSON = {
        "apiVersion": "numalign.io/v1alpha1",
        "kind": "NodeClass",
        "metadata": {"name": "random"},
        "spec": {
            "selector": {"class": "random"},
            "kubernetes": f"1.{minor}",
            "topology": machine.topology,
            "kubelet": config,
        },
    }
    if rng.random() < 0.05 and machine.resources:
        resource = rng.choice(machine.resources)
        document["spec"]["sharing"] = {resource: 2}
        machine.devices[resource] = [2 * count for count in machine.devices.get(resource, [0] * machine.width)]
    axes = _axes(machine, config)
    pod = _pod(rng, machine, config, level=level, axes=axes)
    return {"nodeClass": document, "pod": pod}


# --- machines ----------------------------------------------------------------------------------------------------------


def _pick(rng: random.Random, weights: dict[Any, float]) -> Any:
    return rng.choices(list(weights), list(weights.values()))[0]


def _machine(rng: random.Random) -> Machine:
    width = _pick(rng, {1: 6, 2: 50, 3: 6, 4: 20, 5: 2, 6: 3, 8: 11, 9: 1, 16: 0.4})
    threads = _pick(rng, {1: 30, 2: 60, 4: 10})
    cores = _pick(rng, {1: 4, 2: 15, 3: 10, 4: 25, 6: 10, 8: 20, 16: 6, 28: 5, 32: 5})
    if width > 8:
        cores = min(cores, 4)
    per_node = [cores] * width
    if rng.random() < 0.15:
        per_node = [max(1, cores + rng.choice((-1, 0, 0, 1, 2))) for _ in range(width)]
    if width > 1 and rng.random() < 0.1:
        per_node[rng.choice((-1, -1, 0))] = 0  # a memory-only node
    ids = list(range(width))
    if rng.random() < 0.03:
        ids = sorted(rng.sample(range(width + 8), width))
    topology: JSON = {"sockets": _sockets(rng, width, sum(per_node)), "threadsPerCore": threads, "numaNodes": []}
    machine = Machine(topology, ids=ids)
    _add_nodes(rng, machine, [count * threads for count in per_node])
    _add_devices(rng, machine)
    if rng.random() < 0.2:
        topology["coresPerUncoreCache"] = rng.choice((1, 2, 3, 4))
    if rng.random() < 0.25:
        _add_distances(rng, machine)
    return machine


def _sockets(rng: random.Random, width: int, cores: int) -> int:
    sockets: int = _pick(rng, {1: 25, 2: 45, width: 20, 2 * width: 7, 3: 3})
    return max(1, min(sockets, cores))


def _add_nodes(rng: random.Random, machine: Machine, cpus: list[int]) -> None:
    style = _pick(rng, {"count": 50, "list": 35, "gaps": 15})
    if rng.random() < 0.3:
        machine.topology["cpuNumbering"] = "adjacent"
    memory = _pick(rng, {4: 1, 8: 2, 16: 2, 64: 2, 256: 1}) * GI
    pool = list(range(sum(cpus) + (5 if style == "gaps" else 0)))
    if style == "gaps":
        pool = sorted(rng.sample(pool, sum(cpus)))
        if rng.random() < 0.3:
            rng.shuffle(pool)
    pages = _pages(rng, machine.width, memory)
    for index, count in enumerate(cpus):
        mine, pool = pool[:count], pool[count:]
        amount = memory if rng.random() < 0.8 else memory + rng.choice((-1, 1)) * rng.choice((MI, 512 * MI, GI, 4096))
        node: JSON = {"id": machine.ids[index], "memory": _bytes(rng, amount)}
        node["cpus"] = count if style == "count" else _cpu_list(mine)
        sizes = {size: _bytes(rng, held[index]) for size, held in pages.items() if held[index]}
        if sizes:
            node["hugepages"] = sizes
        machine.topology["numaNodes"].append(node)
        machine.cpus.append(count)
        machine.memory.append(amount - sum(held[index] for held in pages.values()))
    machine.pages = pages


def _pages(rng: random.Random, width: int, memory: int) -> dict[str, list[int]]:
    if rng.random() < 0.65:
        return {}
    pages = {}
    for size in rng.sample(sorted(PAGE_SIZES), rng.choice((1, 1, 2))):
        unit = GI if size == "1Gi" else 64 * MI
        most = max(1, memory // (4 * unit))
        same = min(rng.randint(1, 8), most) * unit
        pages[size] = [same if rng.random() < 0.8 else rng.choice((0, unit)) for _ in range(width)]
    return pages


def _cpu_list(cpus: list[int]) -> str:
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def _bytes(rng: random.Random, amount: int) -> Any:
    """Write an amount of bytes in one of the forms that Kubernetes knows."""
    forms: list[Any] = [str(amount)]
    if amount % MI == 0:
        forms += [f"{amount // MI}Mi"] * 2
    if amount % GI == 0:
        forms += [f"{amount // GI}Gi"] * 4
    return rng.choice(forms)


def _add_devices(rng: random.Random, machine: Machine) -> None:
    pattern = _pick(rng, {"even": 45, "uneven": 20, "one": 10, "mixed": 8, "several": 8, "loose": 5, "none": 4})
    count = rng.choice((1, 2, 4, 4, 4, 8))
    if pattern in ("even", "mixed"):
        _place(machine, GPU, [count] * machine.width)
    elif pattern == "uneven":
        _place(machine, GPU, [rng.choice((0, 1, 2, count)) for _ in range(machine.width)])
    elif pattern == "one":
        chosen = rng.randrange(machine.width)
        _place(machine, GPU, [count if index == chosen else 0 for index in range(machine.width)])
    if pattern in ("mixed", "loose"):
        machine.topology["devicesWithoutTopology"] = {GPU: count}
        machine.loose[GPU] = count
    if pattern == "several" and machine.width > 1:
        _place_several(rng, machine, count)
    if rng.random() < 0.35:
        nics = [rng.choice((0, 1, 1, 2)) for _ in range(machine.width)]
        _place(machine, NIC, nics)
    if rng.random() < 0.06:
        _place(machine, FPGA, [rng.choice((0, 1)) for _ in range(machine.width)])


def _place(machine: Machine, resource: str, counts: list[int]) -> None:
    for node, count in zip(machine.topology["numaNodes"], counts, strict=True):
        if count:
            node.setdefault("devices", {})[resource] = count
    if any(counts):
        machine.devices[resource] = counts


def _place_several(rng: random.Random, machine: Machine, count: int) -> None:
    groups = []
    counts = [0] * machine.width
    for _ in range(rng.choice((1, 1, 2))):
        chosen = sorted(rng.sample(range(machine.width), 2))
        groups.append({"resource": GPU, "count": count, "numaNodes": [machine.ids[index] for index in chosen]})
        for index in chosen:
            counts[index] += count
    machine.topology["devicesOnSeveralNodes"] = groups
    if rng.random() < 0.4:
        single = [rng.choice((0, 1, 2)) for _ in range(machine.width)]
        _place(machine, GPU, single)
        counts = [total + more for total, more in zip(counts, single, strict=True)]
    machine.devices[GPU] = counts


def _add_distances(rng: random.Random, machine: Machine) -> None:
    width = machine.width
    rows = [[10] * width for _ in range(width)]
    for one in range(width):
        for other in range(one):
            rows[one][other] = rows[other][one] = rng.choice((11, 12, 12, 20, 21, 32))
    for node, row in zip(machine.topology["numaNodes"], rows, strict=True):
        node["distances"] = row


# --- kubelets ------------------------------------------------------------------------------------------------------------


def _kubelet(rng: random.Random, machine: Machine, *, level: bool, minor: int) -> JSON:
    config: JSON = {
        "topologyManagerPolicy": _pick(rng, {"single-numa-node": 35, "restricted": 35, "best-effort": 22, "none": 8}),
        "topologyManagerScope": rng.choice(("pod", "container")),
    }
    if rng.random() < 0.92:
        config["cpuManagerPolicy"] = "static"
    gates: JSON = {}
    if level and minor >= 36 and rng.random() < 0.7:
        gates["PodLevelResourceManagers"] = True
    _reserve_cpus(rng, machine, config)
    _cpu_options(rng, config, gates, machine)
    _topology_options(rng, config, machine)
    _reserve_memory(rng, machine, config)
    if rng.random() < 0.02:
        gates[rng.choice(("AllBeta", "AllAlpha"))] = rng.choice((True, False))
    if level and rng.random() < 0.04:
        gates.update(dict.fromkeys(LEVEL_GATES[minor], False))
    if gates:
        config["featureGates"] = gates
    if rng.random() < 0.05:
        _spoil(rng, config)
    return config


def _reserve_cpus(rng: random.Random, machine: Machine, config: JSON) -> None:
    total = sum(machine.cpus)
    if rng.random() < 0.4 and total > 1:
        listed = _all_cpus(machine)
        chosen = rng.sample(listed, min(len(listed) - 1, rng.choice((1, 1, 2, 2, 3, 4))))
        config["reservedSystemCPUs"] = _cpu_list(chosen)
        owners = _owners(machine)
        for cpu in chosen:
            machine.cpus[owners[cpu]] -= 1
        return
    whole = min(rng.choice((1, 1, 2, 2, 3, 4, 6)), max(1, total - 1))
    kube = rng.choice((str(whole), str(whole), f"{1000 * whole - 500}m", f"{1000 * whole - 1}m"))
    config["kubeReserved"] = {"cpu": kube}
    if rng.random() < 0.3:
        config["systemReserved"] = {"cpu": rng.choice(("1", "500m", "250m"))}
    with_cpus = [index for index, count in enumerate(machine.cpus) if count]
    first = min(with_cpus, key=lambda index: machine.cpus[index])
    machine.cpus[first] = max(0, machine.cpus[first] - whole)


def _all_cpus(machine: Machine) -> list[int]:
    return sorted(_owners(machine))


def _owners(machine: Machine) -> dict[int, int]:
    """CPU id -> index of its NUMA node; for counts only roughly, by split numbering."""
    nodes = machine.topology["numaNodes"]
    threads = machine.topology["threadsPerCore"]
    if any(isinstance(node["cpus"], str) for node in nodes):
        return {cpu: index for index, node in enumerate(nodes) for cpu in _parse_list(node["cpus"])}
    owners, core, cores = {}, 0, sum(node["cpus"] for node in nodes) // threads
    adjacent = machine.topology.get("cpuNumbering") == "adjacent"
    for index, node in enumerate(nodes):
        for _ in range(node["cpus"] // threads):
            for thread in range(threads):
                owners[core * threads + thread if adjacent else thread * cores + core] = index
            core += 1
    return owners


def _parse_list(text: str) -> Iterator[int]:
    for run in filter(None, text.split(",")):
        low, _, high = run.partition("-")
        yield from range(int(low), int(high or low) + 1)


def _cpu_options(rng: random.Random, config: JSON, gates: JSON, machine: Machine) -> None:
    if rng.random() < 0.5:
        return
    options = {}
    if rng.random() < 0.55:
        options["full-pcpus-only"] = "true"
    extra = _pick(
        rng,
        {
            "": 40,
            "strict-cpu-reservation": 8,
            "prefer-align-cpus-by-uncorecache": 16,
            "distribute-cpus-across-numa": 26,
            "align-by-socket": 9,
            "distribute-cpus-across-cores": 9,
        },
    )
    if extra == "distribute-cpus-across-cores" and rng.random() < 0.95:
        options.pop("full-pcpus-only", None)
    if extra == "align-by-socket" and config["topologyManagerPolicy"] == "single-numa-node" and rng.random() < 0.9:
        extra = ""
    if extra == "align-by-socket" and machine.topology["sockets"] > machine.width:
        machine.topology["sockets"] = 1
    if extra:
        options[extra] = "true"
    if extra in ("align-by-socket", "distribute-cpus-across-cores"):
        gates["CPUManagerPolicyAlphaOptions"] = True
    if rng.random() < 0.05:
        options["strict-cpu-reservation"] = rng.choice(("true", "false"))
    if options and config.get("cpuManagerPolicy") == "static":
        config["cpuManagerPolicyOptions"] = options


def _topology_options(rng: random.Random, config: JSON, machine: Machine) -> None:
    options = {}
    if rng.random() < 0.25:
        options["prefer-closest-numa-nodes"] = rng.choice(("true", "true", "false"))
    if machine.width > 8 and rng.random() < 0.95:
        options["max-allowable-numa-nodes"] = str(machine.width)
        config["topologyManagerPolicy"] = rng.choice(("single-numa-node", "single-numa-node", "none"))
    elif rng.random() < 0.02:
        options["max-allowable-numa-nodes"] = rng.choice(("7", "8", "12"))
    if options:
        config["topologyManagerPolicyOptions"] = options


def _reserve_memory(rng: random.Random, machine: Machine, config: JSON) -> None:
    total = 0
    for owner in ("kubeReserved", "systemReserved"):
        if rng.random() < 0.5:
            amount = rng.choice((128, 256, 500, 1000)) * MI
            config.setdefault(owner, {})["memory"] = _bytes(rng, amount)
            total += amount
    total += _eviction(rng, machine, config)
    if rng.random() < 0.4:
        return
    config["memoryManagerPolicy"] = "Static"
    shares = _shares(rng, total, machine.width)
    config["reservedMemory"] = [
        {"numaNode": machine.ids[index], "limits": {"memory": str(share)}} for index, share in enumerate(shares) if share
    ]
    for index, share in enumerate(shares):
        machine.memory[index] -= share


def _eviction(rng: random.Random, machine: Machine, config: JSON) -> int:
    kind = _pick(rng, {"default": 60, "amount": 15, "percent": 12, "other": 5, "merged": 5, "whole": 3})
    whole = sum(_amount(node["memory"]) for node in machine.topology["numaNodes"])
    if kind == "default":
        return 100 * MI
    if kind == "amount":
        config["evictionHard"] = {"memory.available": "300Mi"}
        return 300 * MI
    if kind == "percent":
        percent = rng.choice((1, 2, 5))
        config["evictionHard"] = {"memory.available": f"{percent}%"}
        # the kubelet computes in 32-bit floats
        return int(_float32(_float32(whole) * _float32(percent / 100)))
    if kind == "merged":
        config["mergeDefaultEvictionSettings"] = True
        config["evictionHard"] = {"nodefs.available": "5%"}
        return 100 * MI
    config["evictionHard"] = {"nodefs.available": "5%"} if kind == "other" else {"memory.available": "0%"}
    return 0


def _float32(number: float) -> float:
    mantissa, exponent = math.frexp(number)
    return math.ldexp(round(mantissa * (1 << 24)), exponent - 24)


def _amount(text: Any) -> int:
    text = str(text)
    for suffix, unit in (("Gi", GI), ("Mi", MI)):
        if text.endswith(suffix):
            return int(text[: -len(suffix)]) * unit
    return int(text)


def _shares(rng: random.Random, total: int, width: int) -> list[int]:
    style = rng.choice(("first", "even", "random"))
    if style == "first" or width == 1:
        return [total] + [0] * (width - 1)
    cuts = [total * index // width for index in range(1, width)]
    if style == "random":
        cuts = sorted(rng.randint(0, total) for _ in cuts)
    return [high - low for low, high in zip([0, *cuts], [*cuts, total], strict=True)]


WRONG: tuple[JSON, ...] = (
    {"topologyManagerPolicy": "strict"},
    {"topologyManagerPolicy": ""},
    {"topologyManagerScope": "node"},
    {"topologyManagerScope": None},
    {"cpuManagerPolicy": "Static"},
    {"cpuManagerPolicy": "none", "cpuManagerPolicyOptions": {"full-pcpus-only": "false"}},
    {"cpuManagerPolicyOptions": {"full-pcpus-only": "yes"}},
    {"cpuManagerPolicyOptions": {"full-pcpus-only": True}},
    {"cpuManagerPolicyOptions": {"full-pcpus-only": "1"}},
    {"cpuManagerPolicyOptions": {"unknown-option": "true"}},
    {"cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true", "prefer-align-cpus-by-uncorecache": "true"}},
    {"cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true", "distribute-cpus-across-cores": "true"}},
    {"cpuManagerPolicyOptions": {"full-pcpus-only": "true", "distribute-cpus-across-cores": "false"}},
    {"cpuManagerPolicyOptions": {"align-by-socket": "true"}},
    {"memoryManagerPolicy": "static"},
    {"memoryManagerPolicy": "BestEffort"},
    {"memoryManagerPolicy": "Static", "reservedMemory": None},
    {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 0, "limits": {"memory": "0"}}]},
    {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 0, "limits": {"cpu": "1"}}]},
    {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 99, "limits": {"memory": "100Mi"}}]},
    {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": -1, "limits": {"memory": "100Mi"}}]},
    {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}] * 2},
    {
        "memoryManagerPolicy": "Static",
        "reservedMemory": [{"limits": {"memory": "50Mi"}}, {"numaNode": 1, "limits": {"memory": "50Mi"}}],
    },
    {"memoryManagerPolicy": "None", "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}]},
    {"reservedMemory": [{"numaNode": 0, "limits": {"hugepages-1Gi": "1Gi"}}]},
    {"featureGates": {"NoSuchGate": True}},
    {"featureGates": {"CPUManagerPolicyAlphaOptions": False}},
    {"featureGates": {"CPUManagerPolicyBetaOptions": False}},
    {"featureGates": {"TopologyManagerPolicyBetaOptions": False}},
    {"featureGates": {"PodLevelResourceManagers": True, "PodLevelResources": False}},
    {"featureGates": {"CPUManager": False}},
    {"featureGates": {"MemoryManager": False}},
    {"featureGates": {"KubeletCgroupDriverFromCRI": True}},
    {"evictionHard": {"memory.available": "0"}},
    {"evictionHard": {"memory.available": "100%"}},
    {"evictionHard": {"memory.available": "101%"}},
    {"evictionHard": {"memory.available": "3.7%"}},
    {"evictionHard": {"memory.available": "-1Mi"}},
    {"evictionHard": {"memory.available": "much"}},
    {"evictionHard": {"memory.free": "1Gi"}},
    {"evictionHard": {}},
    {"evictionHard": {}, "mergeDefaultEvictionSettings": True},
    {"evictionHard": {"memory.available": "10%", "nodefs.available": "-5%"}},
    {"evictionSoft": {"memory.available": "1Gi"}},
    {"evictionSoft": {"memory.available": "1Gi"}, "evictionSoftGracePeriod": {"memory.available": "1m"}},
    {"systemReserved": {"cpu": "0"}, "kubeReserved": {"cpu": "0"}},
    {"systemReserved": {"cpu": "1n"}, "kubeReserved": {}},
    {"systemReserved": {"cpu": "1500500u"}},
    {"systemReserved": {"cpu": "-1"}},
    {"systemReserved": {"cpu": 1}},
    {"systemReserved": {"cpu": "1", "pid": "1000", "ephemeral-storage": "1Gi"}},
    {"systemReserved": {"cpu": "1", "memory": "1.5Gi"}},
    {"systemReserved": {"hugepages-1Gi": "1Gi"}},
    {"kubeReserved": {"cpu": "100000"}},
    {"kubeReserved": {"memory": "100Ti"}},
    {"kubeReserved": {"cpu": "1 "}},
    {"reservedSystemCPUs": "0-9999"},
    {"reservedSystemCPUs": "zero"},
    {"reservedSystemCPUs": "0", "systemReservedCgroup": "/system"},
    {"topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "maybe"}},
    {"topologyManagerPolicyOptions": {"max-allowable-numa-nodes": "many"}},
    {"topologyManagerPolicyOptions": {"unknown": "true"}},
    {"enforceNodeAllocatable": ["pods", "system-reserved"]},
    {"enforceNodeAllocatable": ["pods", "pods"]},
    {"enforceNodeAllocatable": ["none", "pods"]},
    {"enforceNodeAllocatable": ["everything"]},
    {"enforceNodeAllocatable": []},
    {"cgroupsPerQOS": False},
    {"cgroupsPerQOS": False, "enforceNodeAllocatable": []},
    {"apiVersion": "kubelet.config.k8s.io/v1"},
    {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"},
    {"maxPods": -1},
    {"maxPods": 0},
    {"maxPods": "many"},
    {"podsPerCore": -1},
    {"noSuchField": 1},
)
"""Fields that stop a kubelet from starting, or nearly so; None: without the field."""


def _spoil(rng: random.Random, config: JSON) -> None:
    for key, value in rng.choice(WRONG).items():
        if value is None:
            config.pop(key, None)
        elif key == "featureGates":
            config[key] = {**config.get(key, {}), **value}
        else:
            config[key] = value


# --- pods ----------------------------------------------------------------------------------------------------------------


def _axes(machine: Machine, config: JSON) -> int:
    """How many resources with hints a container may ask for before merging takes the kubelet too long."""
    if config["topologyManagerPolicy"] in ("none", "single-numa-node") or machine.width == 1:
        return 9
    return max(2, int(math.log(MAX_PERMUTATIONS) / math.log(2**machine.width - 1)))


def _pod(rng: random.Random, machine: Machine, config: JSON, *, level: bool, axes: int) -> JSON:
    names = iter("abcdef")
    apps = _pick(rng, {1: 45, 2: 30, 3: 15, 4: 8})
    inits = _pick(rng, {0: 65, 1: 20, 2: 15})
    kinds = ["app"] * apps + [rng.choice(("init", "init", "sidecar")) for _ in range(inits)]
    offered = _offer(rng, machine, config, axes)
    quality = _pick(rng, {"Guaranteed": 70, "Burstable": 10, "BestEffort": 7, "mixed": 13})
    shares = _targets(rng, machine, offered, len(kinds))
    spec: JSON = {"containers": []}
    for index, kind in enumerate(kinds):
        wanted = {resource: amounts[index] for resource, amounts in shares.items()}
        made = _container(rng, next(names), wanted, quality)
        if kind == "sidecar":
            made["restartPolicy"] = "Always"
        spec.setdefault("containers" if kind == "app" else "initContainers", []).append(made)
    if level:
        _add_level(rng, machine, spec, shares)
    if rng.random() < 0.05:
        _bend(rng, spec)
    if rng.random() < 0.03:
        spec["overhead"] = {"cpu": rng.choice(("100m", "1")), "memory": "64Mi"}
        spec["runtimeClassName"] = "kata"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": "default"}, "spec": spec}


ODD: tuple[JSON, ...] = (
    {"cpu": "0"},
    {"cpu": "1.0005"},
    {"cpu": "1u"},
    {"cpu": -1},
    {"cpu": "1e3m"},
    {"cpu": 0.5},
    {"cpu": True},
    {"cpu": "one"},
    {"memory": "1.5Gi"},
    {"memory": "1500m"},
    {"memory": "0"},
    {"memory": "1e9"},
    {"memory": "9E"},
    {"memory": "20E"},
    {"memory": "20000000000000000001"},
    {"memory": "20Ei"},
    {GPU: "20E"},
    {"memory": 1073741824},
    {"hugepages-1Gi": "1536Mi"},
    {"hugepages-1024Mi": "1Gi"},
    {"hugepages-1Gi": "1Gi", "cpu": None, "memory": None},
    {"hugepages-2Mi": "0"},
    {"hugepages-64Ki": "64Ki"},
    {"hugepages-3Mi": "3Mi"},
    {GPU: "0"},
    {GPU: "1500m"},
    {GPU: "1k"},
    {GPU: -1},
    {"gpu": 1},
    {"kubernetes.io/gpu": 1},
    {"requests.nvidia.com/gpu": 1},
    {"example.com/" + "x" * 64: 1},
    {"ephemeral-storage": "1Gi"},
    {"storage": "1Gi"},
)
"""Amounts of resources that are rare, or none; None: without the resource."""


def _bend(rng: random.Random, spec: JSON) -> None:
    """Write something into a pod that few would: odd amounts, requests unlike limits, two containers of one name."""
    container = rng.choice([*spec["containers"], *spec.get("initContainers", [])])
    resources = container["resources"]
    kind = _pick(rng, {"amounts": 60, "one side": 25, "name": 5, "restart": 5, "bare": 5})
    if kind == "name":
        container["name"] = rng.choice(("a", "b", "A", "a.b", "-a"))
    elif kind == "restart":
        container["restartPolicy"] = rng.choice(("Never", "OnFailure", "Always"))
    elif kind == "bare":
        container.pop("resources")
    sides = ["limits", "requests"] if kind == "amounts" else [rng.choice(("limits", "requests"))]
    for side in sides if kind in ("amounts", "one side") else ():
        amounts = resources.setdefault(side, {})
        for name, amount in rng.choice(ODD).items():
            if amount is None:
                amounts.pop(name, None)
            else:
                amounts[name] = amount


def _offer(rng: random.Random, machine: Machine, config: JSON, axes: int) -> list[str]:
    """The resources that the pod's containers may ask for: never more with hints than the kubelet can merge in time."""
    offered = ["cpu", "memory"]
    axes -= (config.get("cpuManagerPolicy") == "static") + (config.get("memoryManagerPolicy") == "Static")
    devices = machine.resources
    rng.shuffle(devices)
    if GPU in devices and rng.random() < 0.8:
        devices.remove(GPU)
        devices.insert(0, GPU)
    for resource in devices:
        if axes > 0 and rng.random() < 0.85:
            offered.append(resource)
            axes -= 1
    for size in machine.pages:
        if (axes > 0 or config.get("memoryManagerPolicy") != "Static") and rng.random() < 0.6:
            offered.append(f"hugepages-{size}")
            axes -= 1
    if rng.random() < 0.03:
        offered.append("example.com/unknown")
    return offered


def _targets(rng: random.Random, machine: Machine, offered: list[str], count: int) -> dict[str, list[int | None]]:
    """What each container asks for of each resource: milli-CPUs, bytes or devices; None: nothing."""
    shared_width = rng.choice((1, 1, 1, 2, 2, machine.width))
    asked: dict[str, list[int | None]] = {}
    for resource in offered:
        width = shared_width if rng.random() < 0.75 else rng.randint(1, machine.width)
        asked[resource] = _split(rng, machine, resource, min(width, machine.width), count)
    return asked


def _split(rng: random.Random, machine: Machine, resource: str, width: int, count: int) -> list[int | None]:
    limit, unit = _border(rng, machine, resource, width)
    near = rng.random() < 0.6
    together = rng.random() < 0.55
    if not near:
        limit = rng.randint(0, max(limit, unit))
    elif rng.random() < 0.6:
        limit += unit * rng.choice((-2, -1, 0, 0, 1, 2))
    limit = max(limit, unit)
    absent = 0.08 if resource in ("cpu", "memory") else 0.35
    amounts: list[int | None] = []
    for index in range(count):
        if rng.random() < absent:
            amounts.append(None)
        elif together:
            part = limit // count if rng.random() < 0.5 else rng.randint(unit, max(unit, limit))
            last = limit - sum(amount or 0 for amount in amounts)
            amounts.append(max(unit, (last if index == count - 1 else part) // unit * unit))
        else:
            amounts.append(max(unit, rng.choice((limit, limit, rng.randint(1, 3) * unit, rng.randint(0, limit))) // unit * unit))
    if resource == "cpu":
        return [None if amount is None else _milli(rng, amount) for amount in amounts]
    if "/" in resource and rng.random() < 0.04:
        amounts[rng.randrange(count)] = 0
    return amounts


def _border(rng: random.Random, machine: Machine, resource: str, width: int) -> tuple[int, int]:
    """What the best, or some, NUMA nodes leave of a resource, and the step in which it is asked for."""
    if resource == "cpu":
        amounts, unit = machine.cpus, 1
        if rng.random() < 0.4:
            unit = machine.topology["threadsPerCore"]
    elif resource == "memory":
        amounts, unit = machine.memory, rng.choice((MI, 64 * MI, 1))
    elif resource.startswith("hugepages-"):
        size = resource.removeprefix("hugepages-")
        amounts, unit = machine.pages[size], PAGE_SIZES[size]
    else:
        amounts, unit = machine.devices.get(resource, [machine.loose.get(resource, 1)]), 1
    chosen = sorted(amounts, reverse=True)[:width] if rng.random() < 0.7 else rng.sample(amounts, min(width, len(amounts)))
    return max(sum(chosen), unit), unit


def _milli(rng: random.Random, cpus: int) -> int:
    if rng.random() < 0.85:
        return 1000 * cpus
    return max(1, 1000 * cpus - rng.choice((1, 250, 500, 900)))


def _container(rng: random.Random, name: str, wanted: dict[str, int | None], quality: str) -> JSON:
    if quality == "mixed":
        quality = rng.choice(("Guaranteed", "Guaranteed", "Burstable", "BestEffort"))
    limits: JSON = {}
    requests: JSON = {}
    for resource, amount in wanted.items():
        plain = resource not in ("cpu", "memory")
        if amount is None or (quality == "BestEffort" and not plain and rng.random() < 0.9):
            continue
        text = _quantity(rng, resource, amount)
        if plain or quality == "Guaranteed":
            limits[resource] = text
        elif rng.random() < 0.7:
            requests[resource] = text
            if rng.random() < 0.5:
                limits[resource] = _quantity(rng, resource, 2 * amount)
        else:
            limits[resource] = text
    if rng.random() < 0.6:
        requests = {**limits, **requests}
    resources = {key: value for key, value in (("limits", limits), ("requests", requests)) if value}
    return {"name": name, "image": "registry.example/work", "resources": resources}


def _quantity(rng: random.Random, resource: str, amount: int) -> Any:
    if resource == "cpu":
        forms: list[Any] = [f"{amount}m"]
        if amount % 1000 == 0:
            forms += [str(amount // 1000)] * 3 + [amount // 1000]
        elif amount % 100 == 0:
            forms += [f"{amount // 1000}.{amount % 1000 // 100}"]
        return rng.choice(forms)
    if resource == "memory" or resource.startswith("hugepages-"):
        return _bytes(rng, amount)
    return rng.choice((amount, str(amount), str(amount)))


def _add_level(rng: random.Random, machine: Machine, spec: JSON, shares: dict[str, list[int | None]]) -> None:
    """Give the pod resources of its own: at, above or about what its containers ask for together."""
    resources: JSON = {}
    for resource, amounts in shares.items():
        kept = 0.95 if resource in ("cpu", "memory") else 0.75
        if "/" not in resource and rng.random() < kept:
            resources[resource] = _level(rng, machine, resource, sum(amount or 0 for amount in amounts))
    kind = _pick(rng, {"both": 70, "limits": 12, "requests": 8, "apart": 6, "empty": 4})
    forms: dict[str, JSON] = {
        "both": {"limits": resources, "requests": dict(resources)},
        "apart": {"limits": resources, "requests": {"cpu": "100m"}},
        "empty": {},
    }
    spec["resources"] = forms.get(kind, {kind: resources})
    if kind == "empty":
        return
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        if rng.random() < 0.45:
            for amounts in container["resources"].values():
                amounts.pop("cpu", None)
                amounts.pop("memory", None)


def _level(rng: random.Random, machine: Machine, resource: str, total: int) -> Any:
    step = 1000 if resource == "cpu" else PAGE_SIZES.get(resource.removeprefix("hugepages-"), MI)
    value = total + step * rng.choice((0, 0, 1, 1, 2, 4))
    if rng.random() < 0.25:
        border, _ = _border(rng, machine, resource, rng.randint(1, machine.width))
        value = max(value, border * (1000 if resource == "cpu" else 1))
    return _quantity(rng, resource, max(value, step))

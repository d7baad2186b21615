"""Random pods and sets of node classes, small enough to be judged by the hundred.

They come from a seed rather than from hypothesis' own choices: a promise is worth most on pods that are nearly in order, and
such weights survive only where we draw ourselves.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.conformance.tables import node_class
from tests.unit.core.setting import GPU, JSON, NIC, kubelet, m112, m128, named, nps4, numa, snapshot
from webhook.core.policy import CpuRules, HugepageRules, MemoryRules, Policy
from webhook.core.quantities import GI, parse
from webhook.core.snapshot import Snapshot

POLICIES = ("single-numa-node", "restricted", "best-effort", "none")


def _one_node(config: JSON) -> JSON:
    config = (
        config | {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "12388Mi"}}]} if "reservedMemory" in config else config
    )
    return node_class([numa(0, 16, "64Gi", devices={GPU: 2, NIC: 1})], config, sockets=1)


def _uneven(config: JSON) -> JSON:
    return m128(config, {GPU: 3, NIC: 1}, {GPU: 1}, {"1Gi": "8Gi"})


_MACHINES = {"m128": m128, "m112": m112, "nps4": nps4, "one": _one_node, "uneven": _uneven}
_EXTRAS: dict[str, dict[str, Any]] = {
    "plain": {},
    "full": {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}},
    "pod-level": {"featureGates": {"PodLevelResourceManagers": True}},
}
_SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "tainted": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
    "hami": {"hami": {"mode": "hami-core", "numaTopology": True, "deviceSplitCount": 10, "refit": True}},
    "daemons": {"daemonSets": {"cpu": "500m", "memory": "2Gi"}},
    "two-keys": {"selector": {"class": "shared", "more": "two-keys"}},
    "hooked": {"deviceSpecs": "notPassed"},
}

_SETTINGS = (
    Policy(),
    Policy(shape_shared=True, hugepages=HugepageRules(per_accelerator=GI)),
    Policy(steer=False, cpu=CpuRules(source="request", default=1000)),
    Policy(complete=False, cpu=CpuRules(source="limit", per_accelerator=6500), memory=MemoryRules(default=2 * GI)),
    Policy(require_enforcement=True, memory=MemoryRules(inject="never")),
)

T = TypeVar("T")


def seeded(make: Callable[[Random], T]) -> st.SearchStrategy[T]:
    """What `make` makes of a random seed."""
    return st.integers(0, 2**32 - 1).map(lambda seed: make(Random(seed)))


def _usually(random: Random, usual: T, *others: T, chance: float = 0.6) -> T:
    return usual if random.random() < chance else random.choice(others)


# --- classes -----------------------------------------------------------------------------------------------------------


@cache
def _compiled(chosen: tuple[Any, ...], name: str) -> Snapshot:
    machine, policy, scope, memory, cpu, extra, spec = chosen
    config = kubelet(policy, scope, memory=memory, cpu=cpu, **(_EXTRAS[extra] if cpu == "static" else {}))
    return snapshot(named(_MACHINES[machine](config), name, **copy.deepcopy(_SPECS[spec])))


def _class(random: Random, name: str) -> Snapshot:
    chosen = (
        _usually(random, "m128", *_MACHINES),
        _usually(random, "single-numa-node", *POLICIES, chance=0.3),
        random.choice(("pod", "container")),
        random.random() < 0.6,
        _usually(random, "static", "none", chance=0.92),
        _usually(random, "plain", *_EXTRAS),
        _usually(random, "plain", *_SPECS, chance=0.7),
    )
    return _compiled(chosen, name)


def world(seed: int) -> Snapshot:
    """One to three classes under a policy; a set is too much to print, its seed is not."""
    random = Random(seed)
    made = [_class(random, f"class-{index}") for index in range(random.choice((1, 1, 2, 2, 3)))]
    classes = tuple(node for each in made for node in each.classes)
    return Snapshot(_usually(random, Policy(), *_SETTINGS), made[0].catalogue, classes)


SEEDS = st.integers(0, 2**32 - 1)
MODES = st.sampled_from(["strict", "strict", "best-effort"])

# --- pods --------------------------------------------------------------------------------------------------------------

_CPU = ("100m", "500m", "1", "2", "3500m", "7", "8", "15", "16", "60", "64", "100", 4, 0)
_MEMORY = ("128Mi", "1Gi", "8Gi", "16Gi", "64Gi", "200Gi", "300Gi", "1500M", 1073741825, "0")
_DEVICES: Sequence[JSON] = ({GPU: "2"}, {GPU: 2}, {GPU: 3}, {GPU: 4}, {GPU: 5}, {GPU: 8}, {GPU: 0}, {GPU: 1, NIC: 1}, {})


def _sides(random: Random, silence: float = 0.75) -> dict[str, JSON]:
    """Requests and limits of CPU and memory that the API server takes."""
    requests: JSON = {}
    limits: JSON = {}
    for name, values in (("cpu", _CPU), ("memory", _MEMORY)):
        low, high = (_usually(random, None, *values, chance=silence) for _ in range(2))
        if high is not None:
            limits[name] = high
        if low is not None and (high is None or parse(low) <= parse(high)):
            requests[name] = low
    return {"requests": requests, "limits": limits}


def container(random: Random, name: str, devices: float) -> JSON:
    """A container that asks for devices with the given chance."""
    sides = _sides(random)
    if random.random() < devices:
        extra = _usually(random, {}, {"nvidia.com/gpumem": 3000}, {"hugepages-1Gi": "2Gi", "memory": "4Gi"}, chance=0.9)
        sides["limits"] |= _usually(random, {GPU: 1}, *_DEVICES, chance=0.4) | extra
        sides["requests"] = {key: value for key, value in sides["requests"].items() if key not in extra}
    made: JSON = {"name": name, "image": "registry.example/work"}
    resources = {side: amounts for side, amounts in sides.items() if amounts or random.random() < 0.3}
    if resources:
        made["resources"] = resources
    if random.random() < 0.2:
        made["volumeMounts"] = [{"name": "shm", "mountPath": "/data"}]
    return made


def _pod(random: Random) -> JSON:
    apps = [container(random, "app-0", 1)]
    apps += [container(random, f"app-{index}", 0.2) for index in range(1, random.choice((1, 1, 2, 2, 3)))]
    inits = [container(random, f"init-{index}", 0.2) for index in range(random.choice((0, 0, 0, 1, 1, 2)))]
    for each in inits:
        if random.random() < 0.4:
            each["restartPolicy"] = "Always"
    size = _usually(random, "1Gi", None, "32Gi", "0")
    spec: JSON = {"containers": apps} | ({"initContainers": inits} if inits else {})
    spec["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory"} | ({"sizeLimit": size} if size else {})}]
    spec |= copy.deepcopy(_usually(random, {}, *_PLACEMENTS, chance=0.7))
    if random.random() < 0.1:
        spec["resources"] = _sides(random, 0.4)
    metadata: JSON = {"name": "work"}
    if random.random() < 0.5:
        metadata["annotations"] = dict(random.choice(({}, {"a": "b"}, {"hami.io/numa-alignment": "strict"})))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _affinity(*terms: JSON) -> JSON:
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}}


def _term(operator: str, *values: str) -> JSON:
    return {"matchExpressions": [{"key": "class", "operator": operator, "values": list(values)}]}


_PLACEMENTS: Sequence[JSON] = (
    {"tolerations": [{"operator": "Exists"}]},
    {"nodeSelector": {"class": "class-0"}},
    {"nodeName": "node-1"},
    _affinity(_term("In", "class-0", "class-1")),
    _affinity(_term("NotIn", "class-1"), {}, _term("In", "class-2")),
    _affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}),
    {"affinity": {"podAffinity": {}, "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}},
    {"schedulerName": "volcano"},
)

PODS = seeded(_pod)
SIDECARS = seeded(lambda random: container(random, "sidecar", 0))

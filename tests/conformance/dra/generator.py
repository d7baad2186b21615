"""Random claims on random inventories: the same seed and number always make the same case."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

JSON = dict[str, Any]

NUMA = "resource.kubernetes.io/numaNode"
PCIE = "resource.kubernetes.io/pcieRoot"
DRIVERS = {"gpu": "gpu.nvidia.com", "nic": "dra.net", "cpu": "dra.cpu"}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}


def _class(kind: str, driver: str) -> JSON:
    return {"metadata": {"name": kind}, "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}]}}


CLASSES = [_class(kind, driver) for kind, driver in DRIVERS.items()]


def cases(seed: int, count: int, first: int = 0) -> Iterator[JSON]:
    """Yield cases by their numbers."""
    for number in range(first, first + count):
        yield case(seed, number)


def case(seed: int, number: int) -> JSON:
    """Return `classes`, `slices` (whole objects), `claim`, and `allocated`: devices of each node that are in use."""
    rng = random.Random(f"claims {seed} {number}")
    style = _Style(rng)
    nodes = [f"n{index}" for index in range(rng.choice((1, 1, 2, 3)))]
    slices = [each for node in nodes for kind in DRIVERS for each in _slices(rng, style, node, kind)]
    return {
        "nodes": nodes,
        "classes": CLASSES,
        "slices": slices,
        "claim": _claim(rng, style),
        "allocated": [_identity(each, device) for each in slices for device in each["spec"]["devices"] if rng.random() < 0.25],
    }


def others(case: JSON) -> list[JSON]:
    """Return one or two more claims that the case's pod could have: small ones, with names of requests of their own."""
    rng = random.Random(json.dumps(case, sort_keys=True))
    style = _Style(rng)
    return [_small(_claim(rng, style), f"other{index}") for index in range(rng.choice((1, 1, 2)))]


def _small(made: JSON, name: str) -> JSON:
    requests = [
        {"name": f"{name}-{each['name']}", "exactly": each["exactly"] | {"count": min(2, each["exactly"]["count"])}}
        for each in made["spec"]["devices"]["requests"]
    ]
    return claim({"requests": requests[:1]}, name)


def has_devices(case: JSON) -> bool:
    """Tell, at a glance, whether the claim asks for several devices and some node may have them: else it stays as written.

    Requests for which no node has any device are left out of what we do.
    """
    wanted: Counter[str] = Counter()
    for request in case["claim"]["spec"]["devices"]["requests"]:
        wanted[DRIVERS[request["exactly"]["deviceClassName"]]] += request["exactly"]["count"]
    there: dict[str, Counter[str]] = {node: Counter() for node in case["nodes"]}
    for each in case["slices"]:
        there[each["spec"]["nodeName"]][each["spec"]["driver"]] += len(each["spec"]["devices"])
    known = {driver for found in there.values() for driver, count in found.items() if count}
    wanted = Counter({driver: count for driver, count in wanted.items() if driver in known})
    return wanted.total() > 1 and any(wanted <= found for found in there.values())


class _Style:
    """What all slices of a case have in common, so that some cases are tame and others are not."""

    def __init__(self, rng: random.Random) -> None:
        self.numa_nodes = rng.choice((1, 2, 2, 2, 4))
        self.missing = {kind: rng.choice((0.0, 0.0, 0.0, 0.3)) for kind in DRIVERS}
        self.unknown = rng.choice((0.0, 0.0, 0.0, 0.2))
        self.names = rng.choice((("numa",), ("numa",), ("numa", "root"), ("root",), ("alias",), ("alias", "root")))
        self.texts = rng.random() < 0.05
        self.untidy = rng.random() < 0.2
        self.selectors = rng.random() < 0.3
        self.counters = rng.random() < 0.1


def _slices(rng: random.Random, style: _Style, node: str, kind: str) -> Iterator[JSON]:
    """Yield the slices of one driver on one node, which are one pool; in untidy cases not all of it, or old ones beside it."""
    devices = [
        _device(rng, style, kind, index) for index in range(rng.choice((0, 1, 2, 2, 3, 4, 6) if kind != "cpu" else (0, 1, 2)))
    ]
    cut = rng.randrange(len(devices) + 1) if rng.random() < 0.2 else len(devices)
    parts = [part for part in (devices[:cut], devices[cut:]) if part] or [[]]
    missing = style.untidy and rng.random() < 0.3
    for index, part in enumerate(parts):
        yield slice_of(node, kind, index, part, generation=2, count=len(parts) + missing)
    if style.untidy and rng.random() < 0.3:
        yield slice_of(node, kind, 9, [_device(rng, style, kind, 9)], generation=1, count=1)


def slice_of(node: str, kind: str, index: int, devices: list[JSON], *, generation: int, count: int) -> JSON:
    """Return a ResourceSlice of a pool that has `count` of them."""
    pool = {"name": f"{node}-{kind}", "generation": generation, "resourceSliceCount": count}
    spec = {"driver": DRIVERS[kind], "pool": pool, "nodeName": node, "devices": devices}
    return {"metadata": {"name": f"{node}-{kind}-{index}"}, "spec": spec}


def _device(rng: random.Random, style: _Style, kind: str, index: int) -> JSON:
    numa = rng.randrange(style.numa_nodes)
    attributes: JSON = {"model": {"string": rng.choice("ab")}}
    if rng.random() >= style.missing[kind]:
        if "numa" in style.names:
            attributes[NUMA] = _value(rng, style, numa)
        if "alias" in style.names:
            attributes["numaNode" if kind == "nic" else "dra.net/numaNode"] = _value(rng, style, numa)
    if "root" in style.names and kind != "cpu":
        attributes[PCIE] = {"string": "" if rng.random() < style.unknown else f"pci{numa}{rng.randrange(2)}"}
    device: JSON = {"name": f"{kind}{index}", "attributes": attributes}
    if style.counters and rng.random() < 0.3:
        device["taints"] = [{"key": "example.com/out", "effect": "NoSchedule"}]
    return device


def _value(rng: random.Random, style: _Style, numa: int) -> JSON:
    if rng.random() < style.unknown:
        return {"int": -1}
    return {"string": str(numa)} if style.texts and rng.random() < 0.3 else {"int": numa}


def _claim(rng: random.Random, style: _Style) -> JSON:
    kinds = rng.sample(sorted(DRIVERS), rng.choice((1, 2, 2, 2, 3)))
    requests = [_request(rng, style, kind, kind) for kind in kinds]
    if rng.random() < 0.2:
        requests.append(_request(rng, style, "more", rng.choice(kinds)))
    rng.shuffle(requests)
    devices: JSON = {"requests": requests}
    if rng.random() < 0.2:
        named = [each["name"] for each in requests if rng.random() < 0.7]
        opaque = {"driver": DRIVERS["gpu"], "parameters": {"kind": "Config"}}
        devices["config"] = [({"requests": named} if named else {}) | {"opaque": opaque}]
    return claim(devices)


def claim(devices: JSON, name: str = "c") -> JSON:
    """Return a claim that a pod owns."""
    metadata = {"name": name, "namespace": "research", "ownerReferences": [OWNER]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}


def _request(rng: random.Random, style: _Style, name: str, kind: str) -> JSON:
    count = rng.choice((1, 1, 2, 2, 3, 4)) if kind == "gpu" else rng.choice((1, 1, 1, 1, 2))
    exactly: JSON = {"deviceClassName": kind, "allocationMode": "ExactCount", "count": count}
    if style.selectors and rng.random() < 0.5:
        exactly["selectors"] = [{"cel": {"expression": rng.choice(_EXPRESSIONS).replace("DRIVER", DRIVERS[kind])}}]
    return {"name": name, "exactly": exactly}


_EXPRESSIONS = (
    "device.attributes['DRIVER'].model == 'a'",
    "device.attributes['DRIVER'].model in ['a', 'b']",
    "has(device.attributes['resource.kubernetes.io'].numaNode) && device.attributes['resource.kubernetes.io'].numaNode > 0",
    "cel.bind(mine, device.attributes['DRIVER'], mine.model != 'b')",
    "'example.com' in device.attributes || device.attributes['DRIVER'].model.startsWith('a')",
)


def _identity(each: JSON, device: JSON) -> list[str]:
    return [each["spec"]["driver"], each["spec"]["pool"]["name"], device["name"]]

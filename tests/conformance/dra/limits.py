"""Claims near the limits of the API (`resource.k8s.io/v1` types.go), on a node that has devices enough for all of them."""

from collections.abc import Iterator
from typing import Any

from tests.conformance.dra import generator

JSON = dict[str, Any]

MOST = 32
"""Requests, constraints, configurations, names in one of these, selectors, and devices that one claim gets."""

ALTERNATIVES = 8
LONGEST_NAME = 63
LONGEST_EXPRESSION = 10 * 1024
LONGEST_PARAMETERS = 10 * 1024
TOLERATIONS = 16


def _cases() -> Iterator[JSON]:
    names = [f"{index:02}{'n' * (LONGEST_NAME - 2)}" for index in range(MOST)]
    ones = [_request(name, selectors=[_selector(f"index == {index}")]) for index, name in enumerate(names)]
    pair = _request("pair", count=2, selectors=[_selector("index >= 30")])
    yield _case({"requests": ones})
    yield _case({"requests": [*ones[:30], pair]})
    yield _case({"requests": [*ones[:31], pair]})
    yield _case({"requests": [_request("gpu", count=MOST)]})
    yield _case({"requests": [_request("gpu", count=MOST + 1)]})
    for most in (MOST - 3, MOST - 2, MOST - 1, MOST):
        yield _case({"requests": ones, "config": [_config(names[:most])] * MOST})
    yield _case({"requests": ones, "config": [_config([])] * MOST})
    yield _case({"requests": ones, "constraints": [{"matchAttribute": generator.NUMA, "requests": names[:2]}] * MOST})
    yield _case({"requests": ones, "constraints": [{"matchAttribute": generator.NUMA, "requests": names}]})
    yield _case(
        {"requests": [_request("gpu", count=2, selectors=[_selector("index >= 30", LONGEST_EXPRESSION)] * MOST), *ones[:2]]}
    )
    yield _case({"requests": [pair | {"exactly": pair["exactly"] | {"tolerations": _tolerations()}}, *ones[:2]]})
    for name, amount in (("m" * MOST, "1"), ("m" * MOST, "2"), (f"gpu.nvidia.com/{'m' * MOST}", "1")):
        yield _case({"requests": [_request("gpu", count=2, capacity={"requests": {name: amount}}), *ones[:2]]})
    yield _case({"requests": [_several(names[0]), *ones[1:]]})
    yield _case({"requests": [pair | {"exactly": pair["exactly"] | {"adminAccess": False}}, *ones[:2]]})


def _case(devices: JSON) -> JSON:
    """Return a case in the generator's form: one node has the devices on one NUMA node, the other a few on each of two.

    Each request has few candidates: the allocator tries all combinations before it gives up a node.
    """
    slices = [*_slices("n0", [0] * (MOST + 1)), *_slices("n1", [0, 0, 1, 1])]
    claim = generator.claim(devices)
    return {"nodes": ["n0", "n1"], "classes": generator.CLASSES, "slices": slices, "claim": claim, "allocated": []}


def _slices(node: str, numa_nodes: list[int]) -> Iterator[JSON]:
    devices = [_device(index, numa) for index, numa in enumerate(numa_nodes)]
    yield generator.slice_of(node, "gpu", 0, devices, generation=1, count=1)


def _device(index: int, numa: int) -> JSON:
    attributes = {generator.NUMA: {"int": numa}, "index": {"int": index}}
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"m" * MOST: {"value": "1"}}}


def _request(name: str, count: int = 1, **more: Any) -> JSON:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count} | more}


def _several(name: str) -> JSON:
    alternatives = [
        {**_request("a", 1)["exactly"], "name": f"{index}{'a' * (LONGEST_NAME - 1)}"} for index in range(ALTERNATIVES)
    ]
    return {"name": name, "firstAvailable": alternatives}


def _config(names: list[str]) -> JSON:
    opaque = {"driver": "gpu.nvidia.com", "parameters": {"kind": "Config", "text": "x" * (LONGEST_PARAMETERS - 100)}}
    return ({"requests": names} if names else {}) | {"opaque": opaque}


def _selector(condition: str, length: int = 0) -> JSON:
    return {"cel": {"expression": f"device.attributes['gpu.nvidia.com'].{condition}".ljust(length)}}


def _tolerations() -> list[JSON]:
    return [{"key": f"example.com/{index}", "operator": "Exists", "effect": "NoSchedule"} for index in range(TOLERATIONS)]


CASES = tuple(_cases())

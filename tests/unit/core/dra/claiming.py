"""Slices, classes and claims for the tests of the claims' core."""

from __future__ import annotations

from typing import Any

import jsonpatch

from webhook.config.selectors import Selectors
from webhook.core.decision import Decision, Request
from webhook.core.dra import decide
from webhook.core.dra.devices import Device, DeviceClass, Inventory
from webhook.core.dra.slices import literal_devices
from webhook.core.policy import Policy
from webhook.core.snapshot import Snapshot

JSON = dict[str, Any]

NUMA = "resource.kubernetes.io/numaNode"
PCIE = "resource.kubernetes.io/pcieRoot"
GPU, NIC, CPU = "gpu.nvidia.com", "dra.net", "dra.cpu"
CLASSES = {
    "gpu": DeviceClass("gpu", (f"device.driver == '{GPU}'",)),
    "nic": DeviceClass("nic", (f"device.driver == '{NIC}'",)),
    "cpu": DeviceClass("cpu", (f"device.driver == '{CPU}'",)),
}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": "1", "controller": True}


def value(raw: Any) -> JSON:
    kind = "bool" if isinstance(raw, bool) else "int" if isinstance(raw, int) else "ints" if isinstance(raw, list) else "string"
    return {kind: raw}


def device(name: str, more: JSON | None = None, **attributes: Any) -> JSON:
    """A device with attributes by their short names: `numa` and `pcie` are the standard ones."""
    short = {"numa": NUMA, "pcie": PCIE}
    found = {short.get(key, key): value(each) for key, each in attributes.items()} | {
        key: value(each) for key, each in (more or {}).items()
    }
    return {"name": name, "attributes": found}


def spec(driver: str, *devices: JSON, **more: Any) -> JSON:
    """The spec of a slice that is a pool of its own."""
    return (
        {"driver": driver, "pool": {"name": f"{driver}-pool", "generation": 1, "resourceSliceCount": 1}}
        | {"devices": list(devices)}
        | more
    )


def on(driver: str, *nodes: int | None) -> JSON:
    """A slice with a device for each NUMA node named; None: a device that does not say."""
    made = [device(f"d{i}", **({} if node is None else {"numa": node})) for i, node in enumerate(nodes)]
    return spec(driver, *made)


def inventory(**nodes: list[JSON]) -> Inventory:
    """Node -> its slices."""
    selectors = Selectors()
    devices = {name: literal_devices(slices) for name, slices in nodes.items()}
    return Inventory(devices, CLASSES, matches=selectors, fails=selectors.fails)


def devices(*slices: JSON) -> tuple[Device, ...]:
    return literal_devices(slices)


def request(name: str, count: int = 1, cls: str = "", **more: Any) -> JSON:
    return {"name": name, "exactly": {"deviceClassName": cls or name, "allocationMode": "ExactCount", "count": count} | more}


def claim(*requests: JSON, owned: bool = True, **devices: Any) -> JSON:
    metadata: JSON = {"name": "c", "namespace": "research"} | ({"ownerReferences": [OWNER]} if owned else {})
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": list(requests)} | devices},
    }


def snapshot(known: Inventory, **policy: Any) -> Snapshot:
    return Snapshot(Policy(**policy), inventory=known)


def mutated(made: JSON, known: Inventory, mode: str = "strict", **policy: Any) -> tuple[JSON, Decision]:
    """The claim as the API server has it after our mutation, and the decision."""
    decision = decide.mutate_claim(made, Request(label=mode), snapshot(known, **policy))
    return jsonpatch.apply_patch(made, list(decision.patch)), decision


def validated(made: JSON, known: Inventory, mode: str = "strict", **policy: Any) -> Decision:
    return decide.validate_claim(made, Request(label=mode), snapshot(known, **policy))

"""Extended resources that DRA serves (KEP-5004): a pod names a resource, and the scheduler makes the claim itself.

That claim has no constraints and is allocated when it is created, so nothing that a webhook does to it has an effect. A node
whose plugins list the resource serves it by them, any other one by DRA (`plugins/dynamicresources/extendeddynamicresources.go`).
"""

from __future__ import annotations

from typing import Final

from webhook.core.dra.devices import DeviceClass, Inventory
from webhook.core.kubelet.node import NodeKubelet

_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
_GATE: Final = "DRAExtendedResource"
_ON_SINCE: Final = 36


def serving_classes(resource: str, inventory: Inventory) -> tuple[str, ...]:
    """Return the DeviceClasses that serve an extended resource with a device of some described node, sorted."""
    found: tuple[str, ...] = inventory.remembered.get(("serving", resource), lambda: tuple(_serving(resource, inventory)))
    return found


def _serving(resource: str, inventory: Inventory) -> list[str]:
    named = (each for _, each in sorted(inventory.classes.items()) if resource in {each.extended_resource, _IMPLICIT + each.name})
    return [each.name for each in named if _has_devices(each, inventory)]


def _has_devices(device_class: DeviceClass, inventory: Inventory) -> bool:
    return any(
        all(inventory.matches(selector, device) for selector in device_class.selectors)
        for devices in inventory.nodes.values()
        for device in devices
    )


def backing_class(resource: str, inventory: Inventory) -> str:
    """Return the DeviceClass that serves an extended resource with a device of some described node; empty: none does."""
    return next(iter(serving_classes(resource, inventory)), "")


def is_served_by(node: NodeKubelet) -> bool:
    """Tell whether a class has DRA devices, and the gate is on that lets them serve extended resources: so it is from 1.36 on."""
    gates = node.node_class.kubelet.get("featureGates")
    written = gates.get(_GATE) if isinstance(gates, dict) else None
    return bool(node.node_class.devices) and (node.minor >= _ON_SINCE if written is None else written is True)

"""Hugepages for device containers, where the policy wants them: so many bytes for each accelerator, requests = limits."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.core.containers import Container, Path, Pod
from webhook.core.edit import put
from webhook.core.kubelet.node import hugepages_resource
from webhook.core.policy import HugepageRules
from webhook.core.quantities import format_bytes
from webhook.core.resource_names import is_hugepages
from webhook.core.shape.scene import Scene, is_pod_level


def with_hugepages(pod: Pod, scene: Scene) -> Pod:
    """Return the pod with hugepages; the same pod where none are due.

    None are due where a candidate has not enough of them on one NUMA node, for nothing may narrow the choice.
    """
    rules = scene.policy.hugepages
    if not rules.per_accelerator or is_pod_level(scene.pod):
        return pod
    due = {container.path: _bytes(container, scene.units, rules) for container in scene.containers if _wants(container, scene)}
    if not due or not all(_has(scene, rules.size, amount) for amount in due.values()):
        return pod
    resource = hugepages_resource(rules.size)
    for path, amount in due.items():
        for side in ("requests", "limits"):
            pod = put(pod, (*path, "resources", side, resource), format_bytes(amount))
    return pod


def _wants(container: Container, scene: Scene) -> bool:
    asked = (*container.quantities("requests"), *container.quantities("limits"))
    return container.path in scene.bearers and container.path in scene.units and not any(is_hugepages(name) for name in asked)


def _bytes(container: Container, units: Mapping[Path, Mapping[str, int]], rules: HugepageRules) -> int:
    """Return whole pages."""
    return -(-rules.per_accelerator * sum(units[container.path].values()) // rules.size) * rules.size


def _has(scene: Scene, size: int, amount: int) -> bool:
    return all(any(cell.hugepages.get(size, 0) >= amount for cell in each.node.machine.cells) for each in scene.candidates)

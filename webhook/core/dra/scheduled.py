"""The claim that the scheduler makes for extended resources which DRA serves on a node.

Source: `plugins/dynamicresources/extendeddynamicresources.go` (createRequestsAndMappings).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from webhook.core.accelerators import Ask
from webhook.core.containers import Kind, Pod
from webhook.core.dra.asked import Asked
from webhook.core.dra.candidates import wanted
from webhook.core.dra.claims import DeviceRequest
from webhook.core.dra.demand import Demand, Need
from webhook.core.dra.devices import Inventory
from webhook.core.dra.extended import serving_classes

_CLAIM: Final = "extended resources"
"""Stands for the name of that claim; no entry of a pod can be called so."""


def by_scheduler(pod: Pod, asks: Iterable[Ask], node: str, inventory: Inventory) -> Asked:
    """Return what the scheduler's own claim will ask for: a request for each container and resource, in the order of its names.

    What the node has no device of is left out. Ordinary init containers use again what others get, which is not followed.
    """
    names = [raw.get("name") for field in ("initContainers", "containers") for raw in pod["spec"].get(field) or ()]
    found: list[tuple[Ask, Need]] = []
    simple = True
    for ask in asks:
        classes = serving_classes(ask.resource, inventory)
        name = f"container-{names.index(ask.container.name)}-{ask.resource}"
        way = wanted(DeviceRequest(0, name, {}, class_name=classes[0], count=ask.units), inventory)
        simple = simple and len(classes) == 1 and ask.container.kind is not Kind.INIT
        if way.nodes.get(node):
            found.append((ask, Need(_CLAIM, name, (way,))))
    found.sort(key=lambda each: each[1].name)
    uses: dict[str, tuple[tuple[str, str], ...]] = {}
    for ask, need in found:
        uses[ask.container.name] = (*uses.get(ask.container.name, ()), (need.claim, need.name))
    return Asked(Demand(tuple(need for _, need in found), exact=simple), uses, tuple(found))

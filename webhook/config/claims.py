"""DRA objects among the files: DeviceClasses and ResourceSlices as the cluster has them, and the inventory that comes of them.

`kubectl get deviceclasses,resourceslices -o yaml` is such a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from webhook.config.catalogue import catalog_directory
from webhook.config.documents import ConfigError, Document, read_file
from webhook.config.selectors import Selectors
from webhook.core.dra.devices import DeviceClass, Inventory, device_class, distinct
from webhook.core.dra.slices import class_problems, devices_by_node, spec_problems
from webhook.core.model import NodeClass

_GROUP: Final = "resource.k8s.io/"
_KINDS: Final = frozenset({"DeviceClass", "ResourceSlice"})


def is_cluster_object(value: Any) -> bool:
    """Tell whether a document is one that this module reads."""
    return isinstance(value, Mapping) and value.get("kind") in _KINDS and str(value.get("apiVersion", "")).startswith(_GROUP)


@dataclass(slots=True)
class ClusterObjects:
    """What was found so far."""

    classes: dict[str, DeviceClass] = field(default_factory=dict)
    slices: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, document: Document) -> list[ConfigError]:
        """Take a document for which `is_cluster_object` holds, or return why it cannot be read."""
        value, path = document.value, ("spec",) if document.value["kind"] == "ResourceSlice" else ()
        found = class_problems(value) if value["kind"] == "DeviceClass" else spec_problems(value.get("spec"), path)
        errors = [document.error(problem.path, problem.message) for problem in found]
        if errors:
            return errors
        if value["kind"] == "DeviceClass":
            self.classes[value["metadata"]["name"]] = device_class(value)
        else:
            self.slices.append(value["spec"])
        return []

    def inventory(self, node_classes: Iterable[NodeClass]) -> Inventory:
        """Return the devices of node classes and of the cluster's nodes, each kind of node once."""
        by_node = devices_by_node(self.slices)
        everywhere = by_node.pop("", ())
        nodes = distinct({node: (*devices, *everywhere) for node, devices in by_node.items()})
        described = {each.name: each.devices for each in node_classes if each.devices}
        selectors = Selectors()
        classes = {**shipped_classes(), **self.classes}
        return Inventory({**nodes, **described}, classes, bool(described), selectors, selectors.fails)


@lru_cache(maxsize=1)
def shipped_classes() -> Mapping[str, DeviceClass]:
    """Return the DeviceClasses that drivers install; that they are well-formed is a matter of the tests."""
    documents, errors = read_file(catalog_directory() / "deviceclasses.yaml")
    if errors or len(documents) != 1:
        raise ValueError(f"the shipped device classes are broken: {'; '.join(map(str, errors)) or 'expected one document'}")
    return {raw["metadata"]["name"]: device_class(raw) for raw in documents[0].value["items"]}

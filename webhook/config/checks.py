"""What decides, beyond its shape, whether a node class may be used: does its kubelet start, is it told apart from others?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from webhook.config.documents import ConfigError, ConfigWarning, Document
from webhook.config.nodeclass_schema import HAMI_RESOURCE
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.model import MINORS, NodeClass
from webhook.core.quantities import format_bytes

Found = Sequence[tuple[NodeKubelet, Document]]


def class_errors(kubelet: NodeKubelet, document: Document) -> list[ConfigError]:
    """Return why a class of good shape must not be used."""
    if kubelet.start is not None:
        return [document.error(("spec", "kubelet"), f"the kubelet would not start: {kubelet.start}")]
    return list(_wrapped_memory(kubelet, document))


def _wrapped_memory(kubelet: NodeKubelet, document: Document) -> Iterator[ConfigError]:
    """Yield nodes that reserve more than they have: the kubelet's subtraction wraps around, and they look infinite.

    Nothing in `memorymanager/policy_static.go` checks it.
    """
    reserved = kubelet.config.memory_manager_reserved or {}
    if not kubelet.config.memory_static:
        return
    for node in kubelet.node_class.topology.numa_nodes:
        pages = sum(node.hugepages.values())
        wanted = reserved.get(node.id, {}).get("memory", 0)
        if wanted + pages > node.memory:
            free = format_bytes(max(node.memory - pages, 0))
            yield document.error(
                ("spec", "kubelet", "reservedMemory"),
                f"NUMA node {node.id}: {format_bytes(wanted)} reserved, but only {free} are there besides hugepages; "
                "the kubelet would take the node's memory for infinite",
            )


def class_warnings(kubelet: NodeKubelet, document: Document) -> list[ConfigWarning]:
    """Return what deserves a look in a class that can be used."""
    return [*_version_warnings(document), *_hami_warnings(kubelet.node_class, document)]


def _version_warnings(document: Document) -> Iterator[ConfigWarning]:
    stated = str(document.value["spec"].get("kubernetes") or f"1.{MINORS[-1]}")
    minor = int(stated.lstrip("v").split(".")[1].partition("-")[0])
    if minor not in MINORS:
        nearest = MINORS[0] if minor < MINORS[0] else MINORS[-1]
        yield document.warning(
            ("spec", "kubernetes"), f"the rules of {stated} are not known; those of 1.{nearest} are used, which may differ"
        )


def _hami_warnings(node_class: NodeClass, document: Document) -> Iterator[ConfigWarning]:
    hami, topology = node_class.hami, node_class.topology
    if hami is None or hami.numa_topology or not any(HAMI_RESOURCE in node.devices for node in topology.numa_nodes):
        return
    yield document.warning(
        ("spec", "hami", "numaTopology"),
        f"is off, so HAMi's plugin reports no NUMA node: move {HAMI_RESOURCE} to devicesWithoutTopology, or turn it on",
    )


def conflicts(found: Found) -> list[ConfigError]:
    """Return pairs of classes that a node could belong to at once, and names that stand twice."""
    errors: list[ConfigError] = []
    for index, (kubelet, document) in enumerate(found):
        for other, elsewhere in found[:index]:
            errors.extend(_conflict(kubelet.node_class, document, other.node_class, elsewhere))
    return errors


def _conflict(one: NodeClass, document: Document, other: NodeClass, elsewhere: Document) -> Iterator[ConfigError]:
    where = f"{elsewhere.file}:{elsewhere.line(('metadata', 'name'))}"
    if one.name == other.name:
        yield document.error(("metadata", "name"), f"{one.name!r} is the name of another class, at {where}")
    elif could_share_a_node(one, other):
        yield document.error(
            ("spec", "selector"),
            f"a node could belong to both {one.name} and {other.name} ({where}); "
            "give them different values of one label, in selector or labels",
        )


def could_share_a_node(one: NodeClass, other: NodeClass) -> bool:
    """Tell whether some node could carry what both classes say of their nodes' labels."""
    mine: Mapping[str, str] = {**one.labels, **one.selector}
    theirs: Mapping[str, str] = {**other.labels, **other.selector}
    return all(theirs.get(key, value) == value for key, value in mine.items())

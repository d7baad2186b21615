"""What decides, beyond its shape, whether a node class may be used: does its kubelet start, is it told apart from others?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from webhook.config.catalogue import catalog_directory
from webhook.config.documents import ConfigError, ConfigWarning, Document
from webhook.config.fields import suggestion
from webhook.config.nodeclass_schema import HAMI_RESOURCE
from webhook.core.kubelet.cost import HOPELESS, SLOW, duration, hinting_nodes, merge_seconds
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.model import MINORS, NodeClass, Topology

_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\]]*)\]|([^.\[\]]+)")

_MINUTES_FROM: Final = 120.0

Found = Sequence[tuple[NodeKubelet, Document]]


def class_errors(kubelet: NodeKubelet, document: Document) -> list[ConfigError]:
    """Return why a class of good shape must not be used: no selector, or a kubelet that would not start, and what would do."""
    errors = [
        document.error(("spec", "kubelet", *_steps(error.path)), f"the kubelet would not start: {error}")
        for error in kubelet.errors
    ]
    if not kubelet.node_class.selector:
        errors.append(document.error(("spec", "selector"), "expected at least one label that marks the class's nodes"))
    return errors


def _steps(path: str) -> Iterator[str | int]:
    """Take a path such as `reservedMemory[0].limits[memory]` apart."""
    for index, bracketed, name in _STEP.findall(path):
        yield int(index) if index else bracketed or name


def class_warnings(kubelet: NodeKubelet, document: Document) -> list[ConfigWarning]:
    """Return what deserves a look in a class that can be used."""
    node_class = kubelet.node_class
    return [
        *_version_warnings(document),
        *_ignored_fields(node_class, document),
        *_hami_warnings(node_class, document),
        *_slow_merge(kubelet, document),
    ]


def _version_warnings(document: Document) -> Iterator[ConfigWarning]:
    stated = str(document.value["spec"].get("kubernetes") or f"1.{MINORS[-1]}")
    minor = int(stated.lstrip("v").split(".")[1].partition("-")[0])
    if minor not in MINORS:
        nearest = MINORS[0] if minor < MINORS[0] else MINORS[-1]
        yield document.warning(
            ("spec", "kubernetes"), f"the rules of {stated} are not known; those of 1.{nearest} are used, which may differ"
        )


def _ignored_fields(node_class: NodeClass, document: Document) -> Iterator[ConfigWarning]:
    """Yield fields that no KubeletConfiguration has: the kubelet logs them and goes on (`kubeletconfig/util/codec/codec.go`)."""
    known = kubelet_fields()
    for name in node_class.kubelet:
        if name not in known:
            hint = suggestion(name, known)
            yield document.warning(
                ("spec", "kubelet", str(name)), f"is no field of a KubeletConfiguration; the kubelet ignores it{hint}"
            )


@lru_cache(maxsize=1)
def kubelet_fields() -> frozenset[str]:
    """Return the fields of a KubeletConfiguration (`k8s.io/kubelet/config/v1beta1/types.go`, 1.34 to 1.37)."""
    return frozenset((catalog_directory() / "kubelet-fields.txt").read_text(encoding="utf-8").split())


def _hami_warnings(node_class: NodeClass, document: Document) -> Iterator[ConfigWarning]:
    hami, topology = node_class.hami, node_class.topology
    if hami is None or hami.numa_topology or not any(HAMI_RESOURCE in node.devices for node in topology.numa_nodes):
        return
    yield document.warning(
        ("spec", "hami", "numaTopology"),
        f"is off, so HAMi's plugin reports no NUMA node: move {HAMI_RESOURCE} to devicesWithoutTopology, or turn it on",
    )


def _slow_merge(kubelet: NodeKubelet, document: Document) -> Iterator[ConfigWarning]:
    seconds = merge_seconds(kubelet)
    if seconds <= SLOW:
        return
    time = duration(seconds) if seconds >= _MINUTES_FROM else f"{seconds:.0f} seconds"
    fate = "; where it would be busy for more than ten minutes, verdicts are unknown" if seconds > HOPELESS else ""
    resources = ", ".join(hinting_nodes(kubelet))
    yield document.warning(
        ("spec", "kubelet", "topologyManagerPolicy"),
        f"the kubelet itself may need {time} to find the NUMA nodes of one pod that asks for all of {resources}; "
        f"single-numa-node is quick, and so is a pod that asks for fewer of them{fate}",
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
    """Tell whether some node could carry what both classes say of their nodes' labels.

    Classes without a device resource in common are told apart by their hardware: no pod has both for candidates.
    """
    mine: Mapping[str, str] = {**one.labels, **one.selector}
    theirs: Mapping[str, str] = {**other.labels, **other.selector}
    alike = all(theirs.get(key, value) == value for key, value in mine.items())
    return alike and not _devices(one.topology).isdisjoint(_devices(other.topology))


def _devices(topology: Topology) -> set[str]:
    on_nodes = (resource for node in topology.numa_nodes for resource in node.devices)
    spread = (devices.resource for devices in topology.devices_on_several_nodes)
    return {*on_nodes, *spread, *topology.devices_without_topology}

"""The NodeClass document (DESIGN section 6): its shape, and what can be judged without knowing the kubelet."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from marshmallow import ValidationError, fields, post_load, pre_load, validates_schema

from webhook.config.fields import (
    REQUIRED,
    Bytes,
    Choice,
    Count,
    Entries,
    Expect,
    Flag,
    Items,
    MilliCpu,
    ObjectName,
    Quantity,
    ResourceName,
    Strict,
    Text,
    device_counts,
    is_label_value,
    is_qualified_name,
    labels,
)
from webhook.config.slices_field import SlicesField
from webhook.core.kubelet.machine import number_cpus
from webhook.core.kubelet.node import nearest_minor
from webhook.core.model import MINORS, Hami, NodeClass, NumaNode, SpreadDevices, Taint, Topology
from webhook.core.quantities import format_bytes, value

API_VERSION: Final = "numalign.io/v1alpha1"
MAX_CPUS: Final = 8192
MAX_NUMA_NODES: Final = 1024
"""What Linux supports (CONFIG_NR_CPUS, CONFIG_NODES_SHIFT); more is a slip of the pen."""

HAMI_RESOURCE: Final = "nvidia.com/gpu"
_MINOR: Final = re.compile(r"v?1\.(\d{1,3})(\.\d+)?([-+].*)?")
_RUN: Final = re.compile(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*")

Cpus = int | tuple[int, ...]
"""What `cpus` says: a count, or the ids."""


class CpuField(Expect[Cpus]):
    """CPU ids as Linux lists them (`0-55,112-167`), or how many there are."""

    expected = "a CPU list such as 0-55,112-167, or a number of CPUs"

    def convert(self, raw: Any) -> Cpus:
        """Convert; see `Expect`."""
        if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= MAX_CPUS:
            return raw
        if not isinstance(raw, str):
            raise self.refuse(raw)
        ids: list[int] = []
        for run in raw.split(",") if raw.strip() else ():
            ids.extend(self._run(run, raw))
        if len(set(ids)) != len(ids):
            raise ValidationError("lists a CPU twice")
        return tuple(sorted(ids))

    def _run(self, run: str, raw: str) -> range:
        match = _RUN.fullmatch(run)
        if match is None:
            raise self.refuse(raw)
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        if last < first or last >= MAX_CPUS:
            raise self.refuse(raw)
        return range(first, last + 1)


class PageSize(Quantity):
    """A hugepage size, in bytes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(value, "2Mi or 1Gi", **kwargs)
        self.expected = "a page size such as 2Mi or 1Gi (a power of two)"

    def convert(self, raw: Any) -> int:
        """Convert; see `Expect`."""
        size = super().convert(raw)
        if size <= 0 or size & (size - 1):
            raise self.refuse(raw)
        return size


class MinorField(Expect[int]):
    """A Kubernetes version; its minor is what counts."""

    expected = 'a version such as "1.37", in quotes'

    def convert(self, raw: Any) -> int:
        """Convert; see `Expect`."""
        match = _MINOR.fullmatch(raw) if isinstance(raw, str) else None
        if match is None:
            raise self.refuse(raw)
        return int(match.group(1))


class NumaNodeSchema(Strict):
    """One NUMA node; `load` gives its fields, for `TopologySchema` numbers the CPUs of all nodes at once."""

    id = Count(0, MAX_NUMA_NODES - 1, required=True)
    cpus = CpuField(load_default=0)
    memory = Bytes(required=True)
    hugepages = Entries(PageSize(), Bytes(), load_default=dict)
    distances = Items(Count(1, 255), load_default=())
    devices = device_counts(load_default=dict)

    @pre_load
    def drop_nulls(self, data: Any, **_: Any) -> Any:
        """Treat null as absent, and put a CPU list together that YAML has taken apart at its commas.

        In braces, `{cpus: 0-55,112-167}` without quotes reads as `cpus: 0-55` and a key `112-167` without a value.
        """
        if not isinstance(data, Mapping):
            return data
        runs = [str(key) for key, item in data.items() if item is None and _RUN.fullmatch(str(key))]
        known = {key: item for key, item in data.items() if item is not None}
        return {**known, "cpus": ",".join([str(data["cpus"]), *runs])} if runs and "cpus" in known else known

    @validates_schema(skip_on_field_errors=True)
    def fit_hugepages(self, data: Mapping[str, Any], **_: Any) -> None:
        """Hugepages are whole pages and part of the node's memory."""
        errors = [
            f"{format_bytes(amount)} is no whole number of pages of {format_bytes(size)}"
            for size, amount in data["hugepages"].items()
            if amount % size
        ]
        total = sum(data["hugepages"].values())
        if total > data["memory"]:
            memory = format_bytes(data["memory"])
            errors.append(f"take {format_bytes(total)}, but the node has {memory} of memory, pages included")
        if errors:
            raise ValidationError({"hugepages": errors})


class SpreadSchema(Strict):
    """Devices that report several NUMA nodes."""

    resource = ResourceName(required=True)
    count = Count(1, required=True)
    numa_nodes = Items(Count(0, MAX_NUMA_NODES - 1), least=2, required=True, data_key="numaNodes")

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> SpreadDevices:
        """Return the model's form."""
        return SpreadDevices(data["resource"], data["count"], tuple(sorted(data["numa_nodes"])))


class TopologySchema(Strict):
    """The machine. What concerns several nodes at once is checked here."""

    sockets = Count(1, MAX_CPUS, load_default=1)
    threads_per_core = Count(1, 8, load_default=1, data_key="threadsPerCore")
    numa_nodes = fields.List(
        fields.Nested(NumaNodeSchema),
        required=True,
        data_key="numaNodes",
        error_messages={"required": "is required", "invalid": "expected a list of NUMA nodes"},
    )
    devices_without_topology = device_counts(load_default=dict, data_key="devicesWithoutTopology")
    devices_on_several_nodes = fields.List(
        fields.Nested(SpreadSchema),
        load_default=list,
        data_key="devicesOnSeveralNodes",
        error_messages={"invalid": "expected a list of resource, count and numaNodes"},
    )
    cpu_numbering = Choice(("split", "adjacent"), load_default="split", data_key="cpuNumbering")
    cores_per_uncore_cache = Count(1, MAX_CPUS, load_default=None, data_key="coresPerUncoreCache")

    @validates_schema(skip_on_field_errors=True)
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        """Check what concerns several NUMA nodes."""
        errors: dict[str, Any] = {"numaNodes": _node_errors(data), "devicesOnSeveralNodes": _spread_errors(data)}
        cores = sum(_size(node["cpus"]) for node in data["numa_nodes"]) // data["threads_per_core"]
        if not cores:
            errors["numaNodes"]["_schema"] = ["expected at least one NUMA node with CPUs"]
        elif data["sockets"] > cores:
            errors["sockets"] = [f"{data['sockets']} sockets, but only {cores} cores to spread over them"]
        if errors := {field: found for field, found in errors.items() if found}:
            raise ValidationError(errors)

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> Topology:
        """Return the model's form, with an id for each CPU."""
        nodes = sorted(data["numa_nodes"], key=lambda node: int(node["id"]))
        adjacent = data["cpu_numbering"] == "adjacent"
        cpus = _numbered([node["cpus"] for node in nodes], data["threads_per_core"], adjacent=adjacent)
        return Topology(
            sockets=data["sockets"],
            threads_per_core=data["threads_per_core"],
            numa_nodes=tuple(_node(node, ids) for node, ids in zip(nodes, cpus, strict=True)),
            devices_without_topology=data["devices_without_topology"],
            devices_on_several_nodes=tuple(data["devices_on_several_nodes"]),
            adjacent_siblings=adjacent,
            cores_per_uncore_cache=data["cores_per_uncore_cache"],
        )


def _numbered(cpus: list[Cpus], threads: int, *, adjacent: bool) -> Sequence[tuple[int, ...]]:
    """Return each node's CPU ids: the listed ones, or as the kubelet's machine numbers them where only counts are given."""
    if any(isinstance(mine, tuple) and mine for mine in cpus):
        return [mine if isinstance(mine, tuple) else () for mine in cpus]
    return number_cpus([_size(mine) for mine in cpus], threads, adjacent=adjacent)


def _size(cpus: Cpus) -> int:
    return cpus if isinstance(cpus, int) else len(cpus)


def _node(data: Mapping[str, Any], cpus: tuple[int, ...]) -> NumaNode:
    return NumaNode(data["id"], cpus, data["memory"], data["hugepages"], data["distances"], data["devices"])


def _spread_errors(data: Mapping[str, Any]) -> dict[int, Any]:
    known = {node["id"] for node in data["numa_nodes"]}
    missing = {index: sorted(set(spread.numa_nodes) - known) for index, spread in enumerate(data["devices_on_several_nodes"])}
    return {index: {"numaNodes": [f"NUMA node {nodes[0]} does not exist"]} for index, nodes in missing.items() if nodes}


def _node_errors(data: Mapping[str, Any]) -> dict[Any, Any]:
    nodes, threads = data["numa_nodes"], data["threads_per_core"]
    listed = any(isinstance(node["cpus"], tuple) and node["cpus"] for node in nodes)
    errors: dict[Any, Any] = {}
    ids: dict[int, int] = {}
    owner: dict[int, int] = {}
    for index, node in enumerate(nodes):
        found: dict[str, list[str]] = {}
        if node["id"] in ids:
            found["id"] = [f"NUMA node {node['id']} stands at numaNodes[{ids[node['id']]}] already"]
        ids.setdefault(node["id"], index)
        if problem := _cpu_problem(node, owner, threads, listed=listed):
            found["cpus"] = [problem]
        if node["distances"] and len(node["distances"]) != len(nodes):
            rows = f"expected {len(nodes)} distances, one to each NUMA node in their order, got {len(node['distances'])}"
            found["distances"] = [rows]
        if found:
            errors[index] = found
    return errors


def _cpu_problem(node: Mapping[str, Any], owner: dict[int, int], threads: int, *, listed: bool) -> str:
    """Return what is wrong with one node's CPUs, else an empty text; `owner` learns whose each CPU is."""
    cpus = node["cpus"]
    if _size(cpus) % threads:
        return f"{_size(cpus)} CPUs are no whole number of cores at threadsPerCore {threads}"
    if isinstance(cpus, int):
        return "expected a list of CPU ids, as on the other NUMA nodes, or a number on every one" if listed and cpus else ""
    taken = [cpu for cpu in cpus if owner.setdefault(cpu, node["id"]) != node["id"]]
    return f"CPU {taken[0]} is on NUMA node {owner[taken[0]]} already" if taken else ""


class TaintSchema(Strict):
    """A taint that all nodes of the class carry."""

    key = Text("a taint key such as nvidia.com/gpu", is_qualified_name, required=True)
    value = Text("a label value", is_label_value, load_default="")
    effect = Choice(("NoSchedule", "PreferNoSchedule", "NoExecute"), required=True)

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> Taint:
        """Return the model's form."""
        return Taint(data["key"], data["value"], data["effect"])


class DaemonSetsSchema(Strict):
    """What DaemonSets and static pods request on each node."""

    cpu = MilliCpu(load_default=0)
    memory = Bytes(load_default=0)


class HamiSchema(Strict):
    """How HAMi runs on the class."""

    mode = Choice(("hami-core", "mig", "mps"), load_default="hami-core")
    numa_topology = Flag(load_default=False, data_key="numaTopology")
    device_split_count = Count(1, load_default=10, data_key="deviceSplitCount")
    refit = Flag(load_default=False)

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> Hami:
        """Return the model's form."""
        return Hami(data["mode"], data["numa_topology"], data["device_split_count"], data["refit"])


class KubeletField(Expect[dict[str, Any]]):
    """A KubeletConfiguration excerpt, kept as it is: the kubelet's own rules judge it."""

    expected = "fields of a KubeletConfiguration"

    def convert(self, raw: Any) -> dict[str, Any]:
        """Convert; see `Expect`."""
        if not isinstance(raw, Mapping):
            raise self.refuse(raw)
        if raw.keys() == {"kubeletconfig"}:  # what a node's /configz answers, whole
            raise ValidationError(f"expected {self.expected}: paste what stands below kubeletconfig")
        return dict(raw)


class SpecSchema(Strict):
    """`spec` of a NodeClass. Only loading wants a selector (`checks`): to judge a pod on one class takes none."""

    selector = labels(load_default=dict)
    labels = labels(load_default=dict)
    taints = fields.List(
        fields.Nested(TaintSchema), load_default=list, error_messages={"invalid": "expected a list of taints: key, value, effect"}
    )
    kubernetes = MinorField(load_default=MINORS[-1])
    topology = fields.Nested(TopologySchema, required=True, error_messages=REQUIRED)
    kubelet = KubeletField(load_default=dict)
    daemon_sets = fields.Nested(DaemonSetsSchema, load_default=lambda: {"cpu": 0, "memory": 0}, data_key="daemonSets")
    sharing = device_counts(1, load_default=dict)
    device_specs = Choice(("passed", "notPassed", "unknown"), load_default="unknown", data_key="deviceSpecs")
    hami = fields.Nested(HamiSchema, load_default=None)
    resource_slices = SlicesField(load_default=None, data_key="resourceSlices")
    source = Text("a text that says where the figures come from", load_default="")

    @validates_schema(skip_on_field_errors=True)
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        """Check what concerns several parts of the class."""
        errors: dict[str, Any] = {}
        for key, text in data["labels"].items():
            if data["selector"].get(key, text) != text:
                errors.setdefault("labels", {})[key] = [f"is {data['selector'][key]!r} in spec.selector; it cannot be both"]
        hami, sharing = data["hami"], data["sharing"]
        if hami and sharing.get(HAMI_RESOURCE, hami.device_split_count) != hami.device_split_count:
            split = f"is {sharing[HAMI_RESOURCE]}, but hami.deviceSplitCount, which says the same, is {hami.device_split_count}"
            errors["sharing"] = {HAMI_RESOURCE: [split]}
        if errors:
            raise ValidationError(errors)


class MetadataSchema(Strict):
    """What of an object's metadata a file may carry."""

    name = ObjectName(required=True)
    labels = labels(load_default=dict)
    annotations = Entries(Text(), Text(matches=lambda _: True), load_default=dict)


class NodeClassSchema(Strict):
    """A NodeClass document; `load` returns a `model.NodeClass`."""

    expected = "a NodeClass document"

    api_version = Choice((API_VERSION,), required=True, data_key="apiVersion")
    kind = Choice(("NodeClass",), required=True)
    metadata = fields.Nested(MetadataSchema, required=True, error_messages=REQUIRED)
    spec = fields.Nested(SpecSchema, required=True, error_messages=REQUIRED)

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> NodeClass:
        """Return the model's form."""
        spec = data["spec"]
        return NodeClass(
            name=data["metadata"]["name"],
            selector=spec["selector"],
            topology=spec["topology"],
            labels=spec["labels"],
            taints=tuple(spec["taints"]),
            minor=nearest_minor(spec["kubernetes"]),
            kubelet=spec["kubelet"],
            daemon_cpu=spec["daemon_sets"]["cpu"],
            daemon_memory=spec["daemon_sets"]["memory"],
            sharing=_sharing(spec["sharing"], spec["hami"]),
            device_specs=spec["device_specs"],
            hami=spec["hami"],
            devices=spec["resource_slices"],
            source=spec["source"],
        )


def _sharing(stated: Mapping[str, int], hami: Hami | None) -> Mapping[str, int]:
    """Return replicas per device; HAMi advertises each GPU deviceSplitCount times, whether or not `sharing` says so too."""
    if hami is None or hami.mode == "mig" or HAMI_RESOURCE in stated:
        return stated
    return {**stated, HAMI_RESOURCE: hami.device_split_count}

"""ResourceSlices and DeviceClasses in files, and in node classes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.conformance.tables import JSON, m112
from tests.unit.core.dra.claiming import GPU, device, on, spec
from webhook.config.claims import shipped_classes
from webhook.config.load import LoadedClasses, load_classes
from webhook.config.selectors import Selectors
from webhook.core.dra.devices import Attribute, Device, Type

SELECTORS = Selectors()


def load(path: Path, *objects: JSON) -> LoadedClasses:
    (path / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    return load_classes([path])


def slice_of(raw: JSON, name: str = "s") -> JSON:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": raw}


def device_class(name: str, expression: str) -> JSON:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def test_a_list_as_kubectl_prints_it(tmp_path: Path) -> None:
    items = [slice_of(on(GPU, 0, 1) | {"nodeName": "a"}), device_class("mine", "true"), device_class("gpu.nvidia.com", "false")]
    loaded = load(tmp_path, {"apiVersion": "v1", "kind": "List", "items": items})
    assert loaded.errors == ()
    assert [each.name for each in loaded.inventory.nodes["a"]] == ["d0", "d1"]
    assert loaded.inventory.classes["mine"].selectors == ("true",)
    assert loaded.inventory.classes["gpu.nvidia.com"].selectors == ("false",)
    assert "gpu.amd.com" in loaded.inventory.classes


def test_nodes_with_the_same_devices_count_once(tmp_path: Path) -> None:
    alike = [slice_of(on(GPU, 0, 1) | {"nodeName": name, "pool": {"name": name}}) for name in "cba"]
    loaded = load(tmp_path, *alike, slice_of(on(GPU, 0, 0) | {"nodeName": "d", "pool": {"name": "d"}}))
    assert sorted(loaded.inventory.nodes) == ["a", "d"]


def test_nodes_that_a_selector_could_tell_apart_are_two(tmp_path: Path) -> None:
    def nics(node: str, first: str, second: str) -> JSON:
        devices = [device(f"d{i}", {"ifName": name}, numa=i) for i, name in enumerate((first, second))]
        return slice_of(spec("dra.net", *devices, nodeName=node, pool={"name": node}))

    loaded = load(tmp_path, nics("a", "eth0", "eth1"), nics("b", "eth1", "eth0"))
    assert sorted(loaded.inventory.nodes) == ["a", "b"]


def test_old_generations_do_not_count_and_incomplete_pools_are_in_doubt(tmp_path: Path) -> None:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    old = slice_of(on(GPU, 0) | {"nodeName": "a", "pool": pool})
    new = slice_of(on(GPU, 1, 1) | {"nodeName": "a", "pool": pool | {"generation": 2}})
    found = load(tmp_path, old, new).inventory.nodes["a"]
    assert [(each.attributes["resource.kubernetes.io/numaNode"].value, each.certain) for each in found] == [(1, False)] * 2


def test_devices_of_no_node_are_in_doubt_on_every_node(tmp_path: Path) -> None:
    shared = slice_of(spec("fabric.example.com", device("f")) | {"allNodes": True})
    found = load(tmp_path, slice_of(on(GPU, 0) | {"nodeName": "a"}), shared).inventory.nodes["a"]
    assert [(each.driver, each.certain) for each in found] == [(GPU, True), ("fabric.example.com", False)]


def carrying(path: Path, *slices: JSON) -> LoadedClasses:
    document = m112({})
    document["metadata"] = {"name": "h100"}
    document["spec"] |= {"selector": {"class": "h100"}, "resourceSlices": list(slices)}
    return load(path, document)


def test_a_node_class_carries_its_slices(tmp_path: Path) -> None:
    loaded = carrying(tmp_path, on(GPU, 0, 1), slice_of(on("dra.net", 0)))
    assert loaded.errors == ()
    assert [each.driver for each in loaded.inventory.nodes["h100"]] == [GPU, GPU, "dra.net"]


def test_of_a_pool_in_a_node_class_the_highest_generation_counts(tmp_path: Path) -> None:
    pool = {"name": "p", "resourceSliceCount": 1}
    slices = [on(GPU, *nodes) | {"pool": pool | {"generation": generation}} for generation, nodes in ((2, (0,)), (1, (0, 1)))]
    assert [each.name for each in carrying(tmp_path, *slices).inventory.nodes["h100"]] == ["d0"]


def test_no_slices_are_not_the_same_as_none_that_are_known(tmp_path: Path) -> None:
    (none,) = carrying(tmp_path, *()).classes
    assert none.node_class.devices == ()
    document = m112({})
    document["spec"]["selector"] = {"class": "x"}
    (unknown,) = load(tmp_path, document).classes
    assert unknown.node_class.devices is None


@pytest.mark.parametrize(("more", "missing"), [({}, True), ({"nodeName": "a"}, True), ({"allNodes": True}, False)])
def test_a_pool_in_a_node_class_is_there_as_a_whole(tmp_path: Path, more: JSON, missing: bool) -> None:
    loaded = carrying(tmp_path, on(GPU, 0) | {"pool": {"name": "p", "generation": 3, "resourceSliceCount": 2}} | more)
    text = "spec.resourceSlices: pool p of gpu.nvidia.com has 2 slices, 1 of generation 3 here"
    assert [text in str(error) for error in loaded.errors] == [True] * missing


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (slice_of({"devices": []}), "spec.driver: expected the name of a DRA driver"),
        (slice_of({"driver": "d", "devices": {"a": 1}}), "spec.devices: expected a list"),
        (slice_of({"driver": "d", "devices": [{}]}), "spec.devices[0]: expected a device with a name"),
        (slice_of({"driver": "d", "pool": 1}), "spec.pool: expected a pool"),
        (
            slice_of({"driver": "d", "devices": [{"name": "x", "attributes": {"a": {"int": "0"}}}]}),
            "spec.devices[0].attributes.a: expected a value such as",
        ),
        (device_class("", "true"), "metadata.name: expected the name of the DeviceClass"),
        (device_class("x", "true") | {"spec": {"selectors": [{}]}}, "spec.selectors: expected a list of"),
        (device_class("x", "true") | {"spec": {"extendedResourceName": 1}}, "spec.extendedResourceName: expected"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, made: JSON, where: str) -> None:
    assert where in str(load(tmp_path, made).errors[0])


def test_shipped_selectors_compile_and_tell_types_apart() -> None:
    gpu = Device(GPU, "p", "d", {f"{GPU}/type": Attribute(Type.STRING, "gpu")})
    found = {
        name: all(SELECTORS(expression, gpu) for expression in each.selectors)
        for name, each in shipped_classes().items()
        if None not in [SELECTORS(expression, gpu) for expression in each.selectors]
    }
    assert found.keys() == shipped_classes().keys()
    assert [name for name, holds in found.items() if holds] == ["gpu.nvidia.com"]


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("device.driver == 'gpu.nvidia.com'", True),
        ("device.attributes['gpu.nvidia.com'].type == 'mig'", False),
        ("has(device.attributes['example.com'].nothing)", False),
        ("device.attributes['example.com'].nothing == 1", None),
        ("device.attributes['gpu.nvidia.com'].version == '1.0.0'", False),
        ("device.attributes['gpu.nvidia.com'].version.isGreaterThan(semver('1.0.0'))", None),
        ("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('1Gi')) > 0", None),
        ("1 in device.attributes['gpu.nvidia.com'].nodes", True),
        ("device.driver", None),
        ("((", None),
        ("", None),
        ("device.allowMultipleAllocations", False),
        ("true" + " " * 20_000, None),
    ],
)
def test_selectors(expression: str, answer: bool | None) -> None:
    attributes = {
        f"{GPU}/type": Attribute(Type.STRING, "gpu"),
        f"{GPU}/version": Attribute(Type.VERSION, "1.0.0"),
        f"{GPU}/nodes": Attribute(Type.LIST, (0, 1)),
    }
    assert SELECTORS(expression, Device(GPU, "p", "d", attributes, {f"{GPU}/memory": "40Gi"})) is answer

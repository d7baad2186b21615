"""The shipped node classes: each loads clean, says where its figures come from, and is the machine it says it is."""

import re

import pytest

from webhook.config.catalogue import catalog_directory, shipped_catalogue
from webhook.config.load import builtin_names, load_builtin_classes
from webhook.core.kubelet.admit import judge

GI = 1024**3
LOADED = {kubelet.node_class.name: kubelet for kubelet in load_builtin_classes().classes}
GPUS = {
    "aws-p4d-24xlarge": 8,
    "aws-p5-48xlarge": 8,
    "azure-nd96isr-h100-v5": 8,
    "dgx-a100": 8,
    "dgx-b200": 8,
    "dgx-h100": 8,
    "dgx-h200": 8,
    "epyc-nps4-mi210": 8,
    "gb200-tray": 4,
    "gcp-a3-highgpu-8g": 8,
    "mi300x-8gpu": 8,
    "rtx-pro-6000-hami": 8,
    "xe8545-a100-nps4": 4,
}


def gpu_counts(node_class):
    return [
        sum(count for name, count in node.devices.items() if shipped_catalogue().find(name).is_accelerator)
        for node in node_class.topology.numa_nodes
    ]


def test_all_load_without_errors_or_warnings_and_do_not_overlap():
    loaded = load_builtin_classes()
    assert (loaded.errors, loaded.warnings) == ((), ())
    assert set(LOADED) == set(builtin_names()) == set(GPUS), "the file is named as the class"


@pytest.mark.parametrize("name", GPUS)
def test_every_class_names_its_sources(name):
    source = LOADED[name].node_class.source
    assert len(source) > 200
    text = (catalog_directory() / "classes" / f"{name}.yaml").read_text()
    assert text.startswith("# "), "says in a line what machine it is"
    assert re.search(r"\w+/\w+|user guide|capture", source)


@pytest.mark.parametrize("name", GPUS)
def test_every_device_is_in_the_catalogue(name):
    topology = LOADED[name].node_class.topology
    devices = {resource for node in topology.numa_nodes for resource in node.devices} | set(topology.devices_without_topology)
    assert all(shipped_catalogue().find(resource) for resource in devices)


@pytest.mark.parametrize(("name", "gpus"), GPUS.items())
def test_gpus_are_all_there(name, gpus):
    assert sum(gpu_counts(LOADED[name].node_class)) == gpus


@pytest.mark.parametrize("name", GPUS)
def test_every_class_enforces_alignment_and_pins_cpus(name):
    config = LOADED[name].config
    assert config.topology_policy in {"restricted", "single-numa-node"}
    assert config.cpu_static


@pytest.mark.parametrize("name", GPUS)
def test_a_modest_gpu_pod_is_aligned_on_every_class(name):
    kubelet = LOADED[name]
    gpu = "amd.com/gpu" if "mi" in name.partition("-")[0] or "mi210" in name else "nvidia.com/gpu"
    amounts = {"cpu": "4", "memory": "16Gi", gpu: "1"}
    pod = {
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"limits": amounts, "requests": amounts}}]},
    }
    verdict = judge(kubelet, pod)
    assert (verdict.admitted, verdict.aligned, verdict.certain, verdict.unknown) == (True, True, True, "")


def test_a_gb200_tray_has_36_numa_nodes_of_which_two_have_cpus():
    nodes = LOADED["gb200-tray"].node_class.topology.numa_nodes
    assert len(nodes) == 36
    assert [node.id for node in nodes if node.cpus] == [0, 1]
    assert [node.id for node in nodes if node.memory] == [0, 1, 2, 10, 18, 26]


def test_gpus_sit_where_the_captures_say():
    assert gpu_counts(LOADED["dgx-a100"].node_class) == [0, 2, 0, 2, 0, 2, 0, 2]
    assert gpu_counts(LOADED["xe8545-a100-nps4"].node_class) == [0, 1, 0, 1, 0, 1, 0, 1]
    assert gpu_counts(LOADED["epyc-nps4-mi210"].node_class) == [1] * 8
    for name in ("dgx-h100", "dgx-h200", "dgx-b200", "aws-p4d-24xlarge", "aws-p5-48xlarge", "gcp-a3-highgpu-8g", "mi300x-8gpu"):
        assert gpu_counts(LOADED[name].node_class) == [4, 4]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("dgx-h100", [*range(56), *range(112, 168)]),
        ("aws-p4d-24xlarge", [*range(24), *range(48, 72)]),
        ("aws-p5-48xlarge", [*range(48), *range(96, 144)]),
        ("mi300x-8gpu", list(range(0, 128, 2))),
        ("gb200-tray", list(range(72))),
    ],
)
def test_cpus_are_where_the_captures_say(name, first):
    assert list(LOADED[name].node_class.topology.numa_nodes[0].cpus) == first


def test_hami_counts_replicas():
    kubelet = LOADED["rtx-pro-6000-hami"]
    assert kubelet.node_class.sharing == {"nvidia.com/gpu": 10}
    assert [group.count for group in kubelet.machine.devices["nvidia.com/gpu"]] == [40, 40]

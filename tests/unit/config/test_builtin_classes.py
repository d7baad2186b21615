"""The shipped node classes: each loads clean, says where its figures come from, and is the machine it says it is."""

import re
from dataclasses import replace

import pytest

from webhook.config.catalogue import catalog_directory, shipped_catalogue
from webhook.config.load import builtin_names, load_builtin_classes
from webhook.core.kubelet.admit import judge
from webhook.core.kubelet.node import compile_class
from webhook.core.quantities import MILLI_IN_NANO, NANO

KI, MI = 1024, 1024**2
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


def pod(amounts):
    container = {"name": "main", "image": "x", "resources": {"limits": amounts, "requests": dict(amounts)}}
    return {"metadata": {"name": "train", "namespace": "default"}, "spec": {"containers": [container]}}


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
def test_every_class_says_that_its_kubelet_is_no_fact(name):
    assert "our recommendation" in LOADED[name].node_class.source


@pytest.mark.parametrize("name", ["dgx-h200", "dgx-b200", "xe8545-a100-nps4", "epyc-nps4-mi210"])
def test_a_selector_that_no_source_confirms_says_so_where_it_stands(name):
    text = (catalog_directory() / "classes" / f"{name}.yaml").read_text()
    assert re.search(r"^  selector:\n(?:    .*\n)*?    \S+: \S+   # assumed: kubectl get nodes -L ", text, re.MULTILINE)


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
    verdict = judge(kubelet, pod({"cpu": "4", "memory": "16Gi", gpu: "1"}))
    assert (verdict.admitted, verdict.aligned, verdict.certain, verdict.unknown) == (True, True, True, "")


def test_a_gb200_tray_has_36_numa_nodes_of_which_two_have_cpus():
    nodes = LOADED["gb200-tray"].node_class.topology.numa_nodes
    assert len(nodes) == 36
    assert [node.id for node in nodes if node.cpus] == [0, 1]
    assert [node.id for node in nodes if node.memory] == [0, 1, 2, 10, 18, 26]


@pytest.mark.parametrize("gpus", ["1", "2", "3", "4"])
@pytest.mark.parametrize("cpu", ["500m", "8", "70", "72", "100"])
def test_the_two_numa_nodes_that_no_gb200_capture_shows_change_no_verdict(cpu, gpus):
    node_class = LOADED["gb200-tray"].node_class
    captured = replace(node_class, topology=replace(node_class.topology, numa_nodes=node_class.topology.numa_nodes[:34]))
    asks = pod({"cpu": cpu, "memory": "400Gi", "nvidia.com/gpu": gpus})
    assert judge(compile_class(captured), asks) == judge(LOADED["gb200-tray"], asks)


CAPTURED = {  # bytes of all NUMA nodes, hugepages included, where a source names them
    "aws-p5-48xlarge": 2097112716 * KI,
    "azure-nd96isr-h100-v5": 1915071 * MI,
    "epyc-nps4-mi210": (64306 + 4 * 64502 + 64447 + 64502 + 64492) * MI,
    "gb200-tray": (489935 + 489795 + 4 * 188416) * MI,
    "mi300x-8gpu": (1031111 + 1032123) * MI,
    "xe8545-a100-nps4": 1056384888 * KI,
}


@pytest.mark.parametrize(("name", "captured"), CAPTURED.items())
def test_memory_is_what_the_captures_say(name, captured):
    nodes = LOADED[name].node_class.topology.numa_nodes
    assert 0 <= captured - sum(node.memory for node in nodes) < len(nodes) * MI


@pytest.mark.parametrize("name", ["dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200"])
def test_estimated_memory_is_never_less_than_machines_of_that_size_show(name):
    assert sum(node.memory for node in LOADED[name].node_class.topology.numa_nodes) >= 2113411308 * KI


def test_a_p4d_leaves_to_pods_what_such_a_node_shows_as_allocatable():
    allocatable = LOADED["aws-p4d-24xlarge"].fit_allocatable
    assert 0 <= 1146004920 * KI - allocatable["memory"] // NANO < 2 * MI
    assert allocatable["cpu"] == 95_690 * MILLI_IN_NANO
    assert allocatable["hugepages-2Mi"] == 21122 * MI * NANO


def test_the_hugepages_that_efa_pods_ask_for_are_no_reason_to_refuse_them():
    asks = pod({"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32", "hugepages-2Mi": "5120Mi", "memory": "32000Mi"})
    assert judge(LOADED["aws-p5-48xlarge"], asks).admitted


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

"""Compiled classes: reserved CPUs, what is allocatable, which rules apply."""

import pytest

from tests.unit.core.kubelet.classes import cpus, node_class, static, topology
from webhook.core.kubelet.machine import format_set
from webhook.core.kubelet.node import compile_class, hugepages_resource, nearest_minor
from webhook.core.model import NumaNode, Topology
from webhook.core.quantities import GI, KI, MI, NANO

M112 = topology(56, 56)
M128 = topology(64, 64)
NPS4 = topology(*[32] * 8)


@pytest.mark.parametrize(
    ("machine", "excerpt", "reserved", "free"),
    [
        (M112, static("4"), "0-1,56-57", [52, 56]),
        (M112, static("3"), "0-1,56", [53, 56]),
        (M112, static("2500m"), "0-1,56", [53, 56]),
        (M112, static("6"), "0-2,56-58", [50, 56]),
        (M112, static("1", reservedSystemCPUs="0"), "0", [55, 56]),
        (M112, static("1", reservedSystemCPUs="0,56,28,84"), "0,28,56,84", [54, 54]),
        (NPS4, static("8"), "0-3,128-131", [24, *[32] * 7]),
        (M128, static("4"), "0-1,64-65", [60, 64]),
        (M112, static("4", ["distribute-cpus-across-numa"]), "0-1,56-57", [52, 56]),
        (M112, static("60", ["distribute-cpus-across-numa"]), "0-14,28-42,56-70,84-98", [26, 26]),
        (M112, static("4", ["distribute-cpus-across-cores"]), "0-3", [52, 56]),
        (M112, static("4", ["strict-cpu-reservation"]), "0-1,56-57", [52, 56]),
        (M112, static("3", kubeReserved={"cpu": "1"}), "0-1,56-57", [52, 56]),
        # the node with the fewest CPUs, not the first one
        (topology(8, 4, threads=1), static("2"), "8-9", [8, 2]),
    ],
)
def test_reserved_cpus(machine: Topology, excerpt: dict[str, object], reserved: str, free: list[int]):
    node = compile_class(node_class(excerpt, machine))

    assert node.start is None
    assert format_set(node.reserved_cpus) == reserved
    assert [(node.available_cpus & here).bit_count() for here in node.machine.cpu_topology.numa.values()] == free


def test_everything_can_be_reserved():
    node = compile_class(node_class(static("8"), topology(6, 2, threads=1)))

    assert node.start is None
    assert node.available_cpus == 0


def test_policy_none_reserves_nothing():
    node = compile_class(node_class({"systemReserved": {"cpu": "4"}}))

    assert node.cpu_policy is None
    assert (node.reserved_cpus, node.available_cpus) == (0, 0)


PAGES = Topology(
    2,
    1,
    (
        NumaNode(0, (0, 1), 128 * GI, {GI: 64 * GI}, devices={"gpu": 4}),
        NumaNode(1, (2, 3), 128 * GI, {}, devices={"gpu": 3}),
    ),
    {"nic": 2},
)


def test_memory_manager_table():
    reserved = [{"numaNode": 0, "limits": {"memory": "1Gi"}}, {"numaNode": 1, "limits": {"memory": "2Gi"}}]
    excerpt = {"memoryManagerPolicy": "Static", "reservedMemory": reserved, "evictionHard": {"memory.available": "3Gi"}}

    node = compile_class(node_class(excerpt, PAGES))

    assert node.start is None
    assert node.memory_allocatable == {
        0: {"memory": 63 * GI, "hugepages-2Mi": 0, "hugepages-1Gi": 64 * GI},
        1: {"memory": 126 * GI, "hugepages-2Mi": 0, "hugepages-1Gi": 0},
    }


def test_no_memory_manager_no_table():
    node = compile_class(node_class({}, PAGES))

    assert node.memory_allocatable == {}
    assert node.memory_policy is None


def test_allocatable_for_the_fit_check():
    excerpt = {
        "systemReserved": {"cpu": "500m", "memory": "1Gi"},
        "kubeReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "1Gi"},
    }

    node = compile_class(node_class(excerpt, PAGES, sharing={"gpu": 10}))

    assert node.fit_allocatable == {
        "cpu": 3500 * NANO // 1000,
        "memory": (256 - 3 - 64) * GI * NANO,
        "hugepages-2Mi": 0,
        "hugepages-1Gi": 64 * GI * NANO,
        "gpu": 70 * NANO,
        "nic": 2 * NANO,
    }


def test_hugepages_cannot_leave_less_than_nothing():
    machine = Topology(1, 1, (NumaNode(0, (0,), 4 * GI, {GI: 4 * GI}),))

    assert compile_class(node_class({}, machine)).fit_allocatable["memory"] == 0


@pytest.mark.parametrize(("minor", "expected"), [(21, 34), (34, 34), (36, 36), (37, 37), (40, 37)])
def test_other_minors_are_judged_as_the_nearest(minor: int, expected: int):
    assert nearest_minor(minor) == expected
    assert compile_class(node_class(minor=minor)).minor == expected


@pytest.mark.parametrize(
    ("size", "name"),
    [(2 * MI, "hugepages-2Mi"), (GI, "hugepages-1Gi"), (64 * KI, "hugepages-64Ki"), (512 * MI, "hugepages-512Mi")],
)
def test_page_size_names(size: int, name: str):
    assert hugepages_resource(size) == name


def test_gates_of_the_minor():
    assert "PodLevelResourceManagers" not in compile_class(node_class()).gates
    assert "PodLevelResourceManagers" in compile_class(node_class({"featureGates": {"AllBeta": True}})).gates


def test_a_kubelet_that_does_not_start_says_why():
    node = compile_class(node_class({"cpuManagerPolicy": "static"}))

    assert node.start == "[cpumanager] unable to determine reserved CPU resources for static policy"
    assert node.errors[0].path == "systemReserved[cpu]"


def test_a_class_is_compiled_once_and_answers_from_its_cache():
    node = compile_class(node_class(static("4")))
    assert node.cpu_policy is not None

    first = node.cpu_policy.take(node.available_cpus, 8)

    assert node.cpu_policy.take(node.available_cpus, 8) == first
    assert node.cpu_policy.take.cache_info().hits == 1
    assert first == cpus("2-5,58-61")

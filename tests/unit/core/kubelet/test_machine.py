"""Machines: numbering, siblings, sockets, caches, memory, devices."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.kubelet.classes import cpus, node_class, topology
from webhook.core.kubelet.machine import DeviceGroup, build_machine, cpu_topology, format_set, number_cpus, page_sizes
from webhook.core.model import NumaNode, SpreadDevices, Topology
from webhook.core.quantities import GI, MI


def shown(units: Mapping[int, int]) -> dict[int, str]:
    return {unit: format_set(mask) for unit, mask in units.items()}


@pytest.mark.parametrize(
    ("counts", "threads", "adjacent", "expected"),
    [
        ((4, 4), 2, False, ("0-1,4-5", "2-3,6-7")),
        ((4, 4), 2, True, ("0-3", "4-7")),
        ((4, 8), 2, False, ("0-1,6-7", "2-5,8-11")),
        ((3, 0, 2), 1, False, ("0-2", "", "3-4")),
        ((4, 4), 4, False, ("0,2,4,6", "1,3,5,7")),
        ((6, 3), 3, True, ("0-5", "6-8")),
    ],
)
def test_numbers_cpus(counts: tuple[int, ...], threads: int, adjacent: bool, expected: tuple[str, ...]):
    numbered = number_cpus(counts, threads, adjacent=adjacent)

    assert tuple(format_set(sum(1 << cpu for cpu in node)) for node in numbered) == expected


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.sampled_from([1, 2, 3, 4]), st.booleans())
def test_every_cpu_is_numbered_once(cores: list[int], threads: int, adjacent: bool):
    counts = [count * threads for count in cores]

    numbered = number_cpus(counts, threads, adjacent=adjacent)

    assert [len(node) for node in numbered] == counts
    assert sorted(cpu for node in numbered for cpu in node) == list(range(sum(counts)))


@pytest.mark.parametrize(
    ("listed", "threads", "adjacent", "cores"),
    [
        ("0-1,4-5", 2, False, {0: "0,4", 1: "1,5"}),
        ("0-3", 2, True, {0: "0-1", 2: "2-3"}),
        ("0-3", 2, False, {0: "0,2", 1: "1,3"}),
        ("8-9", 1, False, {8: "8", 9: "9"}),
        ("0-7", 4, False, {0: "0,2,4,6", 1: "1,3,5,7"}),
    ],
)
def test_siblings(listed: str, threads: int, adjacent: bool, cores: dict[int, str]):
    ids = tuple(cpu for cpu in range(10) if cpus(listed) >> cpu & 1)

    found = cpu_topology(Topology(1, threads, (NumaNode(0, ids, GI),), adjacent_siblings=adjacent))

    assert shown(found.cores) == cores


@pytest.mark.parametrize(
    ("counts", "sockets", "expected"),
    [
        ((2, 2), 2, {0: "0-1", 1: "2-3"}),
        ((2, 2, 2, 2), 2, {0: "0-3", 1: "4-7"}),
        ((2, 2, 2), 2, {0: "0-3", 1: "4-5"}),
        ((2, 2), 1, {0: "0-3"}),
        ((4,), 2, {0: "0-1", 1: "2-3"}),
        ((3,), 2, {0: "0-1", 1: "2"}),
        ((4, 4), 4, {0: "0-1", 1: "2-3", 2: "4-5", 3: "6-7"}),
        ((0, 2, 2), 2, {0: "0-1", 1: "2-3"}),
    ],
)
def test_sockets(counts: tuple[int, ...], sockets: int, expected: dict[int, str]):
    assert shown(cpu_topology(topology(*counts, threads=1, sockets=sockets)).sockets) == expected


@pytest.mark.parametrize(
    ("width", "expected"),
    [(None, {0: "0-3", 1: "4-7"}), (2, {0: "0-1", 1: "2-3", 2: "4-5", 3: "6-7"}), (3, {0: "0-2", 1: "3", 2: "4-6", 3: "7"})],
)
def test_uncore_caches(width: int | None, expected: dict[int, str]):
    assert shown(cpu_topology(topology(4, 4, threads=1, cores_per_uncore_cache=width)).uncores) == expected


@pytest.mark.parametrize(
    ("counts", "sockets", "per_socket", "numa_first"),
    [((8, 8), 2, 8, True), ((8, 8), 4, 4, True), ((8, 8, 8, 8), 2, 16, False), ((8, 4), 2, 6, True), ((16,), 1, 16, True)],
)
def test_what_the_kubelet_takes_for_a_sockets_size(counts: tuple[int, ...], sockets: int, per_socket: int, numa_first: bool):
    found = cpu_topology(topology(*counts, sockets=sockets))

    assert found.cpus_per_socket == per_socket
    assert found.numa_first is numa_first


def test_what_the_kubelet_takes_for_a_caches_size():
    assert cpu_topology(topology(8, 4, cores_per_uncore_cache=2)).cpus_per_uncore == 4
    assert cpu_topology(topology(8, 4)).cpus_per_uncore == 6


def test_whole_cores():
    found = cpu_topology(topology(8, 8))

    assert format_set(found.whole_cores(cpus("0,9"))) == "0-1,8-9"
    assert found.whole_cores(0) == 0


def test_memory_only_nodes_have_no_place_in_the_cpu_topology():
    machine = build_machine(node_class(machine=topology(4, 0, threads=1, sockets=1)))

    assert machine.numa_mask == 0b11
    assert list(machine.cpu_topology.numa) == [0]
    assert machine.cells[1].cpus == 0


def test_every_node_lists_every_page_size():
    nodes = (NumaNode(0, (0,), 8 * GI, {64 * MI: 256 * MI}), NumaNode(3, (1,), 8 * GI, {GI: 2 * GI}))
    machine = build_machine(node_class(machine=Topology(1, 1, nodes)))

    assert machine.page_sizes == (2 * MI, 64 * MI, GI)
    assert machine.cells[0].hugepages == {2 * MI: 0, 64 * MI: 256 * MI, GI: 0}
    assert machine.cells[1].hugepages == {2 * MI: 0, 64 * MI: 0, GI: 2 * GI}
    assert machine.numa_mask == 0b1001


def test_common_page_sizes_exist_everywhere():
    assert page_sizes(topology(1, threads=1, sockets=1)) == (2 * MI, GI)


def test_part_of_a_page_is_no_page():
    machine = build_machine(node_class(machine=Topology(1, 1, (NumaNode(0, (0,), 8 * GI, {GI: GI + GI // 2}),))))

    assert machine.cells[0].hugepages[GI] == GI


def test_distances():
    given_ones = NumaNode(0, (0,), GI, distances=(10, 32))
    machine = build_machine(node_class(machine=Topology(1, 1, (given_ones, NumaNode(1, (1,), GI)))))

    assert [cell.distances for cell in machine.cells] == [(10, 32), (21, 10)]


def test_devices_by_the_nodes_that_they_report():
    nodes = (
        NumaNode(0, (0,), GI, devices={"gpu": 4, "nic": 3, "fpga": 0}),
        NumaNode(1, (1,), GI, devices={"gpu": 2}),
    )
    machine = Topology(1, 1, nodes, {"gpu": 1}, (SpreadDevices("gpu", 3, (0, 1)),))
    found = build_machine(node_class(machine=machine, sharing={"gpu": 10})).devices

    assert found["gpu"] == (DeviceGroup(0b01, 40), DeviceGroup(0b10, 20), DeviceGroup(0b11, 30), DeviceGroup(0, 10))
    assert found["nic"] == (DeviceGroup(0b01, 3),)
    assert found["fpga"] == ()


@given(st.sets(st.integers(0, 40)))
def test_sets_are_written_as_the_kernel_writes_them(members: set[int]):
    mask = sum(1 << member for member in members)

    assert cpus(format_set(mask)) == mask


def test_runs():
    assert format_set(cpus("0,1,2,5,7,8")) == "0-2,5,7-8"

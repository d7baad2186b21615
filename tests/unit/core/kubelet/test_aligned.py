"""Alignment of admitted pods."""

from dataclasses import replace

import pytest

from tests.unit.core.kubelet.make import GPU, NIC, container, devices, hints, memory_policy, pod
from webhook.core.containers import Kind
from webhook.core.kubelet.aligned import Holding, Idle, gaps, placement
from webhook.core.kubelet.contract import ContainerView
from webhook.core.kubelet.machine import CpuTopology
from webhook.core.quantities import GI

# two NUMA nodes of 8 CPUs, of which CPU 0 is reserved; 100Gi each; GPUs on both, two NICs that touch both, two without node
NUMA = {0: 0x00FF, 1: 0xFF00}
TOPOLOGY = CpuTopology(
    cpus=0xFFFF,
    threads_per_core=1,
    socket_count=2,
    cores={cpu: 1 << cpu for cpu in range(16)},
    uncores=NUMA,
    sockets=NUMA,
    numa=NUMA,
)
IDLE = Idle(0b11, TOPOLOGY, 0xFFFE, memory_policy(100, 100), devices(gpu={1: 4, 2: 4}, nic={3: 2, 1: 1, 0: 2}))
MAIN = container(gpu=1)


def holding(hint: str = "0T", cpus: int = 0x0006, memory: str = "", size: int = 1, **taken: tuple[int, ...]) -> Holding:
    long = {"gpu": GPU, "nic": NIC}
    mask = sum(1 << int(node) for node in memory.split(",")) if memory else 0
    amounts = {"memory": size * GI} if mask else {}
    return Holding(hints(hint)[0], cpus, mask, amounts, {long[name]: counts for name, counts in taken.items()})


def reasons(held: Holding, view: ContainerView = MAIN, idle: Idle = IDLE) -> list[str]:
    return [gap.reason for gap in gaps(idle, pod(view), {view.name: held})]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (holding(gpu=(1, 0)), []),
        (holding(memory="0", gpu=(1, 0)), []),
        # everything on one node is aligned, whatever the hint says
        (holding("*F", gpu=(1, 0)), []),
        (holding(cpus=0, gpu=(1, 0)), ["SharedCPUs"]),
        (holding(gpu=(0, 1)), ["CPUsElsewhere", "WiderThanNeeded"]),
        (holding("0,1F", memory="0,1", gpu=(1, 0)), ["MemoryElsewhere", "WiderThanNeeded"]),
        (holding("0,1F", gpu=(1, 1)), ["DevicesApart", "WiderThanNeeded"]),
        # two nodes are fine where some resource needs two
        (holding("0,1T", gpu=(4, 1)), []),
        (holding("0,1T", cpus=0xFFFE, gpu=(1, 0)), []),
        (holding("0,1T", memory="0,1", size=150, gpu=(1, 0)), []),
        (holding("0,1F", gpu=(4, 1)), ["NotPreferred"]),
        (holding("0T", gpu=(4, 1)), ["NotPreferred"]),
        # reserved CPUs do not help: 8 CPUs fit on node 1 alone, but not 8 of node 0 and 1
        (holding("0,1T", cpus=0x01FE, gpu=(1, 0)), ["CPUsElsewhere", "WiderThanNeeded"]),
        # a device on several nodes must share one with the rest
        (holding(nic=(1, 0, 0)), []),
        (holding(nic=(0, 0, 1)), ["DeviceWithoutTopology"]),
    ],
)
def test_gaps(held: Holding, expected: list[str]):
    assert reasons(held) == expected


def test_reserved_cpus_can_make_a_container_need_two_nodes():
    idle = replace(IDLE, available=0xFEFE)

    assert reasons(holding("0,1T", cpus=0x02FE, gpu=(1, 0)), MAIN, idle) == []
    assert reasons(holding("0,1T", cpus=0x027E, gpu=(1, 0)), MAIN, idle) == ["CPUsElsewhere", "WiderThanNeeded"]


def test_a_device_on_several_nodes_may_share_none():
    idle = Idle(0b111, TOPOLOGY, 0xFFFE, None, devices(nodes=3, gpu={1: 4}, nic={6: 2}))

    assert reasons(holding(gpu=(1,), nic=(1,)), container(gpu=1, nic=1), idle) == ["DevicesApart"]


@pytest.mark.parametrize("view", [container("i", Kind.INIT, gpu=1), container(cpu=1), container(gpu=0), container(gpu="20E")])
def test_only_what_keeps_running_with_devices_counts(view: ContainerView):
    assert reasons(holding(gpu=(1, 0)), view) == ["NoDeviceContainer"]


def test_sidecars_count():
    assert reasons(holding(cpus=0, gpu=(1, 0)), container("s", Kind.SIDECAR, gpu=1)) == ["SharedCPUs"]


def test_resources_without_any_topology_ask_for_nothing():
    idle = Idle(0b11, TOPOLOGY, 0xFFFE, None, devices(gpu={1: 4}, nic={0: 4}))

    assert reasons(holding(gpu=(1,), nic=(4,)), container(gpu=1, nic=4), idle) == []
    assert reasons(holding(nic=(4,)), container(nic=4), idle) == ["NoDeviceContainer"]


def test_one_numa_node_is_aligned_by_construction():
    idle = Idle(0b1, TOPOLOGY, 0xFFFE, None, devices(nodes=1, gpu={1: 4}))

    assert reasons(holding(cpus=0, gpu=(1,)), MAIN, idle) == []


def test_placement_names_nodes():
    held = holding("0,1T", cpus=0x0102, memory="0,1", size=150, gpu=(4, 1), nic=(1, 0, 1))
    found = placement(held, IDLE)

    assert found.cpus == (1, 8)
    assert found.memory == {0: 100 * GI, 1: 50 * GI}
    assert found.devices == {GPU: {0: 4, 1: 1}, NIC: {0: 1, -1: 1}}


def test_details_have_numbers():
    (gap, _) = gaps(IDLE, pod(MAIN), {"main": holding(gpu=(0, 1))})

    assert gap.container == "main"
    assert gap.detail == "its CPUs are on NUMA nodes 0, its devices on 1"

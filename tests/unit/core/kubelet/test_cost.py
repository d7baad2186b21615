"""How long the kubelet itself would take."""

import pytest

from tests.unit.core.kubelet.classes import node_class, static, topology
from webhook.core.kubelet.contract import Hint, Hints
from webhook.core.kubelet.cost import (
    HOPELESS,
    SECONDS_PER_COMBINATION,
    SECONDS_PER_MASK,
    SLOW,
    combination_seconds,
    duration,
    hint_seconds,
    hinting_nodes,
    merge_seconds,
)
from webhook.core.kubelet.node import NodeKubelet, compile_class
from webhook.core.model import NumaNode, Topology
from webhook.core.quantities import GI


def kubelet(policy: str, nodes: int, devices: int, hosts: int | None = None, minor: int = 37) -> NodeKubelet:
    """A class with CPU and Memory Manager and so many device resources, each on the first `hosts` nodes."""
    plain = topology(*[8] * nodes)
    with_devices = {f"device-{index}": 1 for index in range(devices)}
    numa = tuple(
        NumaNode(node.id, node.cpus, GI, devices=with_devices if node.id < (hosts or nodes) else {}) for node in plain.numa_nodes
    )
    options = {"max-allowable-numa-nodes": "36"} if nodes > 8 else {}
    excerpt = static(
        topologyManagerPolicy=policy,
        topologyManagerPolicyOptions=options,
        memoryManagerPolicy="Static",
        reservedMemory=[{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    )
    return compile_class(node_class(excerpt, Topology(2, 2, numa), minor=minor))


@pytest.mark.parametrize(
    ("policy", "nodes", "devices", "low", "high"),
    [
        ("none", 8, 4, 0, 0),
        ("restricted", 2, 4, 0, 0.01),
        ("restricted", 8, 0, 0, 0.2),
        ("restricted", 8, 1, SLOW, 10),
        ("best-effort", 8, 2, HOPELESS, 3600),
        ("single-numa-node", 8, 2, 0, SLOW),
        ("single-numa-node", 16, 2, 0, 10),
        ("single-numa-node", 36, 0, HOPELESS, float("inf")),
    ],
)
def test_the_worst_pod(policy: str, nodes: int, devices: int, low: float, high: float):
    node = kubelet(policy, nodes, devices)

    assert node.start is None
    assert low <= merge_seconds(node) <= high


def test_devices_hint_over_the_nodes_that_host_them():
    assert hinting_nodes(kubelet("restricted", 8, 1, hosts=2)) == {"cpu": 8, "memory": 8, "device-0": 2}
    assert hinting_nodes(kubelet("restricted", 8, 1, hosts=2, minor=35)) == {"cpu": 8, "memory": 8, "device-0": 8}


def test_one_node_has_one_mask_and_one_combination():
    estimate = merge_seconds(kubelet("restricted", 1, 1))

    assert estimate == pytest.approx(3 * SECONDS_PER_MASK + SECONDS_PER_COMBINATION)


def test_beyond_sixteen_nodes_a_managers_masks_count_too():
    node = kubelet("single-numa-node", 17, 0)
    hints: Hints = {"memory": (Hint(1, preferred=True),), "hugepages-1Gi": (Hint(1, preferred=True),)}

    assert hint_seconds(node, [hints, None]) == pytest.approx(((1 << 17) - 1) * SECONDS_PER_MASK + SECONDS_PER_COMBINATION)
    assert hint_seconds(kubelet("single-numa-node", 16, 0), [hints]) == pytest.approx(SECONDS_PER_COMBINATION)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (600, "10 minutes"),
        (3_660, "61 minutes"),
        (7_199, "120 minutes"),
        (7_200, "2 hours"),
        (172_799, "48 hours"),
        (172_800, "2 days"),
        (63_071_999, "730 days"),
        (94_608_000, "3 years"),
    ],
)
def test_durations(seconds: float, text: str):
    assert duration(seconds) == text


def test_managers_that_are_off_cost_nothing():
    assert hinting_nodes(compile_class(node_class({"topologyManagerPolicy": "restricted"}))) == {}


def test_one_pod():
    assert combination_seconds([255, 255, 255]) == pytest.approx(2.4, rel=0.01)
    assert combination_seconds([]) < 1e-6

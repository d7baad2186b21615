"""QoS classes."""

import pytest

from tests.unit.core.kubelet.make import nano
from webhook.core.kubelet import qos

G, B, E = qos.GUARANTEED, qos.BURSTABLE, qos.BEST_EFFORT


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({}, {}, E),
        ({"cpu": "0", "memory": "0"}, {}, E),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}, E),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, G),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1000m", "memory": "1024Mi"}, G),
        ({"cpu": "1"}, {"cpu": "1"}, B),
        ({"memory": "1Gi"}, {"memory": "1Gi"}, B),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, B),
        ({"cpu": "1", "memory": "1Gi"}, {}, B),
        ({"cpu": "1", "memory": "0"}, {"cpu": "1", "memory": "0"}, B),
    ],
)
def test_one_container(requests: dict[str, str], limits: dict[str, str], expected: str):
    assert qos.of_requirements(nano(requests), nano(limits)) == expected
    assert qos.of_containers([(nano(requests), nano(limits))]) == expected


FULL = (nano({"cpu": "1", "memory": "1Gi"}),) * 2
HALF = (nano({"cpu": "1"}), {})
NOTHING: tuple[dict[str, int], dict[str, int]] = ({}, {})


@pytest.mark.parametrize(
    ("containers", "expected"),
    [([FULL, FULL], G), ([FULL, NOTHING], B), ([NOTHING, NOTHING], E), ([FULL, HALF], B), ([], E)],
)
def test_all_containers_decide(containers: list[tuple[dict[str, int], dict[str, int]]], expected: str):
    assert qos.of_containers(containers) == expected

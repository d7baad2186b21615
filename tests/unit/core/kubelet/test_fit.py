"""The fit check."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.unit.core.kubelet.make import GPU, container, nano, pod
from webhook.core.containers import Kind
from webhook.core.kubelet.contract import PodView
from webhook.core.kubelet.fit import shortage

NODE = nano({"cpu": "10", "memory": "100Gi", "hugepages-1Gi": "4Gi", GPU: "4"})
PAGES = {"hugepages-1Gi": "8Gi"}


def reason(view: PodView, *, pod_level: bool = True, allocatable: Mapping[str, int] = NODE) -> str | None:
    found = shortage(view, allocatable, pod_level=pod_level)
    return found.refusal.reason if found else None


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (pod(container(cpu=10, memory="100Gi", gpu=4, pages="4Gi")), None),
        (pod(container(cpu="10001m")), "OutOfcpu"),
        (pod(container(cpu=11, memory="101Gi", gpu=5)), "OutOfcpu"),
        (pod(container(memory="101Gi", gpu=5)), "OutOfmemory"),
        (pod(container(gpu=5)), f"OutOf{GPU}"),
        (pod(container(pages="5Gi")), "OutOfhugepages-1Gi"),
        (pod(container(**{"hugepages-2Mi": "2Mi"})), "OutOfhugepages-2Mi"),
        (pod(container(**{"example.com/elsewhere": 1})), None),
        (pod(container(**{"kubernetes.io/batch": 1})), "OutOfkubernetes.io/batch"),
        (pod(container(**{"kubernetes.io/batch": 0})), None),
        (pod(container(**{"ephemeral-storage": "1000Ti"})), None),
        (pod(container("a", cpu=6), container("b", cpu=5)), "OutOfcpu"),
        (pod(container("i", Kind.INIT, cpu=10), container("a", cpu=5)), None),
        (pod(container("s", Kind.SIDECAR, cpu=1), container("i", Kind.INIT, cpu=10), container("a", cpu=5)), "OutOfcpu"),
        (pod(container("i", Kind.INIT, cpu=10), container("s", Kind.SIDECAR, cpu=1), container("a", cpu=5)), None),
    ],
)
def test_shortage(view: PodView, expected: str | None):
    assert reason(view) == expected


def test_overhead_counts():
    assert reason(replace(pod(container(cpu=10)), overhead=nano({"cpu": "1m"}))) == "OutOfcpu"
    assert reason(replace(pod(container(cpu=9)), overhead=nano({"cpu": "1"}))) is None


def test_pod_level_requests_stand_for_the_containers():
    view = pod(container(cpu=4), cpu=11, memory="1Gi")

    assert reason(view) == "OutOfcpu"
    assert reason(view, pod_level=False) is None


def test_only_the_first_of_several_short_resources_is_named():
    both = shortage(pod(container(gpu=5, pages="5Gi")), NODE, pod_level=True)
    clear = shortage(pod(container(cpu=11, gpu=5, pages="5Gi")), NODE, pod_level=True)

    assert both is not None
    assert not both.certain
    assert clear is not None
    assert clear.certain


def test_the_message_is_the_kubelets():
    found = shortage(pod(container(cpu="10500m")), NODE, pod_level=True)

    assert found is not None
    assert found.refusal.message == "Node didn't have enough resource: cpu, requested: 10500, used: 0, capacity: 10000"

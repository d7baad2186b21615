"""The numbers: CPUs and memory of each sort of container, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.setting import GPU, NIC, SINGLE, kubelet, m112, m128, named, snapshot
from webhook.core.containers import Container, Kind
from webhook.core.policy import CpuRules, Policy
from webhook.core.quantities import GI, MI
from webhook.core.shape import cpu, memory, share
from webhook.core.shape.initcontainers import InitMemory, memory_floor
from webhook.core.shape.scene import Declared

SHARE, REQUEST, LIMIT = (CpuRules(source=source) for source in ("share", "request", "limit"))


@pytest.mark.parametrize(
    ("request_", "limit", "amount", "width", "rules", "expected"),
    [
        # nothing declared: the share, rounded down to whole cores, at least one core
        (None, None, 15000, 1, SHARE, 15000),
        (None, None, 15000, 2, SHARE, 14000),
        (None, None, 1000, 2, SHARE, 2000),
        (None, None, 0, 1, SHARE, 1000),
        (None, None, 13000, 8, SHARE, 8000),
        # never under the request, rounded up
        (3500, None, 15000, 1, SHARE, 15000),
        (20000, None, 15000, 1, SHARE, 20000),
        (15500, None, 15000, 1, SHARE, 16000),
        (15500, None, 15000, 4, SHARE, 16000),
        (17000, None, 15000, 2, SHARE, 18000),
        # never over the limit, rounded down, but at least the request
        (2000, 8500, 15000, 1, SHARE, 8000),
        (2000, 9000, 15000, 2, SHARE, 8000),
        (500, 500, 15000, 1, SHARE, 1000),
        (6500, 7000, 15000, 1, SHARE, 7000),
        (6500, 7000, 15000, 2, SHARE, 8000),
        (2000, 32000, 15000, 1, SHARE, 15000),
        # an author's equal integers stay, but for whole cores
        (7000, 7000, 15000, 1, SHARE, 7000),
        (7000, 7000, 15000, 2, SHARE, 8000),
        (7500, 7500, 15000, 1, SHARE, 8000),
        # the policy may want the author's own number
        (3500, None, 15000, 1, REQUEST, 4000),
        (3500, 9000, 15000, 1, REQUEST, 4000),
        (None, None, 15000, 1, REQUEST, 15000),
        (2000, 9500, 15000, 1, LIMIT, 9000),
        (2000, None, 15000, 1, LIMIT, 15000),
        (20000, None, 15000, 1, LIMIT, 20000),
        # a NIC alone has no share
        (None, None, None, 1, SHARE, 1000),
        (2500, None, None, 2, SHARE, 4000),
        (None, None, None, 2, CpuRules(default=3000), 4000),
    ],
)
def test_cpus_of_a_device_container(
    request_: int | None, limit: int | None, amount: int | None, width: int, rules: CpuRules, expected: int
) -> None:
    assert cpu.of_device_container(Declared(request_, limit), amount, width, rules) == expected


@pytest.mark.parametrize(
    ("request_", "limit", "expected"),
    [
        (None, None, 500),
        (100, None, 100),
        (100, 200, 200),
        (1000, None, 999),
        (100, 2000, 1999),
        (2000, 2000, 2000),
        (2500, 2500, 2500),
        (0, None, 1),
        (1, 1, 1),
    ],
)
def test_cpus_of_other_containers_are_never_whole_unless_the_author_says_so(
    request_: int | None, limit: int | None, expected: int
) -> None:
    assert cpu.of_other_container(Declared(request_, limit), 500) == expected


def test_a_default_of_whole_cpus_is_not_whole_either() -> None:
    assert cpu.of_other_container(Declared(None, None), 1000) == 999


@pytest.mark.parametrize(
    ("request_", "limit", "total", "expected"),
    [
        (None, None, 15500, 15499),
        (None, None, 15000, 14999),
        (None, None, 15001, 14999),
        (None, None, 1, 1),
        (None, None, 0, 1),
        (100, None, 15000, 14999),
        (20000, None, 15000, 19999),
        (100, 300, 15000, 300),
        (100, 2000, 15000, 1999),
        (1000, 1000, 15000, 1000),
    ],
)
def test_cpus_of_init_containers_cost_nothing(request_: int | None, limit: int | None, total: int, expected: int) -> None:
    assert cpu.of_init_container(Declared(request_, limit), total) == expected


@pytest.mark.parametrize(("fixed", "expected"), [(1000, 2000), (2000, 2000), (2500, 2500), (3000, 4000)])
def test_cpus_of_its_own_that_an_author_fixed_come_in_whole_cores(fixed: int, expected: int) -> None:
    declared = Declared(fixed, fixed)
    assert cpu.of_other_container(declared, 500, width=2) == cpu.of_init_container(declared, 15000, width=2) == expected


@pytest.mark.parametrize(
    ("request_", "limit", "floor", "tmpfs", "expected"),
    [
        (None, None, 64 * GI, 0, 64 * GI),
        (None, None, 64 * GI, 80 * GI, 80 * GI),
        (100 * GI, None, 64 * GI, 80 * GI, 100 * GI),
        (GI + 1, None, 1, 0, GI + MI),
        (None, None, 0, 0, MI),
        # a limit stays, whatever the share and tmpfs may be
        (None, GI, 64 * GI, 80 * GI, GI),
        (1000, GI + 1, 64 * GI, 0, GI + 1),
    ],
)
def test_memory(request_: int | None, limit: int | None, floor: int, tmpfs: int, expected: int) -> None:
    assert memory.of_container(Declared(request_, limit), floor, tmpfs) == expected


def test_tmpfs_counts_where_it_is_mounted() -> None:
    volumes = [
        {"name": "sized", "emptyDir": {"medium": "Memory", "sizeLimit": "3Gi"}},
        {"name": "endless", "emptyDir": {"medium": "Memory"}},
        {"name": "zero", "emptyDir": {"medium": "Memory", "sizeLimit": "0"}},
        {"name": "disk", "emptyDir": {"sizeLimit": "3Gi"}},
        {"name": "other", "configMap": {}},
    ]
    pod: Any = {"spec": {"volumes": volumes}}

    def size(*mounts: str) -> int:
        raw = {"volumeMounts": [{"name": mount} for mount in mounts]}
        return memory.tmpfs(pod, Container(Kind.APP, (), "a", raw), 100 * GI)

    assert size() == 0
    assert size("sized") == 3 * GI
    assert size("sized", "endless") == 103 * GI
    assert size("zero") == 100 * GI
    assert size("disk", "other") == 0


@pytest.mark.parametrize(
    ("source", "expected"), [(InitMemory.APP_TOTAL, 5 * GI), (InitMemory.LARGEST_APP, 3 * GI), (InitMemory.DEFAULT, GI)]
)
def test_memory_of_init_containers(source: InitMemory, expected: int) -> None:
    assert memory_floor(source, [2 * GI, 3 * GI], Policy()) == expected


def candidates(*documents: Any) -> Any:
    return snapshot(*(named(document, f"c{index}") for index, document in enumerate(documents))).candidates


M112, M128 = m112(kubelet(SINGLE)), m128(kubelet(SINGLE))
FULL = m112(kubelet(SINGLE, cpuManagerPolicyOptions={"full-pcpus-only": "true"}, reservedSystemCPUs="0,1"))


@pytest.mark.parametrize(
    ("documents", "units", "cpus", "mebibytes"),
    [
        # 52 and 56 CPUs for 4 GPUs, 249.95Gi on each
        ((M112,), {GPU: 1}, 13000, 63987),
        ((M112,), {GPU: 4}, 52000, 255950),
        ((M112,), {GPU: 6}, 78000, 383925),
        ((M128,), {GPU: 1}, 15000, 63987),
        # the smallest over the candidates
        ((M112, M128), {GPU: 2}, 26000, 127975),
        # DaemonSets are taken off each node
        ((named(M112, "d", daemonSets={"cpu": "500m", "memory": "2Gi"}),), {GPU: 1}, 12000, 63475),
        # only whole free cores: reserved are two cores' first threads, their siblings serve nobody
        ((FULL,), {GPU: 1}, 13000, 63987),
        # each of 10 replicas is an accelerator
        ((named(M128, "s", sharing={GPU: 10}),), {GPU: 1}, 1000, 6398),
        # NICs are no accelerators
        ((m128(kubelet(SINGLE), {GPU: 2, NIC: 2}, {GPU: 2}),), {GPU: 1}, 30000, 127975),
        # uneven: where the accelerators are closest together
        ((m128(kubelet(SINGLE), {GPU: 1}, {GPU: 4}),), {GPU: 1}, 16000, 63987),
    ],
)
def test_share(documents: tuple[Any, ...], units: dict[str, int], cpus: int, mebibytes: int) -> None:
    found = candidates(*documents)
    assert share.cpu(units, found, None) == cpus
    assert share.memory(units, found) == mebibytes * MI


def test_the_policy_may_fix_the_share() -> None:
    assert share.cpu({GPU: 3}, candidates(M128), 6500) == 19500


def test_without_such_accelerators_there_is_no_share() -> None:
    assert share.cpu({"amd.com/gpu": 1}, candidates(M128), None) is None
    assert share.memory({}, candidates(M128)) is None
    assert share.cpu({}, candidates(M128), 6500) is None


def test_half_a_numa_node() -> None:
    assert share.half_node(candidates(M128, named(M128, "d", daemonSets={"memory": "2Gi"}))) == (255950 * MI - 2 * GI) // 2

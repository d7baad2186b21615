"""The CPU Manager: hints, allocation, what init containers leave, pod-level resources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.kubelet.classes import cpus, topology
from tests.unit.core.kubelet.make import container, nano, pod, written
from webhook.core.containers import Kind
from webhook.core.kubelet.config import CpuOptions
from webhook.core.kubelet.contract import ContainerView, Hint, Hints, PodView, Refusal
from webhook.core.kubelet.cpu import CpuManager, StaticCpuPolicy
from webhook.core.kubelet.machine import cpu_topology, format_set
from webhook.core.model import Topology

LEVEL = frozenset({"PodLevelResources"})
MANAGED = LEVEL | {"PodLevelResourceManagers"}
FULL = CpuOptions(full_pcpus_only=True)
ANY = Hint(None, preferred=False)
FEW = "SMT Alignment Error: not enough free physical CPUs"


def policy(
    reserved: str = "0-1,56-57", options: CpuOptions = FULL, machine: Topology | None = None, minor: int = 37
) -> StaticCpuPolicy:
    """Two nodes of 28 SMT2 cores with two cores reserved on node 0, unless told otherwise."""
    return StaticCpuPolicy(cpu_topology(machine or topology(56, 56)), options, minor, cpus(reserved))


PLAIN = policy(options=CpuOptions())
NPS4 = topology(*[32] * 8)


def manager(view: PodView, static: StaticCpuPolicy | None = PLAIN, gates: frozenset[str] = LEVEL, minor: int = 37) -> CpuManager:
    return CpuManager(static, gates, minor, view)


def shown(found: Hints) -> list[str] | None:
    return None if found is None else written(found["cpu"])


def container_hints(view: ContainerView, static: StaticCpuPolicy = PLAIN, **more: object) -> list[str] | None:
    whole = pod(view, **more)
    return shown(manager(whole, static).container_hints(view, singles=False))


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, ["0T", "1T", "0,1F"]),
        (52, ["0T", "1T", "0,1F"]),
        (53, ["1T", "0,1F"]),
        (56, ["1T", "0,1F"]),
        (57, ["0,1T"]),
        (108, ["0,1T"]),
        (109, []),
        (1000, []),
    ],
)
def test_hints_of_two_nodes(count: int, expected: list[str]):
    assert container_hints(container(cpu=count, memory="1Gi")) == expected


def test_the_narrowest_width_counts_reserved_cpus_too():
    """56 would fit one node of the machine, but on neither are 56 free: the wide hint is not preferred."""
    assert container_hints(container(cpu=56, memory="1Gi"), policy("0,28,56,84")) == ["0,1F"]


@pytest.mark.parametrize(("count", "expected"), [(52, ["0T", "1T"]), (53, ["1T"]), (57, []), (108, [])])
def test_hints_of_one_node_only(count: int, expected: list[str]):
    view = container(cpu=count, memory="1Gi")

    assert shown(manager(pod(view)).container_hints(view, singles=True)) == expected


@given(st.integers(1, 130), st.integers(0), st.integers(0))
def test_one_node_hints_are_those_of_all_hints(count: int, free: int, reusable: int):
    """What single-numa-node would keep of all hints is what is made for it directly."""
    available = PLAIN.available & free
    freed = PLAIN.available & reusable & ~available

    all_hints = PLAIN.hints(available, freed, count)

    assert PLAIN.single_hints(available, freed, count) == tuple(
        hint for hint in all_hints if hint.preferred and hint.mask is not None and hint.mask.bit_count() == 1
    )


@pytest.mark.parametrize(
    ("view", "qos"),
    [
        (container(cpu="7500m", memory="1Gi"), "Guaranteed"),
        (container(cpu="999m", memory="1Gi"), "Guaranteed"),
        (container(cpu=8, memory="1Gi"), "Burstable"),
        (container(memory="1Gi"), "Guaranteed"),
        (container(), "BestEffort"),
    ],
)
def test_containers_of_the_shared_pool(view: ContainerView, qos: str):
    asked = manager(pod(view, qos=qos))

    assert asked.container_hints(view, singles=False) is None
    assert asked.pod_hints(singles=False) is None
    assert asked.allocate(view, Hint(1, preferred=True)) is None
    assert asked.allocate_pod(Hint(1, preferred=True)) is None
    assert asked.assigned == {}


def test_policy_none_has_no_opinion():
    view = container(cpu=8, memory="1Gi")
    asked = manager(pod(view), None)

    assert asked.container_hints(view, singles=False) is None
    assert asked.pod_hints(singles=True) is None
    assert asked.allocate(view, ANY) is None
    assert asked.allocate_pod(ANY) is None


def test_eight_nodes():
    found = container_hints(container(cpu=33, memory="1Gi"), policy("0-3,128-131", machine=NPS4))

    assert found is not None
    assert len(found) == 255 - 8
    assert [hint for hint in found if hint.endswith("T")] == [f"{a},{b}T" for a in range(8) for b in range(a + 1, 8)]


def test_align_by_socket_prefers_a_whole_socket():
    by_socket = policy("0,128", CpuOptions(align_by_socket=True), NPS4)

    found = container_hints(container(cpu=33, memory="1Gi"), by_socket)

    assert found is not None
    preferred = {hint[:-1] for hint in found if hint.endswith("T")}
    assert "0,1" in preferred
    assert "0,1,2,3" in preferred
    assert "0,4" in preferred  # two nodes, the fewest that can hold it
    assert "0,1,4" not in preferred


def test_align_by_socket_prefers_the_fewest_sockets():
    by_socket = policy("0,128", CpuOptions(align_by_socket=True), NPS4)

    found = container_hints(container(cpu=150, memory="1Gi"), by_socket)  # needs five nodes, so two sockets

    assert found is not None
    assert "0,1,2,3,4T" in found
    assert "0,1,2,3,4,5,6,7T" in found


def test_align_by_socket_takes_from_the_whole_socket():
    view = container(cpu=40, memory="1Gi")
    by_socket = manager(pod(view), policy("0,128", CpuOptions(align_by_socket=True), NPS4))

    assert by_socket.allocate(view, Hint(1 << 5, preferred=True)) is None
    assert by_socket.assigned["main"] & ~cpus("64-127,192-255") == 0
    assert by_socket.assigned["main"] & ~cpus("80-95,208-223") != 0


def test_memory_only_nodes_never_appear():
    grace = policy("0", CpuOptions(), topology(72, 0, 0, threads=1, sockets=1))

    assert container_hints(container(cpu=8, memory="1Gi"), grace) == ["0T"]


@pytest.mark.parametrize(
    ("count", "mask", "expected"),
    [
        (4, 0b01, "2-3,58-59"),
        (4, 0b10, "28-29,84-85"),
        (56, 0b10, "28-55,84-111"),
        (60, 0b11, "2-3,28-55,58-59,84-111"),
        (54, 0b01, "2-28,58-84"),
        (4, None, "2-3,58-59"),
        (108, 0b11, "2-55,58-111"),
    ],
)
def test_allocates_the_hints_cpus_first(count: int, mask: int | None, expected: str):
    view = container(cpu=count, memory="1Gi")
    asked = manager(pod(view))

    assert asked.allocate(view, Hint(mask, preferred=True)) is None
    assert format_set(asked.assigned["main"]) == expected


def test_too_many():
    view = container(cpu=109, memory="1Gi")

    assert manager(pod(view)).allocate(view, ANY) == Refusal(
        "UnexpectedAdmissionError",
        "Allocate failed due to not enough cpus available to satisfy request: requested=109, available=108, which is unexpected",
    )


@pytest.mark.parametrize(
    ("reserved", "count", "message"),
    [
        ("0-1,56-57", 7, "SMT Alignment Error: requested 7 cpus not multiple cpus per core = 2"),
        (
            "0-1,56-57",
            110,
            f"{FEW}: available physical CPUs = 108, requested CPUs = 110, CPUs per core = 2",
        ),
        (
            "0",
            112,
            f"{FEW}: available physical CPUs = 110, requested CPUs = 112, CPUs per core = 2",
        ),
    ],
)
def test_full_pcpus_only(reserved: str, count: int, message: str):
    view = container(cpu=count, memory="1Gi")

    assert manager(pod(view), policy(reserved)).allocate(view, ANY) == Refusal("SMTAlignmentError", message)


def test_full_pcpus_only_looks_at_the_whole_node():
    """Half-reserved cores give their other thread away where the node as a whole has enough whole cores."""
    view = container(cpu=54, memory="1Gi")
    asked = manager(pod(view), policy("0-1"))

    assert shown(asked.container_hints(view, singles=False)) == ["0T", "1T", "0,1F"]
    assert asked.allocate(view, Hint(0b01, preferred=True)) is None
    assert format_set(asked.assigned["main"]) == "2-27,56-83"


def chain(*views: ContainerView, static: StaticCpuPolicy = PLAIN, mask: int | None = 1) -> list[str]:
    """Allocate container by container; returns each one's CPUs, or the reason of the first refusal."""
    asked = manager(pod(*views), static)
    for view in views:
        refusal = asked.allocate(view, Hint(mask, preferred=True))
        if refusal:
            return [refusal.reason]
    return [format_set(asked.assigned[view.name]) for view in views]


def test_init_containers_leave_their_cpus_to_the_pod():
    init = container("init", Kind.INIT, cpu=52, memory="1Gi")

    assert chain(init, container(cpu=52, memory="1Gi")) == ["2-27,58-83", "2-27,58-83"]


def test_sidecars_keep_theirs():
    sidecar = container("sidecar", Kind.SIDECAR, cpu=2, memory="1Gi")

    assert chain(sidecar, container(cpu=2, memory="1Gi")) == ["2,58", "3,59"]


def test_apps_keep_what_they_took_over():
    init = container("init", Kind.INIT, cpu=4, memory="1Gi")
    one, two = container("one", cpu=2, memory="1Gi"), container("two", cpu=4, memory="1Gi")

    assert chain(init, one, two) == ["2-3,58-59", "2,58", "3-4,59-60"]


def test_full_pcpus_only_does_not_count_what_init_containers_left():
    init = container("init", Kind.INIT, cpu=56, memory="1Gi")

    assert chain(init, container(cpu=56, memory="1Gi"), static=policy("0-1,56-57")) == ["SMTAlignmentError"]
    assert chain(init, container(cpu=56, memory="1Gi")) == ["2-29,58-85", "2-29,58-85"]


def test_what_init_containers_left_nails_the_hints():
    init, app = container("init", Kind.INIT, cpu=8, memory="1Gi"), container(cpu=54, memory="1Gi")
    asked = manager(pod(init, app))
    asked.allocate(init, Hint(0b01, preferred=True))

    assert shown(asked.container_hints(app, singles=False)) == ["0,1F"]
    assert shown(asked.container_hints(app, singles=True)) == []
    just = container(cpu=52, memory="1Gi")
    assert shown(asked.container_hints(just, singles=False)) == ["0T", "0,1F"]
    assert shown(asked.container_hints(just, singles=True)) == ["0T"]


def fits(size: int, *views: ContainerView) -> bool | None:
    """Whether the pod's CPUs fit a machine with so many; None: it wants none."""
    found = shown(manager(pod(*views), policy("", CpuOptions(), topology(size, threads=1, sockets=1))).pod_hints(singles=False))
    return None if found is None else found == ["0T"]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([(Kind.APP, 3), (Kind.APP, 4)], 7),
        ([(Kind.INIT, 9), (Kind.APP, 4)], 9),
        ([(Kind.INIT, 3), (Kind.APP, 4)], 4),
        ([(Kind.SIDECAR, 2), (Kind.INIT, 3), (Kind.APP, 4)], 6),
        ([(Kind.SIDECAR, 2), (Kind.INIT, 5), (Kind.APP, 4)], 7),
        ([(Kind.INIT, 5), (Kind.SIDECAR, 2), (Kind.APP, 4)], 6),
        ([(Kind.APP, 3), (Kind.APP, "500m")], 3),
    ],
)
def test_the_pods_sum(kinds: list[tuple[Kind, object]], expected: int):
    views = [container(f"c{index}", kind, cpu=count, memory="1Gi") for index, (kind, count) in enumerate(kinds)]

    assert fits(expected, *views)
    assert not fits(expected - 1, *views)


def test_a_hang_is_a_refusal():
    """Issue 140730: what is left on each node is no whole core, so the kubelet's loop never ends."""
    hanging = policy("", CpuOptions(full_pcpus_only=True, distribute_across_numa=True), topology(*[8] * 8))
    free = cpus("1,3-6,8-10,12-14,16-18,20-21,23-27,29,31-33,36-37,39,41,43-47,49-52,54-55,57-59,61-63")

    found = hanging.take(free, 22)

    assert isinstance(found, Refusal)
    assert found.reason == "KubeletPanic"


# --- pod-level resources ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minor", "gates", "hinted"),
    [
        (34, LEVEL, False),
        (35, LEVEL, False),
        (34, frozenset(), True),
        (36, frozenset(), False),
        (36, LEVEL, False),
        (36, MANAGED, True),
        (37, LEVEL, False),
        (37, MANAGED, True),
    ],
)
def test_pod_level_resources_by_minor_and_gates(minor: int, gates: frozenset[str], hinted: bool):
    view = container(cpu=4, memory="1Gi")
    asked = manager(pod(view, cpu=8, memory="2Gi"), gates=gates, minor=minor)

    assert (asked.container_hints(view, singles=False) is not None) is hinted
    assert (asked.pod_hints(singles=False) is not None) is hinted
    assert asked.allocate(view, Hint(1, preferred=True)) is None
    assert ("main" in asked.assigned) is hinted


def managed(*views: ContainerView, qos: str = "Guaranteed", static: StaticCpuPolicy = PLAIN, **pod_level: object) -> CpuManager:
    return manager(pod(*views, qos=qos, **pod_level), static, MANAGED)


def test_only_containers_that_would_be_guaranteed_alone_get_cpus_of_their_own():
    whole = container("whole", cpu=4, memory="1Gi")
    no_memory = container("no-memory", cpu=4)
    no_limit = ContainerView("no-limit", Kind.APP, nano({"cpu": 4, "memory": "1Gi"}), nano({"memory": "1Gi"}))
    asked = managed(whole, no_memory, no_limit, cpu=16, memory="4Gi")

    assert shown(asked.container_hints(whole, singles=True)) == ["0T", "1T"]
    assert asked.container_hints(no_memory, singles=True) is None
    assert asked.container_hints(no_limit, singles=True) is None


@pytest.mark.parametrize(("cpu", "expected"), [(8, ["0T", "1T"]), (54, ["1T"]), (57, []), ("7500m", None), (0, None)])
def test_the_pods_own_request_is_what_counts(cpu: object, expected: list[str] | None):
    assert shown(managed(container(cpu=4), cpu=cpu, memory="1Gi").pod_hints(singles=True)) == expected


def test_a_pod_that_is_not_guaranteed_has_no_pool():
    asked = managed(container(), qos="Burstable", cpu=8)

    assert asked.pod_hints(singles=False) is None
    assert asked.allocate_pod(Hint(1, preferred=True)) is None
    assert asked.pool == 0


SHARED_INIT = "pod rejected, pod has shared init containers but no cpus available for them"
SHARED_APP = "pod rejected, sum of exclusive container cpu requests equals pod budget, leaving no cpus for shared containers"


def own(name: str, cpu: int, kind: Kind = Kind.APP) -> ContainerView:
    return container(name, kind, cpu=cpu, memory="1Gi")


def sharing(name: str, kind: Kind = Kind.APP) -> ContainerView:
    return container(name, kind)


@pytest.mark.parametrize(
    ("views", "problem"),
    [
        ([own("a", 8)], ""),
        ([own("a", 7), sharing("b")], ""),
        ([own("a", 8), sharing("b")], SHARED_APP),
        ([own("s", 8, Kind.SIDECAR), sharing("i", Kind.INIT), own("a", 0)], SHARED_INIT),
        ([own("s", 9, Kind.SIDECAR), sharing("i", Kind.INIT), own("a", 0)], SHARED_INIT),
        ([sharing("i", Kind.INIT), own("s", 8, Kind.SIDECAR)], ""),
        ([own("i", 8, Kind.INIT), sharing("b")], ""),
        ([sharing("s", Kind.SIDECAR), own("a", 8)], SHARED_APP),
    ],
)
def test_a_pool_that_is_empty(views: list[ContainerView], problem: str):
    asked = managed(*views, cpu=8, memory="8Gi")

    refusal = asked.allocate_pod(Hint(1, preferred=True))

    assert refusal == (Refusal("EmptyPodSharedPoolError", problem) if problem else None)
    assert shown(asked.pod_hints(singles=True)) == ([] if problem else ["0T", "1T"])


def test_the_pool_is_shared_out():
    views = [
        own("sidecar", 2, Kind.SIDECAR),
        own("init", 4, Kind.INIT),
        sharing("shared-init", Kind.INIT),
        own("app", 2),
        sharing("shared"),
        sharing("shared-sidecar", Kind.SIDECAR),
    ]
    asked = managed(*views, cpu=8, memory="8Gi")

    assert asked.allocate_pod(Hint(0b10, preferred=True)) is None
    assert format_set(asked.pool) == "28-31,84-87"
    assert {name: format_set(found) for name, found in asked.assigned.items()} == {
        "sidecar": "28,84",
        "init": "29-30,85-86",
        "shared-init": "29-31,85-87",
        "app": "29,85",
        "shared": "30-31,86-87",
        "shared-sidecar": "30-31,86-87",
    }


def test_more_own_cpus_than_the_pool_has():
    views = [own("i", 6, Kind.INIT), own("a", 6), own("b", 6)]

    refusal = managed(*views, cpu=8, memory="8Gi").allocate_pod(Hint(1, preferred=True))

    assert refusal is not None
    assert "requested=6, available=2" in refusal.message


def test_full_pcpus_only_looks_at_the_pool_not_at_the_containers():
    odd = managed(own("a", 3), own("b", 5), static=policy(), cpu=8, memory="8Gi")

    assert odd.allocate_pod(Hint(1, preferred=True)) is None
    refusal = managed(own("a", 3), static=policy(), cpu=7, memory="8Gi").allocate_pod(Hint(1, preferred=True))
    assert refusal is not None
    assert refusal.reason == "SMTAlignmentError"


def test_a_pool_too_large():
    refusal = managed(own("a", 3), cpu=200, memory="8Gi").allocate_pod(ANY)

    assert refusal is not None
    assert "requested=200, available=108" in refusal.message


@given(
    st.lists(st.tuples(st.sampled_from(list(Kind)), st.integers(1, 30)), min_size=1, max_size=4),
    st.sampled_from([None, 0b01, 0b10, 0b11]),
)
def test_assignments_never_overlap_where_containers_run_together(kinds: list[tuple[Kind, int]], mask: int | None):
    views = [own(f"c{index}", count, kind) for index, (kind, count) in enumerate(kinds)]
    asked = manager(pod(*views))

    for view in views:
        refusal = asked.allocate(view, Hint(mask, preferred=True))
        if refusal:
            return

    running = [view for view in views if view.kind is not Kind.INIT]
    taken = [asked.assigned[view.name] for view in running]
    assert sum(found.bit_count() for found in taken) == sum(view.requests["cpu"] for view in running) // 10**9
    assert all(one & other == 0 for index, one in enumerate(taken) for other in taken[:index])
    assert all(found & ~PLAIN.available == 0 for found in asked.assigned.values())

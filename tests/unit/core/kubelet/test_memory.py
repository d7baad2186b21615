"""The Memory Manager, policy Static."""

from collections.abc import Mapping

import pytest

from tests.unit.core.kubelet.make import GI, container, hints, memory_manager, memory_policy, pod, written
from webhook.core.containers import Kind
from webhook.core.kubelet.contract import ContainerView, Hints, KubeletPanicError, Refusal
from webhook.core.kubelet.memory import MemoryManager

TWO = memory_policy(100, 100)
UNEVEN = memory_policy(50, 100)
MANAGED = frozenset({"PodLevelResourceManagers"})


def listed(found: Hints) -> Mapping[str, list[str] | None] | None:
    return None if found is None else {name: written(hint) for name, hint in found.items()}


def container_hints(
    manager: MemoryManager, view: ContainerView, *, singles: bool = False
) -> Mapping[str, list[str] | None] | None:
    return listed(manager.container_hints(view, singles=singles))


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("100Gi", {"memory": ["0T", "1T", "0,1F"]}),
        ("101Gi", {"memory": ["0,1T"]}),
        ("201Gi", None),
        ("0", {"memory": ["0T", "1T", "0,1F"]}),
    ],
)
def test_hints(memory: str, expected: Mapping[str, list[str]] | None):
    view = container(cpu=1, memory=memory)

    assert container_hints(memory_manager(TWO, pod(view)), view) == expected


def test_hints_follow_what_each_node_can_give():
    view = container(memory="60Gi")

    assert container_hints(memory_manager(UNEVEN, pod(view)), view) == {"memory": ["1T", "0,1F"]}


def test_all_types_have_the_same_hints():
    view = container(memory="60Gi", pages="2Gi")
    policy = memory_policy(100, 100, pages=(0, 4))

    assert container_hints(memory_manager(policy, pod(view)), view) == {
        "memory": ["1T", "0,1F"],
        "hugepages-1Gi": ["1T", "0,1F"],
    }


@pytest.mark.parametrize(("memory", "expected"), [("60Gi", ["0T", "1T"]), ("101Gi", []), ("201Gi", None)])
def test_single_nodes_keep_apart_what_needs_two_and_what_fits_nowhere(memory: str, expected: list[str] | None):
    view = container(memory=memory)
    found = container_hints(memory_manager(TWO, pod(view)), view, singles=True)

    assert found == (None if expected is None else {"memory": expected})


@pytest.mark.parametrize("qos", ["Burstable", "BestEffort"])
def test_only_guaranteed_pods_count(qos: str):
    view = container(memory="60Gi")
    manager = memory_manager(TWO, pod(view, qos=qos))

    assert manager.container_hints(view, singles=False) is None
    assert manager.allocate(view, hints("0T")[0]) is None
    assert not manager.pinned


@pytest.mark.parametrize("amount", ["1500m", "20E", "20Ei", "20000000000000000001"])
def test_what_no_int64_holds_gives_no_hint_and_then_fails(amount: str):
    view = container(memory=amount)
    manager = memory_manager(TWO, pod(view))

    assert manager.container_hints(view, singles=False) is None
    assert manager.pod_hints(singles=False) is None
    refusal = manager.allocate(view, hints("0T")[0])
    assert refusal is not None
    assert refusal.reason == "UnexpectedAdmissionError"


@pytest.mark.parametrize("page", ["hugepages-64Ki", "hugepages-1024Mi"])
def test_an_unknown_page_size_panics(page: str):
    view = container(memory="1Gi", **{page: "1Gi"})

    with pytest.raises(KubeletPanicError):
        memory_manager(TWO, pod(view)).container_hints(view, singles=True)


def test_the_pods_sum_leaves_out_types_that_only_init_containers_use():
    view = pod(
        container("i", Kind.INIT, memory="150Gi", pages="1Gi"),
        container("s", Kind.SIDECAR, memory="10Gi"),
        container("a", memory="60Gi"),
    )

    assert listed(memory_manager(memory_policy(100, 100, pages=(0, 1)), view).pod_hints(singles=False)) == {"memory": ["0,1T"]}


def test_the_pods_sum_adds_sidecars_to_apps_and_to_later_init_containers():
    sidecar, app = container("s", Kind.SIDECAR, memory="50Gi"), container("a", memory="60Gi")
    init = container("i", Kind.INIT, memory="60Gi")
    together, after, before = pod(sidecar, app), pod(sidecar, init, container("a", memory="1Gi")), pod(init, sidecar, SMALL)

    assert listed(memory_manager(TWO, together).pod_hints(singles=False)) == {"memory": ["0,1T"]}
    assert listed(memory_manager(TWO, after).pod_hints(singles=False)) == {"memory": ["0,1T"]}
    assert listed(memory_manager(TWO, before).pod_hints(singles=False)) == {"memory": ["0T", "1T", "0,1F"]}


def outcome(manager: MemoryManager, *steps: tuple[ContainerView, str]) -> list[str]:
    """Allocate one container after the other: the mask it is pinned to, or the kubelet's error."""
    seen = []
    for view, hint in steps:
        refusal = manager.allocate(view, hints(hint)[0])
        seen.append(refusal.message if refusal else str(manager.pinned.get(view.name)))
        if refusal:
            break
    return seen


SMALL, MIDDLE, WIDE = (container(name, memory=size) for name, size in (("a", "1Gi"), ("b", "60Gi"), ("c", "150Gi")))
SPARE_INIT = container("i", Kind.INIT, memory="90Gi")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(SMALL, "0T")], ["1"]),
        ([(SMALL, "*F")], ["1"]),
        ([(WIDE, "*F")], ["3"]),
        ([(WIDE, "*T")], ["3"]),
        ([(WIDE, "0F")], ["3"]),
        ([(WIDE, "0T")], ["3"]),
        ([(container(memory="300Gi"), "*F")], ["failed to get the default NUMA affinity"]),
        ([(container(memory="300Gi"), "0F")], ["failed to find NUMA nodes to extend"]),
        # a node used alone takes part in nothing wider, and the other way round
        ([(SMALL, "0T"), (WIDE, "0,1T")], ["1", "violates NUMA node allocation"]),
        ([(WIDE, "0,1T"), (MIDDLE, "0,1F")], ["3", "failed to find NUMA nodes to extend"]),
        ([(WIDE, "0,1T"), (SMALL, "0,1F")], ["3", "3"]),
        # what an init container leaves serves the next container on the same nodes
        ([(SPARE_INIT, "0T"), (MIDDLE, "0F")], ["1", "1"]),
        ([(SPARE_INIT, "0,1T"), (container("d", memory="190Gi"), "0,1T")], ["3", "3"]),
        # but for the first look at a wide mask it does not count
        ([(SPARE_INIT, "0,1T"), (container("d", memory="100Gi"), "0,1T")], ["3", "3"]),
        (
            [(container("i", Kind.INIT, memory="150Gi"), "0,1T"), (MIDDLE, "0,1T")],
            ["3", "failed to find the extended preferred hint"],
        ),
    ],
)
def test_allocation(steps: list[tuple[ContainerView, str]], expected: list[str]):
    found = outcome(memory_manager(TWO, pod(*(view for view, _ in steps))), *steps)

    assert len(found) == len(expected)
    for text, part in zip(found, expected, strict=True):
        assert part in text


def test_a_hint_that_is_too_small_grows_by_as_few_nodes_as_possible():
    """Not to the lowest nodes: 0, 1 and 2 would do as well, and together are the smaller number as a mask."""
    view = container(memory="80Gi")

    assert outcome(memory_manager(memory_policy(50, 15, 20, 200), pod(view)), (view, "0F")) == [str(0b1001)]


def test_groups_narrow_the_hints():
    manager = memory_manager(TWO, pod(SMALL, MIDDLE, WIDE))
    manager.allocate(SMALL, hints("0T")[0])

    assert container_hints(manager, MIDDLE) == {"memory": ["0T", "1T"]}
    assert container_hints(manager, WIDE) is None
    assert container_hints(manager, WIDE, singles=True) is None


def test_what_several_containers_took_adds_up():
    one, two = container("a", memory="40Gi"), container("b", memory="40Gi")
    manager = memory_manager(TWO, pod(one, two, MIDDLE))

    assert outcome(manager, (one, "0T"), (two, "0T")) == ["1", "1"]
    assert container_hints(manager, container("d", memory="20Gi")) == {"memory": ["0T", "1T"]}
    assert container_hints(manager, container("d", memory="21Gi")) == {"memory": ["1T"]}


def test_reusable_memory_counts_for_hints_of_the_same_mask():
    init, app = container("i", Kind.INIT, memory="90Gi"), container("a", memory="95Gi")
    manager = memory_manager(TWO, pod(init, app))
    manager.allocate(init, hints("0T")[0])

    assert container_hints(manager, app) == {"memory": ["0T", "1T"]}
    assert manager.allocate(app, hints("0T")[0]) is None
    assert manager.sizes["a"] == {"memory": 95 * GI}


# --- pod-level resources ---------------------------------------------------------------------------------------------------

EXCLUSIVE = container("a", cpu=2, memory="8Gi")
SHARING = ContainerView("b", Kind.APP, {}, {})


@pytest.mark.parametrize(
    ("gates", "minor", "served"),
    [(MANAGED, 37, True), (frozenset(), 37, False), (frozenset(), 36, False), (frozenset(), 35, False), (MANAGED, 36, True)],
)
def test_pod_level_resources_need_their_gate(gates: frozenset[str], minor: int, served: bool):
    view = pod(EXCLUSIVE, SHARING, cpu=4, memory="16Gi")
    manager = memory_manager(TWO, view, gates=gates, minor=minor)

    assert (manager.container_hints(EXCLUSIVE, singles=False) is not None) is served
    assert (manager.pod_hints(singles=False) is not None) is served


def test_without_the_older_gate_early_minors_see_an_ordinary_pod():
    manager = MemoryManager(TWO, frozenset(), 35, pod(EXCLUSIVE, cpu=4, memory="16Gi"))

    assert manager.container_hints(EXCLUSIVE, singles=False) is not None


def test_a_sharing_container_has_no_memory_of_its_own():
    manager = memory_manager(TWO, pod(EXCLUSIVE, SHARING, cpu=4, memory="16Gi"), gates=MANAGED)

    assert manager.container_hints(SHARING, singles=False) is None
    assert manager.allocate(SHARING, hints("0T")[0]) is None


def test_1_36_looks_for_memory_where_none_is_asked_for():
    manager = memory_manager(TWO, pod(EXCLUSIVE, SHARING, cpu=4, memory="16Gi"), gates=MANAGED, minor=36)
    refusal = manager.allocate(SHARING, hints("*T")[0])

    assert refusal is not None
    assert "failed to get the default NUMA affinity" in refusal.message


@pytest.mark.parametrize(
    ("containers", "empty"),
    [
        ((EXCLUSIVE, SHARING), True),
        ((EXCLUSIVE,), False),
        ((ContainerView("i", Kind.INIT, {}, {}), EXCLUSIVE), False),
        ((container("s", Kind.SIDECAR, cpu=2, memory="8Gi"), ContainerView("i", Kind.INIT, {}, {})), True),
    ],
)
def test_nothing_may_be_left_without_memory(containers: tuple[ContainerView, ...], empty: bool):
    manager = memory_manager(TWO, pod(*containers, cpu=4, memory="8Gi"), gates=MANAGED)

    assert listed(manager.pod_hints(singles=False)) == {"memory": [] if empty else ["0T", "1T", "0,1F"]}
    refusal = manager.allocate_pod(hints("0T")[0])
    assert (refusal.reason if isinstance(refusal, Refusal) else None) == ("EmptyPodSharedPoolError" if empty else None)


def test_the_pods_memory_is_pinned_for_all_its_containers():
    manager = memory_manager(TWO, pod(EXCLUSIVE, SHARING, cpu=4, memory="16Gi"), gates=MANAGED)

    assert manager.allocate_pod(hints("1T")[0]) is None
    assert manager.pinned == {"a": 2, "b": 2}


def test_the_amounts_of_the_table_are_bytes():
    assert TWO.fewest_nodes("memory", 100 * GI) == 1
    assert TWO.fewest_nodes("memory", 100 * GI + 1) == 2

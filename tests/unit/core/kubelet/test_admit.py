"""The whole admission: from the raw pod to the verdict."""

from functools import cache
from json import dumps, loads
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance import tables
from tests.conformance.tables import GPU, NIC, container, kubelet, m128, numa
from webhook.config.load import parse_class
from webhook.core.kubelet import fit
from webhook.core.kubelet.admit import judge, judge_view, verdict_json
from webhook.core.kubelet.contract import PodView
from webhook.core.kubelet.node import NodeKubelet, compile_class
from webhook.core.kubelet.view import view
from webhook.core.verdict import Outcome

JSON = dict[str, Any]
SINGLE, RESTRICTED, BEST_EFFORT, NONE = tables.SINGLE, tables.RESTRICTED, tables.BEST_EFFORT, tables.NONE
DEVICES: JSON = {"first": {GPU: 4, NIC: 1}, "second": {GPU: 4, NIC: 1}}


@cache
def _compiled(document: str) -> NodeKubelet:
    node_class, errors = parse_class(loads(document))
    assert node_class is not None, errors
    return compile_class(node_class)


def node(document: JSON) -> NodeKubelet:
    return _compiled(dumps(document))


def two_nodes(policy: str = SINGLE, scope: str = "pod", **config: Any) -> NodeKubelet:
    return node(m128(kubelet(policy, scope, **config), **DEVICES))


WORK = tables.pod(container("main", "8", "64Gi", 2, nic=1), container("side", "1500m", "1Gi"))


def test_an_aligned_pod():
    verdict = judge(two_nodes(), WORK)

    assert verdict.outcome is Outcome.ALIGNED
    assert verdict.masks == {"main": (0,), "side": (0,)}
    assert len(verdict.placements["main"].cpus) == 8
    assert verdict.placements["side"].cpus == ()
    assert verdict.placements["main"].devices == {GPU: {0: 2}, NIC: {0: 1}}
    assert verdict.gaps == ()


def test_the_form_of_the_command():
    assert verdict_json(judge(two_nodes(), WORK)) == {
        "start": None,
        "admitted": True,
        "reason": "",
        "message": "",
        "masks": {"main": [0], "side": [0]},
        "aligned": True,
        "certain": True,
    }


def test_a_kubelet_that_does_not_start_judges_nothing():
    broken = node(m128(kubelet(memory=False, topologyManagerPolicy="strict")))

    for verdict in (judge(broken, WORK), judge_view(broken, view(WORK, 37))):
        assert verdict.start
        assert verdict_json(verdict)["masks"] == {}
        assert verdict.outcome is Outcome.REFUSED


@pytest.mark.parametrize("gpus", [(1, 2, 1), (1, 1, 1)])
def test_a_panic_by_chance_is_not_certain(gpus: tuple[int, int, int]):
    nodes = [numa(index, 4, "8Gi", devices={GPU: count, NIC: 1}) for index, count in zip((0, 2, 3), gpus, strict=True)]
    nodes[2]["devices"][NIC] = 2
    options = {"topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"}}
    config = {"topologyManagerPolicy": BEST_EFFORT, "topologyManagerScope": "pod", **options}
    verdict = judge(
        node(tables.node_class(nodes, config, sockets=1, threads=1)), tables.pod(container("a", None, None, 3, nic=3))
    )

    assert verdict.reason == "KubeletPanic"
    assert verdict.certain is (gpus == (1, 1, 1))
    assert verdict.outcome is (Outcome.REFUSED if verdict.certain else Outcome.UNKNOWN)


def test_the_api_server_comes_first():
    verdict = judge(two_nodes(), tables.pod(container("main", "8", "64Gi", nic="1.5")))

    assert verdict.reason == "Invalid"
    assert "hostdev" in verdict.message


@pytest.mark.parametrize(("scope", "at_fault"), [("container", "c"), ("pod", "")])
def test_the_container_at_fault(scope: str, at_fault: str):
    pod = tables.pod(container("a", gpu=4), container("b", gpu=4), container("c", gpu=1))
    verdict = judge(two_nodes(SINGLE, scope), pod)

    assert (verdict.reason, verdict.container) == ("TopologyAffinityError", at_fault)


def test_devices_come_before_cpus_and_memory():
    verdict = judge(two_nodes(NONE), tables.pod(container("main", "200", "900Gi", 9)))

    assert verdict.reason == "UnexpectedAdmissionError"
    assert GPU in verdict.message


def test_policy_none_stores_no_hint():
    verdict = judge(two_nodes(NONE), WORK)

    assert verdict.masks == {"main": None, "side": None}
    assert verdict.admitted


def test_a_page_size_that_no_node_has_panics():
    verdict = judge(two_nodes(), tables.pod(container("main", "8", "64Gi", odd_pages="64Ki")))

    assert verdict.reason == "KubeletPanic"


def test_the_fit_check_follows():
    pod = tables.pod(container("main", "8", "64Gi", 1))
    pod["spec"]["overhead"] = {"cpu": "125"}

    assert judge(two_nodes(), pod).reason == "OutOfcpu"


def test_chance_is_told():
    pod = tables.pod(container("a", "70", "64Gi", 2), container("b", "8", "64Gi", 4))
    verdict = judge(two_nodes(BEST_EFFORT, "container", memory=False), pod)

    assert not verdict.certain
    assert verdict.outcome is Outcome.UNKNOWN
    # whatever chance brings: the hint of `a` leaves it both nodes
    assert verdict.possible == {Outcome.ADMITTED}


@pytest.mark.parametrize(
    ("containers", "possible"),
    [
        # one device: on either node, so beside the CPUs or not
        ([container("a", "8", "4Gi", 1)], {Outcome.ALIGNED, Outcome.ADMITTED}),
        # five devices are never on one node, and nothing is preferred
        ([container("a", "8", "4Gi", 5), container("b", "8", "4Gi", 1)], set()),
        ([container("a", "1500m", "4Gi", 1)], set()),
        ([container("a", "8", "4Gi", 8)], set()),
    ],
)
def test_without_hints_only_alignment_is_chance(containers: list[JSON], possible: set[Outcome]):
    verdict = judge(two_nodes(NONE, memory=False), tables.pod(*containers))

    assert verdict.surely_admitted
    assert verdict.certain is not bool(possible)
    assert verdict.possible == possible


def test_gaps_say_what_is_not_aligned():
    pod = tables.pod(container("main", "8", "64Gi", 5))
    verdict = judge(two_nodes(BEST_EFFORT), pod)

    assert verdict.outcome is Outcome.ADMITTED
    assert {gap.container for gap in verdict.gaps} == {"main"}
    assert not judge(two_nodes(RESTRICTED), pod).admitted


def wide(policy: str, *, memory: bool, count: int = 36) -> NodeKubelet:
    """A machine whose GPUs bring their memory as NUMA nodes: two with CPUs, many without."""
    nodes = [numa(index, 72, "480Gi", devices={GPU: 2}) for index in range(2)]
    nodes += [numa(index, 0, "16Gi") for index in range(2, count)]
    config = kubelet(policy, "pod", memory=memory, topologyManagerPolicyOptions={"max-allowable-numa-nodes": "40"})
    return node(tables.node_class(nodes, config, threads=1))


@pytest.mark.parametrize("policy", [SINGLE, RESTRICTED, BEST_EFFORT])
def test_many_nodes_without_cpus_are_no_burden(policy: str):
    verdict = judge(wide(policy, memory=False), tables.pod(container("main", "8", "64Gi", 2)))

    assert verdict.outcome is Outcome.ALIGNED


@pytest.mark.parametrize("policy", [SINGLE, RESTRICTED, BEST_EFFORT, NONE])
def test_a_memory_manager_that_never_finishes_gives_no_verdict(policy: str):
    pod = tables.pod(container("main", "8", "64Gi", 2))
    verdict = judge(wide(policy, memory=True), pod)

    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.unknown
    assert verdict_json(verdict)["certain"] is False
    assert judge(wide(policy, memory=True), tables.pod(container("main", None, None, 2))).admitted


def eight(policy: str) -> NodeKubelet:
    nodes = [numa(index, 16, "96Gi", hugepages={"1Gi": "8Gi"}, devices={GPU: 1, NIC: 1}) for index in range(8)]
    return node(tables.node_class(nodes, kubelet(policy, "container")))


def test_five_resources_on_eight_nodes():
    small, large = (tables.pod(container("main", *size)) for size in (("8", "32Gi", 1), ("60", "300Gi", 4)))
    for pod, more in ((small, "1"), (large, "4")):
        amounts = pod["spec"]["containers"][0]["resources"]
        for field in ("limits", "requests"):
            amounts[field] |= {NIC: more, "hugepages-1Gi": f"{more}Gi"}

    assert judge(eight(SINGLE), small).outcome is Outcome.ALIGNED
    assert judge(eight(SINGLE), large).reason == "TopologyAffinityError"
    assert "would take the kubelet" in judge(eight(RESTRICTED), large).unknown


# --- properties ------------------------------------------------------------------------------------------------------------

AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["1", "2", "20", "40", "62", "100", "1500m", "0"]),
        "memory": st.sampled_from(["1Gi", "64Gi", "200Gi", "300Gi", "500Gi"]),
        GPU: st.sampled_from([0, 1, 2, 4, 5, "8"]),
        NIC: st.sampled_from([1, 2]),
        "hugepages-1Gi": st.sampled_from(["0", "2Gi"]),
    },
)
KINDS = st.sampled_from(["init", "sidecar"])


@st.composite
def pods(draw: st.DrawFn) -> JSON:
    apps = draw(st.lists(AMOUNTS, min_size=1, max_size=3))
    inits = draw(st.lists(st.tuples(KINDS, AMOUNTS), max_size=2))
    pod = tables.pod(*({"name": f"a{index}", "resources": {"limits": limits}} for index, limits in enumerate(apps)))
    pod["spec"]["initContainers"] = [
        {"name": f"i{index}", "resources": {"limits": limits}} | ({"restartPolicy": "Always"} if kind == "sidecar" else {})
        for index, (kind, limits) in enumerate(inits)
    ]
    return pod


NODES = st.sampled_from(
    [two_nodes(policy, scope) for policy in (SINGLE, RESTRICTED, BEST_EFFORT, NONE) for scope in ("pod", "container")]
)


def reordered(value: Any) -> Any:
    """The same JSON with every mapping's keys in the opposite order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(one) for one in value] if isinstance(value, list) else value


@settings(max_examples=150)
@given(NODES, pods())
def test_the_order_of_keys_does_not_matter(kubelet_node: NodeKubelet, pod: JSON):
    one, other = judge(kubelet_node, pod), judge(kubelet_node, reordered(pod))

    assert one.certain is other.certain
    if one.certain:
        assert (one.admitted, one.reason, one.masks, one.aligned) == (other.admitted, other.reason, other.masks, other.aligned)


@settings(max_examples=150)
@given(NODES, pods())
def test_what_is_admitted_fits_and_has_a_hint_for_every_container(kubelet_node: NodeKubelet, pod: JSON):
    verdict = judge(kubelet_node, pod)
    stored = view(pod, 37)

    assert verdict.admitted is not bool(verdict.reason)
    if not verdict.admitted:
        assert (verdict.masks, verdict.placements, verdict.aligned) == ({}, {}, False)
        return
    assert isinstance(stored, PodView)
    assert fit.shortage(stored, kubelet_node.fit_allocatable, pod_level=True) is None
    assert [*verdict.masks] == [one.name for one in stored.containers]
    assert verdict.aligned is not bool(verdict.gaps)


@settings(max_examples=100)
@given(pods(), st.sampled_from(["pod", "container"]))
def test_a_stricter_policy_admits_no_more(pod: JSON, scope: str):
    single, restricted = judge(two_nodes(SINGLE, scope), pod), judge(two_nodes(RESTRICTED, scope), pod)

    if single.certain and restricted.certain and scope == "pod":
        assert restricted.admitted or not single.admitted

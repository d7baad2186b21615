"""What people read when a pod is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest
from explaining import CATALOGUE, account, container, node, pod, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook.core import decide, explain
from webhook.core.change import applied
from webhook.core.decision import Request
from webhook.core.knobs import missing_limits
from webhook.core.kubelet import admit
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.snapshot import Snapshot
from webhook.core.verdict import Gap, Verdict

Case = tuple[dict[str, Any], NodeKubelet, str, list[str]]

FULL_CORES = {"full-pcpus-only": "true"}
NOT_GUARANTEED = "so the pod is not Guaranteed and gets no CPUs of its own"

CASES: dict[str, Callable[[], Case]] = {
    "more GPUs than a NUMA node has": lambda: (
        pod(container(cpu="16", memory="64Gi", gpu=5)),
        node(),
        "trainer needs 5 GPUs on one NUMA node; each has 4",
        ["container trainer, resources.limits[nvidia.com/gpu]: now 5, use 4"],
    ),
    "more GPUs than the machine has": lambda: (
        pod(container(cpu="16", memory="64Gi", gpu=9)),
        node(),
        "trainer asks 9 GPUs; a node has 8",
        ["container trainer, resources.limits[nvidia.com/gpu]: now 9, use 4"],
    ),
    "GPUs unevenly spread": lambda: (
        pod(container(cpu="16", memory="64Gi", gpu=4)),
        node(gpus=(2, 3)),
        "trainer needs 4 GPUs on one NUMA node; NUMA node 0 has 2, node 1 3",
        ["container trainer, resources.limits[nvidia.com/gpu]: now 4, use 3"],
    ),
    "too many CPUs": lambda: (
        pod(container(cpu="60", memory="64Gi", gpu=1)),
        node(cpus=56),
        "trainer asks 60 CPUs; NUMA node 0 leaves 52 to pods, node 1 56",
        ["container trainer, resources.limits.cpu: now 60, use 56"],
    ),
    "more memory than a NUMA node has": lambda: (
        pod(container(cpu="16", memory="255Gi", gpu=1)),
        node(),
        "trainer asks 255Gi of memory; each NUMA node leaves 249.95Gi to pods",
        ["container trainer, resources.limits.memory: now 255Gi, use 249Gi"],
    ),
    "a NIC on the other node": lambda: (
        pod(container(cpu="62", memory="64Gi", gpu=1, nic=1)),
        node(nics=(1, 0)),
        (
            "trainer asks 62 CPUs, 1 GPU and 1 openshift.io/mlx of one NUMA node; "
            "node 0 has 60 CPUs, 4 GPUs and 1 openshift.io/mlx, node 1 has 64 CPUs, 4 GPUs and 0 openshift.io/mlx"
        ),
        ["container trainer, resources.limits.cpu: now 62, use 60"],
    ),
    "more hugepages than a NUMA node has": lambda: (
        pod(container(cpu="16", memory="64Gi", gpu=1, pages="48Gi")),
        node(pages=("32Gi", "32Gi")),
        "trainer asks 48Gi of 1Gi hugepages; each NUMA node leaves 32Gi to pods",
        ["container trainer, resources.limits.hugepages-1Gi: now 48Gi, use 32Gi"],
    ),
    "hugepages that the class does not have": lambda: (
        pod(container(cpu="16", memory="64Gi", gpu=1, pages="8Gi")),
        node(),
        "trainer asks 8Gi of 1Gi hugepages; these nodes have none",
        ["container trainer, resources.limits.hugepages-1Gi: now 8Gi, remove it"],
    ),
    "an odd number of CPUs where whole cores are given out": lambda: (
        pod(container(cpu="7", memory="64Gi", gpu=1)),
        node(cpuManagerPolicyOptions=FULL_CORES),
        "trainer asks 7 CPUs; these nodes give out whole cores of 2 CPUs",
        ["container trainer, resources.limits.cpu: now 7, use 8"],
    ),
    "an odd number beyond the NUMA node": lambda: (
        pod(container(cpu="65", memory="64Gi", gpu=1)),
        node(cpuManagerPolicyOptions=FULL_CORES),
        "trainer asks 65 CPUs; NUMA node 0 leaves 60 to pods, node 1 64",
        ["container trainer, resources.limits.cpu: now 65, use 64"],
    ),
    "CPUs that are not whole": lambda: (
        pod(container(cpu="7500m", memory="64Gi", gpu=1)),
        node(),
        "would run unaligned: trainer asks 7500m CPUs; only whole CPUs are a container's own",
        ["container trainer, resources.limits.cpu: now 7500m, use 8"],
    ),
    "a sidecar without limits": lambda: (
        pod(container(cpu="16", memory="64Gi", gpu=1), container("istio-proxy", requests={"cpu": "100m", "memory": "128Mi"})),
        node(),
        f"would run unaligned: istio-proxy has no CPU and no memory limit, {NOT_GUARANTEED}",
        [
            "container istio-proxy, resources.limits.cpu: now missing, use 100m",
            "container istio-proxy, resources.limits.memory: now missing, use 128Mi",
        ],
    ),
    "a sidecar with a request below its limit": lambda: (
        pod(container(cpu="16", memory="64Gi", gpu=1), container("proxy", requests={"cpu": "1"}, cpu="2", memory="1Gi")),
        node(),
        f"would run unaligned: proxy has a CPU request below its limit, {NOT_GUARANTEED}",
        ["container proxy, resources.requests.cpu: now 1, use 2"],
    ),
    "containers that fit alone but not together": lambda: (
        pod(container("a", cpu="40", memory="64Gi", gpu=2), container("b", cpu="40", memory="64Gi", gpu=2)),
        node(),
        "the pod (a 40 and b 40) asks 80 CPUs; NUMA node 0 leaves 60 to pods, node 1 64",
        ["container a, resources.limits.cpu: now 40, use 24"],
    ),
    "a sidecar whose whole CPUs take room": lambda: (
        pod(container("a", cpu="60", memory="64Gi", gpu=2), container("b", cpu="8", memory="4Gi")),
        node(),
        "the pod (a 60 and b 8) asks 68 CPUs; NUMA node 0 leaves 60 to pods, node 1 64",
        ["container b, resources.limits.cpu: now 8, use 7999m"],
    ),
    "an init container that nails the app to its node": lambda: (
        pod(container("a", cpu="62", memory="64Gi", gpu=4), init=(container("i", cpu="8", memory="1Gi", gpu=4),)),
        node(scope="container"),
        "a asks 62 CPUs and 4 GPUs; the pod's other containers leave no NUMA node with that",
        ["container a, resources.limits.cpu: now 62, use 60"],
    ),
    "requests that were written out, too": lambda: (
        pod(container(cpu="60", memory="64Gi", gpu=1, requests={"cpu": "60"})),
        node(cpus=56),
        "trainer asks 60 CPUs; NUMA node 0 leaves 52 to pods, node 1 56",
        ["container trainer, resources.limits.cpu: now 60, use 56 (limits and requests)"],
    ),
}


def test_devices_of_many_containers_that_no_numa_node_has_together() -> None:
    line, *_ = refused(pod(*(container(f"c{n}", cpu="2", memory="2Gi", gpu=1) for n in range(8))), node())
    assert line == "  node: the pod (c0 1, c1 1, c2 1 and 5 more) needs 8 GPUs on one NUMA node; each has 4"


def test_pod_level_resources_that_the_kubelet_does_not_manage() -> None:
    of = pod(container(gpu=1))
    of["spec"]["resources"] = {"limits": {"cpu": "8", "memory": "8Gi"}}
    line, *_ = refused(of, node())
    assert "spec.resources gives no container CPUs of its own" in line
    assert "write limits for each container" in line


def test_whole_cpus_that_are_no_whole_cores_are_not_called_fractions() -> None:
    of = pod(container(gpu=1, requests={"cpu": "8", "memory": "8Gi"}), container("side", cpu="1", memory="1Gi"))
    assert "  - would run unaligned: side asks 1 CPU; these nodes give out whole cores of 2 CPUs" in "\n".join(
        refused(of, node(cpuManagerPolicyOptions=FULL_CORES))
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_reason_and_the_nearest_change(case: Callable[[], Case]) -> None:
    of, where, reason, changes = case()
    line, title, *fields = refused(of, where)
    assert line == f"  node: {reason}"
    assert title.startswith("Nearest change")
    assert fields[: len(changes)] == [f"  {change}" for change in changes]


def test_several_faults_stand_below_each_other() -> None:
    lines = refused(pod(container(cpu="112", memory="300Gi", gpu=8)), node())
    assert lines == [
        "  node:",
        "    - trainer needs 8 GPUs on one NUMA node; each has 4",
        "    - trainer asks 300Gi of memory; each NUMA node leaves 249.95Gi to pods",
        "    - trainer asks 112 CPUs; NUMA node 0 leaves 60 to pods, node 1 64",
        "Nearest changes that align it together (on node):",
        "  container trainer, resources.limits[nvidia.com/gpu]: now 8, use 4",
        "  container trainer, resources.limits.memory: now 300Gi, use 249Gi",
        "  container trainer, resources.limits.cpu: now 112, use 64",
    ]


def test_the_headline_tells_what_a_numa_node_is() -> None:
    found = account(pod(container(cpu="16", memory="64Gi", gpu=5)), node())
    first = explain.message(found).splitlines()[0]
    assert "no node class" in first
    assert "a part of a machine" in first


def test_classes_with_the_same_reason_share_a_line_and_a_fix_says_where_it_works() -> None:
    three = node("a"), node("b"), node("c", cpus=56)
    assert refused(pod(container(cpu="62", memory="64Gi", gpu=5)), *three) == [
        "  a and b: trainer needs 5 GPUs on one NUMA node; each has 4",
        "  c:",
        "    - trainer needs 5 GPUs on one NUMA node; each has 4",
        "    - trainer asks 62 CPUs; NUMA node 0 leaves 52 to pods, node 1 56",
        "Nearest change that aligns it (on a and b):",
        "  container trainer, resources.limits[nvidia.com/gpu]: now 5, use 4",
        "Or, for c as well:",
        "  container trainer, resources.limits[nvidia.com/gpu]: now 5, use 4",
        "  container trainer, resources.limits.cpu: now 62, use 56",
    ]


def test_many_different_reasons_are_cut_short() -> None:
    many = [node(f"n{index}", cpus=index, pin_memory=False) for index in range(12, 32, 2)]
    lines = refused(pod(container(cpu="60", memory="64Gi", gpu=1)), *many)
    assert lines[7] == "  3 more node classes: reasons of the same kind"
    assert lines[8].startswith("Nearest change")


def test_a_class_whose_numbers_do_not_matter_offers_no_change() -> None:
    lines = refused(pod(container(cpu="16", memory="64Gi", gpu=1)), node(cpuManagerPolicy="none", pin_memory=False))
    assert lines[0] == "  node: would run unaligned: trainer: its CPUs are not its own: it runs in the node's shared pool"
    assert lines[1:] == ["Lowering what its containers ask for, or adding limits, does not align it on any of these classes."]


def test_a_kubelet_that_does_not_start_says_so() -> None:
    broken = node(systemReserved={"cpu": "4", "memory": "8Gi"})
    (line, *_) = refused(pod(container(cpu="16", memory="64Gi", gpu=1)), broken)
    assert line.startswith("  node: its kubelet does not start: ")


def test_causes_carry_the_field_its_value_and_the_value_that_works() -> None:
    (cause,) = explain.causes(account(pod(container(cpu="16", memory="64Gi", gpu=5)), node()))
    assert cause.field == "spec.containers[0].resources.limits[nvidia.com/gpu]"
    assert cause.reason == "TopologyAffinityError"
    assert cause.message == "trainer: now 5, use 4; then aligned on node"


def test_without_a_fix_the_causes_carry_the_reasons() -> None:
    causes = explain.causes(
        account(pod(container(cpu="16", memory="64Gi", gpu=1)), node(cpuManagerPolicy="none", pin_memory=False))
    )
    assert [(cause.field, cause.reason) for cause in causes] == [("spec", "SharedCPUs")]


def test_warnings_are_short_lines() -> None:
    found = account(
        pod(container("a-container-with-a-rather-long-name", cpu="112", memory="300Gi", gpu=8)), node("class-" * 9 + "x")
    )
    lines = explain.warnings(found)
    assert lines
    assert all(len(line) < 120 and "\n" not in line for line in lines)
    assert any("use 4" in line for line in lines)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict(admitted=True, aligned=True, masks={"a": (0,), "b": (0,)}), "aligned on NUMA node 0"),
        (Verdict(admitted=True, aligned=True, masks={"a": (0, 1, 2)}), "aligned on NUMA nodes 0-2"),
        (Verdict(admitted=True, aligned=True, masks={"a": (0,), "b": (1,)}), "aligned: a on NUMA node 0, b on NUMA node 1"),
        (Verdict(admitted=True, gaps=(Gap("a", "SharedCPUs", ""),)), "admitted, not aligned: SharedCPUs (a)"),
        (Verdict(reason="TopologyAffinityError"), "refused: TopologyAffinityError"),
        (Verdict(start="no"), "refused: KubeletDoesNotStart"),
        (Verdict(admitted=True, certain=False), "unknown: left to chance"),
        (Verdict(unknown="it would take for ever"), "unknown: it would take for ever"),
    ],
)
def test_a_verdict_in_a_few_words(verdict: Verdict, expected: str) -> None:
    assert explain.summary(verdict) == expected.replace("node 0, b", "node 0 and b")


def test_more_than_a_node_has_is_said_where_nothing_is_placed() -> None:
    without_managers = node(cpuManagerPolicy="none", pin_memory=False)
    (line, _) = refused(pod(container(cpu="200", memory="64Gi", gpu=1)), without_managers)
    assert line == "  node: trainer asks 200 CPUs; a node leaves 124 to pods"


amounts = st.fixed_dictionaries(
    {"gpu": st.integers(1, 9)},
    optional={
        "cpu": st.sampled_from(["1", "7", "7500m", "60", "62", "64", "100", "130"]),
        "memory": st.sampled_from(["1Gi", "200Gi", "255Gi", "600Gi"]),
        "nic": st.integers(1, 2),
        "pages": st.sampled_from(["2Gi", "40Gi"]),
    },
)
KUBELETS = st.sampled_from(
    [("single-numa-node", "pod"), ("single-numa-node", "container"), ("restricted", "pod"), ("best-effort", "pod")]
)
Amounts = dict[str, Any]


@settings(max_examples=60, deadline=None)
@given(mine=amounts, other=st.one_of(st.none(), amounts), kubelet=KUBELETS)
def test_whatever_is_proposed_works_where_it_says_so(mine: Amounts, other: Amounts | None, kubelet: tuple[str, str]) -> None:
    of = pod(container("a", **mine), *([container("b", **other)] if other else []))
    where = node(policy=kubelet[0], scope=kubelet[1], nics=(2, 0), pages=("32Gi", "0"))
    for fix in account(of, where).fixes:
        assert fix.classes == ("node",)
        assert admit.judge(where, applied(of, fix.changes)).aligned
        assert len({change.path for change in fix.changes}) == len(fix.changes)


def test_limits_that_are_filled_in_fit_whole_cores() -> None:
    mixed = pod(
        container(requests={"cpu": "2500m", "memory": "64Gi"}, cpu="7", memory="128Gi", gpu=1),
        container("proxy", requests={"cpu": "1", "memory": "1Gi"}),
    )
    assert refused(mixed, node(cpuManagerPolicyOptions=FULL_CORES))[2:] == [
        "  container trainer, resources.limits.cpu: now 7, use 6 (limits and requests)",
        "  container trainer, resources.requests.memory: now 64Gi, use 128Gi",
        "  container proxy, resources.limits.cpu: now missing, use 999m (limits and requests)",
        "  container proxy, resources.limits.memory: now missing, use 1Gi",
    ]


def test_what_the_mutation_fills_in_is_not_asked_of_the_author() -> None:
    of, where = pod(container(gpu=5)), node()

    def created(changed: dict[str, Any]) -> dict[str, Verdict]:
        filled = applied(changed, missing_limits(changed, where))
        return {"node": admit.judge(where, filled)}

    judged = {"node": admit.judge(where, of)}
    found = explain.account(of, judged, {"node": where}, CATALOGUE, created=created)
    assert explain.message(found).splitlines()[1:] == [
        "  node: trainer needs 5 GPUs on one NUMA node; each has 4",
        "Nearest change that aligns it (on node):",
        "  container trainer, resources.limits[nvidia.com/gpu]: now 5, use 4",
    ]
    assert refused(of, where)[1] == "    - trainer needs 5 GPUs on one NUMA node; each has 4"
    assert any("limits.memory: now missing" in line for line in refused(of, where))


def test_a_sidecar_that_another_webhook_adds_after_us_is_named() -> None:
    where = node()
    snapshot = Snapshot(catalogue=CATALOGUE, classes=(where,))
    of = pod(container(gpu=2))
    mutated = jsonpatch.apply_patch(of, decide.mutate(of, Request(), snapshot).patch)
    assert decide.validate(mutated, Request(), snapshot).allowed
    mutated["spec"]["containers"].append(container("istio-proxy", requests={"cpu": "100m", "memory": "128Mi"}, memory="1Gi"))
    decision = decide.validate(mutated, Request(), snapshot)
    assert not decision.allowed
    assert f"istio-proxy has no CPU limit and a memory request below its limit, {NOT_GUARANTEED}" in decision.message
    assert [cause.field for cause in decision.causes] == [
        "spec.containers[1].resources.limits.cpu",
        "spec.containers[1].resources.requests.memory",
    ]

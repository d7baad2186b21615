"""From a pod to its mutation and its admission: DESIGN's flow, scenario by scenario."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance.tables import node_class
from tests.unit.core.setting import (
    GPU,
    JSON,
    NIC,
    RESTRICTED,
    SINGLE,
    amounts,
    bare,
    kubelet,
    m112,
    m128,
    mutated,
    named,
    nps4,
    numa,
    pod,
    snapshot,
    validated,
)
from webhook.core import decide
from webhook.core.decision import Request
from webhook.core.edit import get, put
from webhook.core.patch import INJECTED, VERDICT
from webhook.core.placement import PREFERRED, REQUIRED
from webhook.core.policy import CpuRules, HugepageRules, MemoryRules, Policy
from webhook.core.quantities import GI

BEST_EFFORT = named(m112(kubelet("best-effort")), "lenient")
FULL = {"cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
A = snapshot(named(m112(kubelet(SINGLE)), "a"))
CPU_ONLY = snapshot(named(m112(kubelet(SINGLE, memory=False)), "a"))
BY_CONTAINER = snapshot(named(m112(kubelet(SINGLE, "container")), "a"))


def init(name: str = "fetch", *, sidecar: bool = False, **more: Any) -> JSON:
    return bare(name, gpu=None, **more) | ({"restartPolicy": "Always"} if sidecar else {})


SHAPED: list[tuple[str, JSON, Any, JSON]] = [
    ("one GPU", pod(bare()), A, {"main": ("13", "63987Mi")}),
    ("a whole NUMA node", pod(bare(gpu=4)), A, {"main": ("52", "255950Mi")}),
    (
        "request below, limit above the share",
        pod(bare(requests={"cpu": "3500m"}, limits={"cpu": "20", "memory": "4Gi"})),
        A,
        {"main": ("13", "4Gi")},
    ),
    (
        "an author's equal integers stay",
        pod(bare(limits={"cpu": "7", "memory": "4Gi"}), bare("side", gpu=None)),
        A,
        {"main": ("7", "4Gi"), "side": ("500m", "1Gi")},
    ),
    ("a sidecar on top", pod(bare(), bare("side", gpu=None)), A, {"main": ("13", "63987Mi"), "side": ("500m", "1Gi")}),
    (
        "a sidecar that leaves too little of the node's memory takes it off the share",
        pod(bare(gpu=4), bare("side", gpu=None)),
        A,
        {"main": ("51", "254926Mi"), "side": ("500m", "1Gi")},
    ),
    (
        "two containers with devices",
        pod(bare("a", 2), bare("b", 1)),
        A,
        {"a": ("26", "127975Mi"), "b": ("13", "63987Mi")},
    ),
    (
        "HAMi's memory alone is one GPU",
        pod(bare(gpu=None, limits={"nvidia.com/gpumem": 3000})),
        A,
        {"main": ("13", "63987Mi")},
    ),
    (
        "a whole number of CPUs in a sidecar would take CPUs of its own",
        pod(bare(), bare("side", gpu=None, requests={"cpu": "2", "memory": "1Gi"})),
        A,
        {"main": ("13", "63987Mi"), "side": ("1999m", "1Gi")},
    ),
]


@pytest.mark.parametrize(("made", "known", "expected"), [case[1:] for case in SHAPED], ids=[case[0] for case in SHAPED])
def test_shapes(made: JSON, known: Any, expected: JSON) -> None:
    shaped, decision = mutated(made, known)
    assert decision.outcome == "mutated"
    assert amounts(shaped) == expected
    assert validated(shaped, known).reason == "Aligned"
    assert get(shaped, ("metadata", "annotations", VERDICT)) == "aligned on a"


def test_init_containers_get_what_costs_nothing() -> None:
    shaped, _ = mutated(pod(bare(), init=(init(), init("check", requests={"cpu": "100m", "memory": "1Gi"}))), A)
    assert amounts(shaped, init=True) == {"fetch": ("12999m", "63987Mi"), "check": ("12999m", "63987Mi")}
    assert validated(shaped, A).reason == "Aligned"


def test_an_author_s_init_container_stays() -> None:
    fixed = {"cpu": "2", "memory": "1Gi"}
    shaped, _ = mutated(pod(bare(), init=(init(limits=fixed),)), A)
    assert amounts(shaped, init=True) == {"fetch": ("2", "1Gi")}


def test_init_containers_with_devices_stay_in_the_shared_pool() -> None:
    shaped, _ = mutated(pod(bare(), init=(bare("fetch", 1),)), A)
    assert amounts(shaped, init=True) == {"fetch": ("12999m", "63987Mi")}
    assert validated(shaped, A).reason == "Aligned"


def test_sidecars_are_treated_as_what_they_carry() -> None:
    sidecar = bare("proxy", 1) | {"restartPolicy": "Always"}
    shaped, _ = mutated(pod(bare(), init=(sidecar, init("log", sidecar=True))), A)
    assert amounts(shaped, init=True) == {"proxy": ("13", "63987Mi"), "log": ("500m", "1Gi")}


def test_init_memory_that_does_not_fit_beside_a_group_falls_back() -> None:
    known = snapshot(named(m112(kubelet(RESTRICTED, "container")), "a"))
    shaped, _ = mutated(pod(bare("a", 3), bare("b", 3), init=(init(),)), known)
    total, largest = 2 * 191962, 191962
    assert amounts(shaped, init=True)["fetch"][1] == f"{largest}Mi"
    assert total > largest


def test_whole_cores_where_a_kubelet_gives_only_those() -> None:
    known = snapshot(named(m112(kubelet(SINGLE, **FULL)), "full"))
    assert amounts(mutated(pod(bare()), known)[0]) == {"main": ("12", "63987Mi")}
    assert amounts(mutated(pod(bare(limits={"cpu": "7", "memory": "4Gi"})), known)[0]) == {"main": ("8", "4Gi")}
    # where another class takes an odd number, the full one must not be made worse
    both = snapshot(
        named(m112(kubelet(SINGLE, **FULL)), "full"), named(m112(kubelet(SINGLE)), "free"), policy=Policy(steer=False)
    )
    odd = pod(bare(limits={"cpu": "7"}))
    assert amounts(mutated(odd, both)[0]) == {"main": ("8", "63987Mi")}


def test_whole_cpus_of_any_container_become_whole_cores_where_a_kubelet_gives_only_those() -> None:
    known = snapshot(named(m112(kubelet(SINGLE, **FULL)), "a"))
    own = {"cpu": "1", "memory": "1Gi"}
    made, _ = mutated(pod(bare(), bare("side", None, limits=own, requests=own), init=(init(limits=own, requests=own),)), known)
    assert amounts(made)["side"] == ("2", "1Gi")
    assert amounts(made, init=True) == {"fetch": ("2", "1Gi")}
    assert validated(made, known).reason == "Aligned"


def test_a_volume_in_memory_that_many_containers_mount_is_no_reason_to_refuse() -> None:
    mounts = {"volumeMounts": [{"name": "shm", "mountPath": "/shm"}]}
    made = pod(bare(**mounts), bare("b", None, **mounts), bare("c", None, **mounts))
    made["spec"]["volumes"] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    shaped, _ = mutated(made, A)
    assert amounts(shaped) == {"main": ("13", "63987Mi"), "b": ("500m", "1Gi"), "c": ("500m", "1Gi")}


def test_devices_of_two_nodes_want_cpus_of_two_nodes() -> None:
    known = snapshot(named(m128(kubelet(RESTRICTED, "container")), "a", daemonSets={"cpu": "12", "memory": "32Gi"}))
    shaped, _ = mutated(pod(bare(gpu=5)), known)
    # 5 x 12 CPUs would fit one node of 64
    assert amounts(shaped) == {"main": ("65", "278977Mi")}
    assert validated(shaped, known).reason == "Aligned"
    declared = pod(bare(gpu=5, limits={"cpu": "60", "memory": "64Gi"}))
    assert mutated(declared, known)[1].outcome == "unchanged"
    assert validated(declared, known).reason == "TopologyAffinityError"


def test_one_numa_node_is_nothing_to_align() -> None:
    one = named(node_class([numa(0, 16, "64Gi", devices={GPU: 2})], kubelet(SINGLE, memory=False), sockets=1), "one")
    shaped, decision = mutated(pod(bare()), snapshot(one))
    assert (decision.outcome, decision.reason, shaped) == ("unchanged", "AlignedAsWritten", pod(bare()))
    # beside a machine with two it neither spoils the shape nor counts as its proof
    both = snapshot(one, named(m112(kubelet(SINGLE)), "two"))
    shaped, decision = mutated(pod(bare()), both)
    assert amounts(shaped) == {"main": ("6", "26574Mi")}
    assert validated(shaped, both).reason == "Aligned"


def test_a_pod_that_is_aligned_as_written_is_left_as_it_is() -> None:
    made = pod(bare(limits={"cpu": "8", "memory": "4Gi"}))
    shaped, decision = mutated(made, A)
    assert (decision.outcome, decision.reason, decision.patch, shaped) == ("unchanged", "AlignedAsWritten", (), made)


def test_nobody_s_limit_starves_the_accelerators() -> None:
    fast, slow = (bare("loader", None, requests={"cpu": "1"}, limits={"cpu": cpu, "memory": "8Gi"}) for cpu in ("50", "100"))
    assert amounts(mutated(pod(bare(gpu=4), fast), CPU_ONLY)[0]) == {"main": ("52", "255950Mi"), "loader": ("49999m", "8Gi")}
    made = pod(bare(gpu=4), slow)
    assert mutated(made, CPU_ONLY)[1].outcome == "unchanged"
    assert "spec.containers[1].resources.limits.cpu" in [cause.field for cause in validated(made, CPU_ONLY).causes]


def test_what_no_shape_aligns_is_left_as_written_and_refused() -> None:
    made = pod(bare(gpu=5))
    shaped, decision = mutated(made, A)
    assert (decision.outcome, decision.reason, shaped) == ("unchanged", "NothingAligns", made)
    refusal = validated(shaped, A)
    assert not refusal.allowed
    assert refusal.reason == "TopologyAffinityError"
    assert any(f"limits[{GPU}]" in cause.field for cause in refusal.causes)


def test_cpus_that_need_fewer_numa_nodes_than_the_devices_are_to_be_more() -> None:
    known = snapshot(named(m128(kubelet(RESTRICTED)), "a"))
    declared = {"cpu": "60", "memory": "64Gi"}
    made = pod(bare(gpu=8, requests=declared, limits=declared))
    refusal = validated(made, known)
    assert "main's 8 GPUs need 2 NUMA nodes, its 60 CPUs and 64Gi of memory only 1" in refusal.message
    first, second = refusal.causes[:2]
    assert ("now 60, use 65" in first.message, "now 64Gi, use 250Gi" in second.message) == (True, True)
    enough = {"cpu": "65", "memory": "250Gi"}
    assert validated(pod(bare(gpu=8, requests=enough, limits=enough)), known).reason == "Aligned"


def test_a_mutation_that_was_left_out_is_named() -> None:
    refusal = validated(pod(bare()), A)
    assert (refusal.allowed, refusal.reason) == (False, "NotMutated")
    assert "not reachable" in refusal.message
    assert validated(mutated(pod(bare()), A)[0], A).allowed


def test_strict_wants_a_class_that_enforces_and_takes_another_if_need_be() -> None:
    """Half of the GPUs fit a NUMA node of the class that only tries; what it happens to align is not refused."""
    few = named(m112(kubelet(SINGLE), {GPU: 1}, {GPU: 1}), "few")
    both = snapshot(BEST_EFFORT, few)
    shaped, _ = mutated(pod(bare(gpu=2)), both)
    assert amounts(shaped) == {"main": ("26", "127975Mi")}
    assert validated(shaped, both).reason == "Aligned"
    fixed = pod(bare(gpu=2, limits={"cpu": "8", "memory": "4Gi"}))
    written, _ = mutated(fixed, both)
    assert written["spec"]["containers"] == fixed["spec"]["containers"]
    assert required(written) == [{"matchExpressions": [{"key": "class", "operator": "NotIn", "values": ["few"]}]}]


# --- never worse, steering ---------------------------------------------------------------------------------------------

SMALL = named(node_class([numa(0, 8, "64Gi", devices={GPU: 8})], kubelet("none", memory=False), sockets=1), "small")
BIG = named(m112(kubelet(SINGLE)), "big")


def required(made: JSON) -> Any:
    return get(made, ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"))


def test_strict_keeps_a_pod_off_the_classes_that_it_does_not_fit() -> None:
    known = snapshot(BIG, named(m112(kubelet(SINGLE), {GPU: 1}, {GPU: 1}), "few"))
    shaped, decision = mutated(pod(bare(gpu=2)), known)
    assert required(shaped) == [{"matchExpressions": [{"key": "class", "operator": "NotIn", "values": ["few"]}]}]
    assert get(shaped, ("metadata", "annotations", VERDICT)) == "aligned on big; not on few"
    assert "numalign: node affinity added, to keep the pod on the node classes that can align it" in decision.warnings
    assert list(validated(shaped, known).verdicts) == ["big"]


def test_best_effort_only_prefers_those_that_it_fits() -> None:
    known = snapshot(BIG, named(m112(kubelet(SINGLE), {GPU: 1}, {GPU: 1}), "few"))
    shaped, _ = mutated(pod(bare(gpu=2)), known, "best-effort")
    assert required(shaped) is None
    (wish,) = get(shaped, ("spec", "affinity", "nodeAffinity", PREFERRED))
    assert wish["preference"]["matchExpressions"] == [{"key": "class", "operator": "In", "values": ["big"]}]


def test_a_shape_that_would_break_a_class_needs_steering() -> None:
    made = pod(bare(requests={"memory": "40Gi"}), bare("side", gpu=None))
    generous = MemoryRules(default=20 * GI)
    assert mutated(made, snapshot(BIG, SMALL, policy=Policy(steer=False)))[1].outcome == "mutated", "41Gi fit the small class"
    left = mutated(made, snapshot(BIG, SMALL, policy=Policy(steer=False, memory=generous)))[1]
    assert (left.outcome, left.reason) == ("unchanged", "AlignedAsWritten"), "on the one NUMA node of the small class"
    for mode, outcome in (("strict", "mutated"), ("best-effort", "unchanged")):
        shaped, decision = mutated(made, snapshot(BIG, SMALL, policy=Policy(memory=generous)), mode)
        assert decision.outcome == outcome
        assert (required(shaped) is not None) == (mode == "strict")


def test_alignment_by_luck_is_no_reason_not_to_admit() -> None:
    """Under policy none the GPU may sit anywhere, so whether the shaped pod is aligned there is luck; that it runs is not."""
    known = snapshot(BIG, named(m112(kubelet("none", memory=False)), "lucky"))
    shaped, decision = mutated(pod(bare()), known)
    assert amounts(shaped) == {"main": ("13", "63987Mi")}
    assert {name: str(verdict.outcome) for name, verdict in decision.verdicts.items()} == {"big": "aligned", "lucky": "unknown"}


def test_two_reasons_to_refuse_are_no_doubt() -> None:
    """Which of two short resources the kubelet names is luck; that it refuses is not."""
    known = snapshot(named(m112(kubelet("none", memory=False), {GPU: 1, NIC: 1}, {}), "short"))
    decision = validated(pod(bare(gpu=2, limits={NIC: 2, "cpu": "100m", "memory": "1Gi"})), known)
    assert {str(verdict.outcome) for verdict in decision.verdicts.values()} == {"refused"}
    assert not decision.allowed


def test_no_steering_by_policy_or_for_pods_that_name_nodes() -> None:
    few = named(m112(kubelet(SINGLE), {GPU: 1}, {GPU: 1}), "few")
    assert required(mutated(pod(bare(gpu=2)), snapshot(BIG, few, policy=Policy(steer=False)))[0]) is None
    by_name = put(pod(bare(gpu=2)), ("spec", "nodeName"), "n")
    assert required(mutated(by_name, snapshot(BIG, few))[0]) is None


# --- what strict refuses -------------------------------------------------------------------------------------------------


def test_where_nothing_is_enforced_strict_takes_what_a_kubelet_admits() -> None:
    known = snapshot(BEST_EFFORT)
    wide = validated(pod(bare(gpu=5, limits={"cpu": "8", "memory": "4Gi"})), known)
    assert (wide.allowed, wide.outcome) == (True, "warned")
    assert wide.warnings
    assert not validated(pod(bare(gpu=9)), known).allowed
    strict = snapshot(BEST_EFFORT, policy=Policy(require_enforcement=True))
    refused = validated(pod(bare(limits={"cpu": "8", "memory": "4Gi"})), strict)
    assert (refused.allowed, refused.reason) == (False, "NotEnforced")


def test_aligned_on_one_class_is_enough() -> None:
    known = snapshot(BIG, named(m112(kubelet(SINGLE), {GPU: 1}, {GPU: 1}), "few"))
    assert validated(mutated(pod(bare(gpu=2)), known)[0], known).allowed


def test_other_nodes_may_exist() -> None:
    known = snapshot(BIG, policy=Policy(complete=False))
    assert validated(pod(bare(gpu=5)), known).allowed
    chosen = put(pod(bare(gpu=5)), ("spec", "nodeSelector"), {"class": "big"})
    assert not validated(chosen, known).allowed


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (pod(bare(gpu=None, limits={"amd.com/gpu": 1})), "NoClassOffers"),
        (put(pod(bare()), ("spec", "nodeSelector"), {"class": "other"}), "NoClassMatches"),
        (pod(bare(limits={NIC: 1})), "NoClassMatches"),
    ],
)
def test_what_no_class_describes_is_admitted_as_written(made: JSON, reason: str) -> None:
    nicless = named(m112(kubelet(SINGLE)), "a")
    nics = named(m112(kubelet(SINGLE), {NIC: 1}, {}), "nics")
    known = snapshot(nicless, nics)
    for decision in (mutated(made, known)[1], validated(made, known)):
        assert (decision.allowed, decision.outcome, decision.reason, decision.patch) == (True, "undescribed", reason, ())
        assert decision.warnings


def test_a_device_that_no_class_names_is_unreported_not_absent() -> None:
    assert mutated(pod(bare(limits={NIC: 1, "example.com/fpga": 1})), A)[1].outcome == "mutated"


def test_no_classes_at_all() -> None:
    assert mutated(pod(bare()), snapshot())[1].outcome == "undescribed"


# --- what is not shaped --------------------------------------------------------------------------------------------------


def test_plugins_that_lose_their_devices_at_a_cgroup_update() -> None:
    known = snapshot(named(m112(kubelet(SINGLE)), "a", deviceSpecs="notPassed"))
    _, decision = mutated(pod(bare()), known)
    assert decision.outcome == "unchanged"
    assert "would cost it its GPUs (deviceSpecs: notPassed)" in decision.warnings[0]
    harmless = snapshot(
        named(m112(kubelet(SINGLE)), "a"), named(m112(kubelet("none", cpu="none", memory=False)), "b", deviceSpecs="notPassed")
    )
    assert mutated(pod(bare()), harmless)[1].outcome == "mutated"


SHARED = named(m112(kubelet(SINGLE)), "shared", sharing={GPU: 4})


def test_shared_tokens() -> None:
    _, decision = mutated(pod(bare()), snapshot(SHARED))
    assert decision.outcome == "unchanged"
    assert "set shapeShared" in decision.warnings[0]
    assert amounts(mutated(pod(bare()), snapshot(SHARED, policy=Policy(shape_shared=True)))[0]) == {"main": ("3", "15996Mi")}
    assert amounts(mutated(pod(bare(requests={"cpu": "2500m"})), snapshot(SHARED))[0]) == {"main": ("3", "15996Mi")}
    # a class that gives whole GPUs decides for a pod that says nothing
    assert amounts(mutated(pod(bare()), snapshot(SHARED, BIG))[0]) == {"main": ("13", "63987Mi")}


def test_memory_is_the_author_s_where_the_policy_says_so() -> None:
    known = snapshot(BIG, policy=Policy(memory=MemoryRules(inject="never")))
    _, decision = mutated(pod(bare(), bare("side", gpu=None)), known)
    assert decision.outcome == "unchanged"
    assert "container main: set resources.limits.memory" in decision.warnings[0]
    assert "container side: set resources.limits.memory" in decision.warnings[1]
    assert amounts(mutated(pod(bare(limits={"memory": "4Gi"})), known)[0]) == {"main": ("13", "4Gi")}


def test_the_policy_fixes_the_share() -> None:
    known = snapshot(BIG, policy=Policy(cpu=CpuRules(per_accelerator=6500, default=250)))
    assert amounts(mutated(pod(bare(gpu=2), bare("side", gpu=None)), known)[0])["main"][0] == "13"


# --- hugepages, HAMi, pod-level resources ----------------------------------------------------------------------------------

PAGES = Policy(hugepages=HugepageRules(per_accelerator=2 * GI))


def hugepages(made: JSON) -> Any:
    return [get(made, ("spec", "containers", 0, "resources", side, "hugepages-1Gi")) for side in ("requests", "limits")]


def test_hugepages_where_every_candidate_has_enough() -> None:
    with_pages = named(m128(kubelet(SINGLE), hugepages={"1Gi": "8Gi"}), "pages")
    assert hugepages(mutated(pod(bare(gpu=2)), snapshot(with_pages, policy=PAGES))[0]) == ["4Gi", "4Gi"]
    assert hugepages(mutated(pod(bare(gpu=2)), snapshot(with_pages, BIG, policy=PAGES))[0]) == [None, None]
    assert hugepages(mutated(pod(bare(gpu=2)), snapshot(with_pages))[0]) == [None, None]
    asked = pod(bare(limits={"hugepages-2Mi": "2Mi", "cpu": "1"}))
    assert hugepages(mutated(asked, snapshot(with_pages, policy=PAGES))[0]) == [None, None]


HAMI = {"mode": "hami-core", "numaTopology": True, "deviceSplitCount": 10, "refit": True}
DECLARED = {"cpu": "4", "memory": "8Gi"}


def hami(**changes: Any) -> JSON:
    return named(m112(kubelet(SINGLE)), "hami", hami=HAMI | changes)


def alignment(made: JSON, known: Any, mode: str = "strict") -> Any:
    return get(mutated(made, known, mode)[0], ("metadata", "annotations", "hami.io/numa-alignment"))


@pytest.mark.parametrize(
    ("made", "document", "mode", "expected"),
    [
        (pod(bare(limits=DECLARED)), hami(), "strict", "strict"),
        (pod(bare(limits=DECLARED)), hami(), "best-effort", "best-effort"),
        (pod(bare(limits=DECLARED)), hami(refit=False), "strict", "best-effort"),
        (pod(bare(limits=DECLARED)), hami(numaTopology=False), "strict", None),
        (pod(bare(limits=DECLARED)), hami(mode="mig"), "strict", None),
        (pod(bare(limits=DECLARED)), BIG, "strict", None),
        # refit counts wrongly where init containers have GPUs
        (pod(bare(limits=DECLARED), init=(bare("fetch", 1),)), hami(), "strict", "best-effort"),
        # not HAMi's to place
        (put(pod(bare(limits=DECLARED)), ("spec", "schedulerName"), "volcano"), hami(), "strict", None),
        (put(pod(bare(limits=DECLARED)), ("spec", "schedulerName"), "hami-scheduler"), hami(), "strict", "strict"),
        (put(pod(bare(limits=DECLARED)), ("metadata", "labels"), {"hami.io/webhook": "ignore"}), hami(), "strict", None),
    ],
)
def test_hami_s_annotation(made: JSON, document: JSON, mode: str, expected: str | None) -> None:
    assert alignment(made, snapshot(document), mode) == expected


def test_an_author_s_value_stays_and_a_wrong_one_is_named() -> None:
    key = ("metadata", "annotations", "hami.io/numa-alignment")
    assert alignment(put(pod(bare(limits=DECLARED)), key, "best-effort"), snapshot(hami())) == "best-effort"
    wrong = put(pod(bare(limits=DECLARED)), key, "yes")
    assert alignment(wrong, snapshot(hami())) == "yes"
    assert "HAMi refuses anything else" in mutated(wrong, snapshot(hami()))[1].warnings[0]


def test_hami_gives_a_container_distinct_gpus() -> None:
    """The kubelet sees forty replicas on a NUMA node and would align five; there are four GPUs."""
    known = snapshot(hami())
    refusal = validated(pod(bare(gpu=5, limits=DECLARED)), known)
    assert (refusal.allowed, refusal.reason) == (False, "HamiDevicesApart")
    assert validated(pod(bare(gpu=9, limits=DECLARED)), known).reason == "NodeInsufficientDevice"
    assert validated(pod(bare(gpu=4, limits=DECLARED)), known).allowed
    assert validated(pod(bare("a", 4, limits=DECLARED), bare("b", 4, limits=DECLARED)), known).allowed


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({}, "cpu unset -> 13, memory unset"),
        ({"requests": {"cpu": "7500m"}}, "cpu 7500m -> 13, memory unset"),
        ({"requests": {"cpu": "20", "memory": "200Gi"}}, "cpu limit unset -> 20, memory limit unset -> 200Gi"),
        ({"limits": {"cpu": "8500m"}}, "cpu unset to 8500m -> 9, memory unset"),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "8", "memory": "2Gi"}}, "cpu request 2 -> 8, memory request unset -> 2Gi"),
    ],
)
def test_a_warning_names_what_was_there_and_what_is_new(written: JSON, says: str) -> None:
    _, decision = mutated(pod(bare(**written)), A)
    assert decision.warnings[0].startswith(f"numalign: container main: {says}")


MANAGED = named(m112(kubelet(SINGLE, featureGates={"PodLevelResourceManagers": True})), "managed")


def pod_level(**resources: JSON) -> JSON:
    return put(pod(bare(), bare("side", gpu=None)), ("spec", "resources"), resources)


def test_pod_level_resources_are_shaped_at_pod_level_only() -> None:
    made = pod_level(limits={"memory": "16Gi"})
    shaped, decision = mutated(made, snapshot(MANAGED))
    assert decision.outcome == "mutated"
    whole = {"cpu": "13", "memory": "16Gi"}
    assert shaped["spec"]["resources"] == {"limits": whole, "requests": whole}
    assert shaped["spec"]["containers"] == made["spec"]["containers"]
    assert json.loads(get(shaped, ("metadata", "annotations", INJECTED))).keys() == {
        "/spec/resources/limits/cpu",
        "/spec/resources/requests/cpu",
        "/spec/resources/requests/memory",
    }
    assert decision.warnings[0] == "numalign: pod: cpu unset -> 13, memory request unset -> 16Gi (requests = limits)"


def test_pod_level_resources_without_their_managers() -> None:
    made = pod_level(limits={"cpu": "8", "memory": "16Gi"})
    _, decision = mutated(made, snapshot(BIG))
    assert decision.outcome == "unchanged"
    assert "PodLevelResourceManagers" in decision.warnings[0]


# --- resize, advice, memory of decisions ---------------------------------------------------------------------------------


def test_a_resize_is_refused_only_if_it_loses_an_alignment() -> None:
    fits, wide = (pod(bare(limits={"cpu": cpus, "memory": "4Gi"})) for cpus in ("8", "60"))
    unaligned = pod(bare(requests={"cpu": "1"}))
    assert not validated(wide, A, old=fits).allowed
    assert validated(fits, A, old=wide).allowed
    assert validated(wide, A, old=unaligned).allowed
    assert validated(wide, A, "audit", old=fits).outcome == "would-refuse"
    assert validated(wide, A, "best-effort", old=fits).outcome == "warned"
    assert decide.validate(fits, Request(label="strict", old={"spec": 3}), A).outcome == "malformed"


def workload(template: JSON, kind: str = "Deployment") -> JSON:
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": {"template": template}}


def test_advice_on_workloads() -> None:
    bad = decide.advise(workload(pod(bare(gpu=5))), Request(), A)
    assert (bad.allowed, bad.outcome) == (True, "warned")
    assert bad.warnings[0] == "numalign: strict mode will refuse the pods of spec.template"
    good = decide.advise(workload(pod(bare())), Request(), A)
    assert (good.outcome, good.warnings) == ("allowed", ())
    assert decide.advise(workload(pod(bare(gpu=None))), Request(), A).outcome == "not-ours"
    assert decide.advise({"kind": "ConfigMap"}, Request(), A).outcome == "not-ours"
    cron = {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": pod(bare(gpu=5))}}}}
    assert "spec.jobTemplate.spec.template" in decide.advise(cron, Request(), A).warnings[0]


def test_advice_respects_the_mode_of_a_template() -> None:
    known = snapshot(BIG, policy=Policy(annotation_may_relax=True))
    relaxed = put(pod(bare(gpu=5)), ("metadata", "annotations"), {"numalign.io/mode": "off"})
    assert decide.advise(workload(relaxed), Request(), known).warnings == ()


def test_a_decision_is_remembered_by_what_it_reads_and_only_by_that() -> None:
    known = snapshot(BIG)
    first = mutated(pod(bare()), known)[1]
    renamed = put(put(pod(bare()), ("metadata", "name"), "other"), ("spec", "containers", 0, "image"), "other")
    assert mutated(renamed, known)[1] is first
    assert mutated(put(pod(bare()), ("spec", "nodeName"), "n"), known)[1] is not first
    assert mutated(pod(bare()), known, "best-effort")[1] is not first
    assert validated(pod(bare()), known) is not first


def test_what_is_injected_is_counted() -> None:
    _, decision = mutated(pod(bare(requests={"cpu": "2500m", "memory": "1Gi"})), A)
    assert decision.injected_cpu == 10.5
    assert decision.injected_memory == 62963 * 1024**2


def test_a_cluster_with_many_classes_is_no_reason_to_give_up() -> None:
    """Where no shape suits all classes, the one that suits most wins, and the pod is kept off the rest."""
    known = snapshot(
        named(m112(kubelet(SINGLE)), "a"), named(m128(kubelet(RESTRICTED)), "b"), named(nps4(kubelet(RESTRICTED)), "c")
    )
    shaped, _ = mutated(pod(bare(gpu=4), bare("side", gpu=None)), known)
    assert {name for name, verdict in validated(shaped, known).verdicts.items() if verdict.outcome == "aligned"} == {"a", "b"}

"""CPU and memory of pods whose accelerators DRA gives out: judged as the kubelet does, sized only where the devices are known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.dra.claiming import GPU, JSON, claim, device, request, spec
from tests.unit.core.dra.machines import (
    SPREAD,
    claiming,
    gpu_request,
    gpus,
    known,
    machine,
    mutated,
    nic_request,
    nics,
    template,
    user,
    validated,
)
from tests.unit.core.setting import amounts, bare, kubelet
from webhook.config.documents import Document
from webhook.core.dra.served import CLAIMED, MIXED
from webhook.core.policy import ClaimRules, MemoryRules
from webhook.core.verdict import Outcome

TWO = {"t": template(gpu_request(2))}
SINGLE_NODE = {"sockets": 1, "numaNodes": [{"id": 0, "cpus": 56, "memory": "256Gi"}]}
COUNTED = spec(GPU, *(device(f"gpu-{i}", {"type": "gpu"}, numa=0) | {"consumesCounters": [{}]} for i in range(2)))
PINS = "whole CPUs with requests = limits pin them"
LENIENT = {"kubeReserved": {"cpu": "2", "memory": "4Gi"}}


def sized(known_: Any, *containers: JSON, mode: str = "strict", **more: Any) -> tuple[str | None, tuple[str, ...]]:
    """The CPUs of the first container, and what the author hears."""
    final, decision = mutated(claiming(*containers, **more), known_, mode)
    cpu = (final["spec"]["containers"][0].get("resources") or {}).get("limits", {}).get("cpu")
    return cpu, tuple(line.removeprefix("numalign: ") for line in decision.warnings)


class TestSizes:
    def test_a_container_gets_the_share_of_its_devices_where_those_are(self) -> None:
        final, decision = mutated(claiming(user(), bare("proxy", None)), known(machine(gpus(*SPREAD)), objects=TWO))
        assert decision.outcome == "mutated"
        assert amounts(final) == {"main": ("26", "127975Mi"), "proxy": ("500m", "1Gi")}
        assert final["metadata"]["annotations"]["numalign.io/verdict"] == "beside claimed devices on dgx"

    def test_as_many_numa_nodes_as_the_devices_need_are_enough(self) -> None:
        all_of_them = {"t": template(gpu_request(8))}
        wide = kubelet("restricted")
        assert sized(known(machine(gpus(*SPREAD), config=wide), objects=all_of_them), mode="best-effort")[0] == "104"

    @pytest.mark.parametrize(
        ("slices", "cpu"),
        [
            ([gpus(0, 0, 1, 1), nics(0, 1)], "52"),
            ([gpus(0, 0, 1, 1), nics(1, 1)], None),
            ([gpus(0, 0, 1, 1), nics(None)], None),
        ],
    )
    def test_all_the_devices_that_a_container_uses_count(self, slices: list[JSON], cpu: str | None) -> None:
        both = {"t": template(gpu_request(2), nic_request())}
        assert sized(known(machine(*slices), objects=both), mode="best-effort")[0] == cpu

    def test_our_own_constraint_counts(self) -> None:
        """Left to itself, the allocator takes GPUs of node 0; with the NIC they are on node 1, away from the first CPUs."""
        both = {"t": template(gpu_request(2), nic_request())}
        apart = known(machine(gpus(0, 0, 1, 1), nics(1)), objects=both)
        alone = known(machine(gpus(0, 0, 1, 1)), objects=TWO)
        assert sized(alone)[0] == "52"
        assert sized(apart) == (None, ("not sized: on dgx its CPUs would be away from its devices; " + PINS,))

    def test_a_container_that_names_a_request_gets_no_others(self) -> None:
        both = {"t": template(gpu_request(2), nic_request())}
        lone = known(machine(gpus(0, 0, 1, 1), nics(0)), objects=both)
        final, _ = mutated(claiming(user(wanted="gpu"), user("net", wanted="nic")), lone)
        assert amounts(final) == {"main": ("51", "254926Mi"), "net": ("500m", "1Gi")}

    def test_what_the_author_wrote_counts_as_in_other_pods(self) -> None:
        snapshot = known(machine(gpus(*SPREAD)), objects=TWO)
        assert sized(snapshot, user(requests={"cpu": "3500m"}, limits={"cpu": "8"}))[0] == "8"
        assert sized(snapshot, user(requests={"cpu": "30"}))[0] == "30"

    def test_hugepages_are_not_injected(self) -> None:
        final, _ = mutated(claiming(), known(machine(gpus(*SPREAD)), objects=TWO))
        assert set(final["spec"]["containers"][0]["resources"]["limits"]) == {"cpu", "memory"}

    def test_on_every_class_that_pins(self) -> None:
        good, bad = machine(gpus(*SPREAD), name="a"), machine(gpus(*reversed(SPREAD)), name="b")
        assert sized(known(good, objects=TWO))[0] == "26"
        cpu, (note,) = sized(known(good, bad, objects=TWO))
        assert cpu is None
        assert note.startswith("not sized: on b its CPUs would be away")

    @pytest.mark.parametrize("other", [kubelet("none", cpu="none", memory=False), LENIENT])
    def test_a_class_that_pins_nothing_does_not_matter(self, other: JSON) -> None:
        good, floating = machine(gpus(*SPREAD), name="a"), machine(gpus(*reversed(SPREAD)), name="b", config=other)
        assert sized(known(good, floating, objects=TWO))[0] == "26"
        assert sized(known(floating, objects=TWO)) == (None, ())

    def test_memory_that_is_pinned_away_is_as_bad(self) -> None:
        memory_alone = kubelet("restricted", cpu="none")
        good, bad = machine(gpus(*SPREAD), name="a"), machine(gpus(*reversed(SPREAD)), name="b", config=memory_alone)
        assert sized(known(good, bad, objects=TWO))[0] is None


class TestNotKnown:
    @pytest.mark.parametrize(
        ("classes", "why"),
        [
            ([machine(described=False)], "the DRA devices of dgx are not described"),
            ([machine(gpus(*SPREAD), name="a"), machine(name="b", described=False)], "the DRA devices of b are not described"),
            ([machine(gpus(None, None))], "its devices do not say on which NUMA node they are"),
            ([machine(gpus(-1, 0))], "its devices do not say on which NUMA node they are"),
            ([machine(gpus(7, 7))], "its devices do not say on which NUMA node they are"),
            ([machine(gpus(0, 0), gpus(1, 1))], "the order of its devices is not certain"),
            ([machine(COUNTED)], "which devices it gets is not certain"),
        ],
    )
    def test_is_said_once_and_nothing_is_changed(self, classes: list[JSON], why: str) -> None:
        cpu, notes = sized(known(*classes, objects=TWO), mode="best-effort")
        assert cpu is None
        assert notes == (f"not sized: {why}; {PINS}",)

    def test_a_long_reason_is_not_cut_for_the_advice(self) -> None:
        name = "h100-80gb-hbm3-with-rails-and-a-name-as-long-as-that"
        _, (note,) = sized(known(machine(name=name, described=False), machine(gpus(*SPREAD)), objects=TWO))
        assert note == f"not sized: the DRA devices of {name} are not described"

    def test_pools_come_in_any_order_before_1_36(self) -> None:
        def two_pools(minor: str) -> JSON:
            pool = {"pool": {"name": "second", "generation": 1, "resourceSliceCount": 1}}
            return machine(gpus(0, 0), gpus(0, 0, **pool), kubernetes=minor)

        assert sized(known(two_pools("1.36"), objects=TWO))[0] == "26"
        assert sized(known(two_pools("1.35"), objects=TWO))[1] == (f"not sized: the order of its devices is not certain; {PINS}",)

    def test_a_claim_that_cannot_be_read_leaves_the_others_uncertain(self) -> None:
        pod = claiming(user(), claims={"gpus": "t", "more": "gone"})
        final, decision = mutated(pod, known(machine(gpus(*SPREAD)), objects=TWO))
        assert final == pod
        assert decision.warnings == (f"numalign: not sized: not all that its claims ask for is known; {PINS}",)

    def test_a_claim_that_several_containers_share(self) -> None:
        cpu, (note,) = sized(known(machine(gpus(*SPREAD)), objects=TWO), user(), user("b"))
        assert (cpu, note) == (None, f"not sized: several of its containers share a claim; {PINS}")

    def test_devices_that_are_given_out_in_parts(self) -> None:
        parts = spec(GPU, device("gpu-0", {"type": "gpu"}, numa=0) | {"allowMultipleAllocations": True})
        one = {"t": template(gpu_request(1))}
        cpu, (note,) = sized(known(machine(parts), objects=one))
        assert cpu is None
        assert note == "not sized: its devices are given out in parts of unknown size; " + PINS

    @pytest.mark.parametrize(("name", "cpu"), [("kai-scheduler", None), ("default-scheduler", "26"), ("", "26")])
    def test_another_schedulers_order(self, name: str, cpu: str | None) -> None:
        assert sized(known(machine(gpus(*SPREAD)), objects=TWO), schedulerName=name)[0] == cpu

    def test_a_claim_that_is_allocated_already(self) -> None:
        made = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c"},
            "status": {"allocation": {"a": 1}},
        }
        made["spec"] = TWO["t"]["spec"]["spec"]
        entries = [{"name": "gpus", "resourceClaimName": "c"}]
        for status, cpu in (({"allocation": {"devices": {}}}, None), ({}, "26")):
            snapshot = known(machine(gpus(*SPREAD)), objects={"c": made | {"status": status}})
            assert sized(snapshot, resourceClaims=entries)[0] == cpu


class TestLeftAsWritten:
    def test_the_policy_may_say_so(self) -> None:
        rules = ClaimRules(shape_pods=False)
        assert sized(known(machine(gpus(*SPREAD)), objects=TWO, claims=rules)) == (None, ())

    def test_cpus_of_ones_own_are_the_authors_choice(self) -> None:
        snapshot = known(machine(gpus(*reversed(SPREAD))), objects=TWO)
        pod = claiming(user(limits={"cpu": "8", "memory": "8Gi"}))
        final, decision = mutated(pod, snapshot)
        assert (final, decision.warnings) == (pod, ())
        answer = validated(pod, snapshot)
        assert (answer.allowed, answer.reason, answer.warnings) == (True, "Claims", (f"numalign: {MIXED}",))

    def test_memory_that_is_the_authors_to_write(self) -> None:
        snapshot = known(machine(gpus(*SPREAD)), objects=TWO, memory=MemoryRules(inject="never"))
        assert sized(snapshot)[0] is None
        assert sized(snapshot, user(limits={"memory": "8Gi"}))[0] == "26"

    def test_a_claim_that_only_an_init_container_uses(self) -> None:
        pod = claiming(bare("main", None), initContainers=[user("fetch")])
        final, decision = mutated(pod, known(machine(gpus(*SPREAD)), objects=TWO))
        assert (final, decision.warnings) == (pod, ())

    @pytest.mark.parametrize("mode", ["audit", "off"])
    def test_in_other_modes(self, mode: str) -> None:
        assert sized(known(machine(gpus(*SPREAD)), objects=TWO), mode=mode) == (None, ())

    def test_audit_says_what_strict_would_do(self) -> None:
        answer = validated(claiming(), known(machine(gpus(*SPREAD)), objects=TWO), "audit")
        assert (
            answer.warnings[0]
            == "numalign: strict mode would set container main: cpu unset -> 26, memory unset -> 127975Mi (requests = limits)"
        )


MAPPED_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "mapped"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'example.com'"}}]},
}


class TestCpuThroughClaims:
    CPUS = spec("dra.cpu", device("cpu-0", numa=0), device("cpu-1", numa=1))
    MAPPED = spec("example.com", device("c", {"type": "x"}) | {"nodeAllocatableResources": {"cpu": {"mapping": {}}}})

    @pytest.mark.parametrize(("cls", "slices"), [("dra.cpu", [CPUS]), ("dra.cpu", []), ("mapped", [MAPPED])])
    def test_are_left_as_written_and_said(self, cls: str, slices: list[JSON]) -> None:
        objects = {"t": template(gpu_request(1), request("cpu", 1, cls))}
        snapshot = known(machine(gpus(*SPREAD), *slices), objects=objects, more=[Document("", MAPPED_CLASS)])
        cpu, notes = sized(snapshot, user(limits={"cpu": "3500m"}))
        assert cpu == "3500m"
        assert notes == ("container main: CPUs come from a claim; its cpu requests and limits stay, so that none counts twice",)

    def test_beside_devices_of_a_plugin_too(self) -> None:
        objects = {"c": template(request("cpu", 1, "dra.cpu"), name="c")}
        pod = claiming(user(claim="cpus", gpu=2), claims={"cpus": "c"})
        snapshot = known(machine(self.CPUS, plugins=4, config=kubelet("restricted", cpu="none", memory=False)), objects=objects)
        final, decision = mutated(pod, snapshot)
        assert final == pod
        assert "CPUs come from a claim" in decision.warnings[0]
        answer = validated(pod, snapshot)
        assert (answer.allowed, answer.reason) == (True, "Claims")
        assert not validated(
            claiming(user(claim="cpus", gpu=2), claims={}),
            known(machine(plugins=4, config=kubelet("restricted", cpu="none", memory=False)), objects={}),
        ).allowed


class TestJudging:
    def test_beside_claimed_devices_nothing_is_called_aligned(self) -> None:
        answer = validated(claiming(user(limits={"cpu": "8", "memory": "8Gi"})), known(machine(gpus(*SPREAD)), objects=TWO))
        verdict = answer.verdicts["dgx"]
        assert verdict.outcome is Outcome.ADMITTED
        assert [(gap.container, gap.reason, gap.detail) for gap in verdict.gaps] == [("main", CLAIMED, MIXED)]

    def test_unless_the_class_has_one_numa_node(self) -> None:
        one = machine(gpus(0, 0), topology=SINGLE_NODE, config={"systemReserved": {"cpu": "2"}})
        answer = validated(claiming(user(limits={"cpu": "8", "memory": "8Gi"})), known(one, objects=TWO))
        assert (answer.verdicts["dgx"].outcome, answer.warnings) == (Outcome.ALIGNED, ())
        assert sized(known(one, objects=TWO)) == (None, ())

    def test_strict_refuses_what_every_kubelet_refuses(self) -> None:
        snapshot = known(machine(gpus(*SPREAD)), objects=TWO)
        answer = validated(claiming(user(limits={"cpu": "100", "memory": "8Gi"})), snapshot)
        assert (answer.allowed, answer.reason) == (False, "TopologyAffinityError")
        assert answer.message.splitlines() == [
            "the kubelet of no node class admits this pod:",
            "  dgx: main asks 100 CPUs; NUMA node 0 leaves 52 to pods, node 1 56",
            "Nearest change after which it is admitted (on dgx):",
            "  container main, resources.limits.cpu: now 100, use 56",
        ]
        fixed = validated(claiming(user(limits={"cpu": "56", "memory": "8Gi"})), snapshot)
        assert fixed.allowed

    @pytest.mark.parametrize(("mode", "outcome"), [("best-effort", "warned"), ("audit", "would-refuse")])
    def test_others_warn(self, mode: str, outcome: str) -> None:
        answer = validated(
            claiming(user(limits={"cpu": "100", "memory": "8Gi"})), known(machine(gpus(*SPREAD)), objects=TWO), mode
        )
        assert (answer.allowed, answer.outcome) == (True, outcome)
        assert answer.warnings[0].startswith("numalign: not admitted on dgx: main asks 100 CPUs")

    def test_one_class_that_admits_it_is_enough(self) -> None:
        other = machine(gpus(*SPREAD), name="lenient", config=LENIENT)
        both = known(machine(gpus(*SPREAD)), other, objects=TWO)
        assert validated(claiming(user(limits={"cpu": "100", "memory": "8Gi"})), both).allowed

    def test_a_class_whose_devices_are_not_known_is_a_candidate(self) -> None:
        other = machine(name="unknown", config=LENIENT, described=False)
        both = known(machine(gpus(*SPREAD)), other, objects=TWO)
        assert validated(claiming(user(limits={"cpu": "100", "memory": "8Gi"})), both).allowed

    def test_a_class_that_does_not_have_the_devices_is_none(self) -> None:
        other = machine(gpus(0), name="small", config=LENIENT)
        both = known(machine(gpus(*SPREAD)), other, objects=TWO)
        answer = validated(claiming(user(limits={"cpu": "100", "memory": "8Gi"})), both)
        assert not answer.allowed
        assert set(answer.verdicts) == {"dgx"}
        none = known(machine(gpus(*SPREAD)), machine(name="none", config=LENIENT), objects=TWO)
        assert not validated(claiming(user(limits={"cpu": "100", "memory": "8Gi"})), none).allowed

    def test_nics_of_a_plugin_beside_claimed_gpus_never_refuse(self) -> None:
        with_nics = machine(gpus(*SPREAD))
        for node in with_nics["spec"]["topology"]["numaNodes"]:
            node["devices"] = {"nvidia.com/hostdev": 1}
        answer = validated(claiming(user(limits={"nvidia.com/hostdev": "1"})), known(with_nics, objects=TWO))
        assert (answer.allowed, answer.reason) == (True, "Claims")

    def test_coverage_counts(self) -> None:
        pod = claiming(user(limits={"cpu": "100", "memory": "8Gi"}))
        assert validated(pod, known(machine(gpus(*SPREAD)), objects=TWO, complete=False)).allowed
        confined = claiming(user(limits={"cpu": "100", "memory": "8Gi"}), nodeSelector={"class": "dgx"})
        assert not validated(confined, known(machine(gpus(*SPREAD)), objects=TWO, complete=False)).allowed

    def test_a_pod_that_our_mutation_would_have_admitted(self) -> None:
        whole_cores = kubelet("restricted", cpuManagerPolicyOptions={"full-pcpus-only": "true"})
        snapshot = known(machine(gpus(*SPREAD), config=whole_cores), objects=TWO)
        odd = claiming(user(limits={"cpu": "3", "memory": "8Gi"}))
        assert validated(odd, snapshot).reason == "NotMutated"
        final, _ = mutated(odd, snapshot)
        assert amounts(final) == {"main": ("4", "8Gi")}
        assert validated(final, snapshot).allowed


class TestDevicesOfAllClaims:
    """A device is given out once, so the claims of a pod count together."""

    FOUR = gpus(0, 0, 1, 1)

    @pytest.mark.parametrize(
        ("templates", "mode", "allowed"),
        [
            ({"a": template(gpu_request(2)), "b": template(gpu_request(2))}, "strict", True),
            ({"a": template(gpu_request(2)), "b": template(gpu_request(3))}, "best-effort", True),
            ({"a": template(gpu_request(2)), "b": template(gpu_request(1)), "c": template(gpu_request(2))}, "strict", False),
            ({"a": template(gpu_request(1)), "b": template(gpu_request(4))}, "strict", False),
            ({"a": template(gpu_request(5))}, "strict", False),
            ({"a": template(gpu_request(5))}, "best-effort", True),
            ({"a": template(gpu_request(5))}, "audit", True),
            ({"a": template(gpu_request(5), request("tpu", 1, "tpu"))}, "strict", False),
            ({"a": template(request("tpu", 5, "tpu.google.com"))}, "strict", True),
            ({"a": None, "b": template(gpu_request(5))}, "strict", False),
        ],
    )
    def test_no_class_that_has_them_all(self, templates: dict[str, JSON], mode: str, allowed: bool) -> None:
        pod = claiming(user(claim="a"), claims={name: name for name in templates})
        answer = validated(pod, known(machine(self.FOUR), objects=templates), mode)
        assert answer.allowed is allowed
        if not allowed:
            assert answer.reason in {"NoClassServesClaims", "NotOnOneNode"}

    def test_the_refusal_says_what_is_there(self) -> None:
        answer = validated(
            claiming(), known(machine(self.FOUR), machine(gpus(0), name="small"), objects={"t": template(gpu_request(5))})
        )
        assert answer.message.splitlines() == [
            "no node class has all the devices that this pod's claims ask for, on one node:",
            "  dgx: gpus/gpu asks for 5 devices; 4 there",
            "  small: gpus/gpu asks for 5 devices; 1 there",
            "Ask for fewer devices, or spread them over several pods.",
        ]
        assert [cause.field for cause in answer.causes] == ["spec.resourceClaims"]

    def test_devices_that_are_claimed_twice(self) -> None:
        pod = claiming(user(claim="a"), claims={"a": "t", "b": "t", "c": "t"})
        answer = validated(pod, known(machine(self.FOUR), objects=TWO))
        assert "dgx: it has too few devices for a/gpu, b/gpu and c/gpu together" in answer.message

    def test_constraints_that_cannot_hold_at_once(self) -> None:
        pod = claiming(user(claim="a"), claims={"a": "t", "b": "t"})
        answer = validated(pod, known(machine(gpus(0, 0, 0, 1)), objects=TWO))
        assert "dgx: it cannot give a/gpu and b/gpu devices with one resource.kubernetes.io/numaNode each" in answer.message
        assert "leave out constraints of your own" in answer.message
        assert validated(pod, known(machine(gpus(0, 0, 0, 1)), objects=TWO), "best-effort").allowed

    @pytest.mark.parametrize(
        "others",
        [
            {"more": [machine(name="unknown", described=False)]},
            {"policy": {"complete": False}},
        ],
    )
    def test_where_other_nodes_may_have_them_nothing_is_refused(self, others: JSON) -> None:
        snapshot = known(
            machine(self.FOUR), *others.get("more", ()), objects={"t": template(gpu_request(5))}, **others.get("policy", {})
        )
        assert validated(claiming(), snapshot).allowed

    def test_nor_where_a_node_of_the_cluster_has_them(self) -> None:
        seen = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": gpus(0, 0, 0, 0, 0, nodeName="node-1")}
        snapshot = known(machine(self.FOUR), objects={"t": template(gpu_request(5))}, more=[Document("", seen)])
        assert validated(claiming(), snapshot).allowed


class TestExtendedResources:
    """`nvidia.com/gpu` is served by the plugin where the class lists it, and by DRA where its slices do."""

    DRA = machine(gpus(*SPREAD), name="dra")
    PLUGIN = machine(name="plugin", plugins=4)

    def test_by_dra_alone(self) -> None:
        pod = {"spec": {"containers": [bare("main", 2)]}}
        final, decision = mutated(pod, known(self.DRA))
        assert amounts(final) == {"main": ("26", "127975Mi")}
        assert decision.verdicts["dra"].outcome is Outcome.ADMITTED

    def test_by_either(self) -> None:
        pod = {"spec": {"containers": [bare("main", 2)]}}
        final, decision = mutated(pod, known(self.DRA, self.PLUGIN))
        assert amounts(final) == {"main": ("26", "127975Mi")}
        assert {name: verdict.outcome for name, verdict in decision.verdicts.items()} == {
            "dra": Outcome.ADMITTED,
            "plugin": Outcome.ALIGNED,
        }

    def test_nothing_is_changed_where_a_class_would_pin_away_from_the_devices(self) -> None:
        pod = {"spec": {"containers": [bare("main", 2)]}}
        away = machine(gpus(*reversed(SPREAD)), name="dra")
        final, decision = mutated(pod, known(away, self.PLUGIN))
        assert final == pod
        assert decision.warnings == (f"numalign: not sized: on dra its CPUs would be away from its devices; {PINS}",)
        assert validated(pod, known(away, self.PLUGIN)).allowed

    def test_a_class_with_both_serves_it_by_the_plugin(self) -> None:
        pod = {"spec": {"containers": [bare("main", 2)]}}
        _, decision = mutated(pod, known(machine(gpus(*reversed(SPREAD)), plugins=4)))
        assert decision.verdicts["dgx"].outcome is Outcome.ALIGNED

    @pytest.mark.parametrize(
        ("minor", "gates", "served"),
        [
            ("1.35", {}, False),
            ("1.35", {"DRAExtendedResource": True}, True),
            ("1.36", {}, True),
            ("1.36", {"DRAExtendedResource": False}, False),
        ],
    )
    def test_a_gate_stands_before_it(self, minor: str, gates: dict[str, bool], served: bool) -> None:
        pod = {"spec": {"containers": [bare("main", 2)]}}
        of_dra = machine(gpus(*reversed(SPREAD)), name="dra", kubernetes=minor, config=kubelet(featureGates=gates))
        final, decision = mutated(pod, known(of_dra, self.PLUGIN))
        assert ("dra" in decision.verdicts) is served
        assert (final == pod) is served

    def test_what_hami_implies_is_no_request_for_a_claim(self) -> None:
        pod = {"spec": {"containers": [bare("main", None, limits={"nvidia.com/gpumem": "8000"})]}}
        assert mutated(pod, known(self.DRA))[1].verdicts == {}

    def test_each_container_has_a_request_of_its_own(self) -> None:
        pod = {"spec": {"containers": [bare("a", 2), bare("b", 2)]}}
        final, _ = mutated(pod, known(self.DRA))
        assert {name: cpu for name, (cpu, _) in amounts(final).items()} == {"a": "26", "b": "26"}

    def test_more_than_there_are(self) -> None:
        pod = {"spec": {"containers": [bare("main", 9)]}}
        assert mutated(pod, known(self.DRA))[1].reason == "ServedByDra"
        assert validated(pod, known(self.DRA)).allowed


def test_the_affinity_stays_when_the_pod_comes_again() -> None:
    """A GPU of the plugin and one by a claim: the class that floats its CPUs must stay in sight off which we keep the pod."""
    floating = machine(gpus(0, 1), name="b", config=kubelet(cpu="none", memory=False), plugins=4)
    pinning = machine(gpus(0, 1), name="a", config=kubelet("restricted"), plugins=4)
    snapshot = known(pinning, floating, objects={"t": template(gpu_request())})
    final, decision = mutated(claiming(user("main", gpu=1, requests={"cpu": "7"})), snapshot)
    assert decision.audit["verdict"] == "aligned on a; not on b"
    assert final["spec"]["affinity"]
    assert mutated(final, snapshot)[1].patch == ()


class TestTheTemplatesFault:
    """Three GPUs, of which no NUMA node has more than two."""

    THREE = template(gpu_request(3))
    CLASS = machine(gpus(0, 0, 1, 1))

    @pytest.mark.parametrize(("mode", "outcome"), [("strict", "refused"), ("audit", "would-refuse")])
    def test_refuses(self, mode: str, outcome: str) -> None:
        assert validated(claiming(), known(self.CLASS, objects={"t": self.THREE}), mode).outcome == outcome

    @pytest.mark.parametrize("mode", ["strict", "audit"])
    def test_not_where_a_class_is_not_described(self, mode: str) -> None:
        other = machine(name="unknown", described=False)
        answer = validated(claiming(), known(self.CLASS, other, objects={"t": self.THREE}), mode)
        assert (answer.allowed, answer.outcome) == (True, "allowed")

    @pytest.mark.parametrize("more", [{"nodeSelector": {"class": "elsewhere"}}, {"containers": [user(gpu=4)]}])
    def test_not_where_no_described_class_can_take_the_pod(self, more: JSON) -> None:
        known_ = known(self.CLASS, objects={"t": self.THREE})
        for mode in ("strict", "audit"):
            assert validated(claiming(**more), known_, mode).outcome == "undescribed"

    @pytest.mark.parametrize(
        ("mode", "may_relax", "outcome"),
        [("best-effort", True, "allowed"), ("off", True, "allowed"), ("best-effort", False, "refused")],
    )
    def test_not_where_its_claims_may_be_less_strict(self, mode: str, may_relax: bool, outcome: str) -> None:
        relaxed = template(gpu_request(3))
        relaxed["spec"]["metadata"] = {"annotations": {"numalign.io/mode": mode}}
        known_ = known(self.CLASS, objects={"t": relaxed}, annotation_may_relax=may_relax)
        assert validated(claiming(), known_).outcome == outcome

    def test_a_claim_has_none_of_the_annotations_of_the_template_itself(self) -> None:
        own = template(gpu_request(3))
        own["metadata"]["annotations"] = {"numalign.io/mode": "best-effort"}
        known_ = known(self.CLASS, objects={"t": own}, annotation_may_relax=True)
        assert validated(claiming(), known_).outcome == "refused"


def test_a_claim_that_is_named_twice_counts_once() -> None:
    made = claiming(claims={})
    made["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": "c"} for name in ("gpus", "again")]
    assert validated(made, known(machine(gpus(0, 0, 0, 1)), objects={"c": claim(gpu_request(3), owned=False)})).allowed

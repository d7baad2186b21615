"""What becomes of a claim: required, preferred, refused, or left as written, and what people are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.dra.claiming import (
    CPU,
    GPU,
    JSON,
    NIC,
    NUMA,
    PCIE,
    claim,
    device,
    inventory,
    mutated,
    on,
    request,
    spec,
    validated,
)
from webhook.core.decision import Request
from webhook.core.dra import decide
from webhook.core.dra.allocation import Fits
from webhook.core.dra.plan import plan
from webhook.core.snapshot import Snapshot

H100 = [on(GPU, 0, 0, 1, 1), on(NIC, 0, 1), on(CPU, 0, 1)]
GPU_AND_NIC = (request("gpu", 2), request("nic"))


def constraints(made: JSON) -> list[JSON]:
    return made["spec"]["devices"].get("constraints") or []


def hub(made: JSON) -> JSON:
    return made["spec"]["devices"]["requests"][0]


def test_a_selector_that_fails_on_a_device_is_not_led_to_it() -> None:
    mixed = spec(GPU, device("d0", numa=1), device("d1", numa=1), device("d2", numa="1"))
    above = {"selectors": [{"cel": {"expression": "device.attributes['resource.kubernetes.io'].numaNode > 0"}}]}
    made, decision = mutated(claim(request("gpu", 2, **above)), inventory(n=[mixed]))
    assert (decision.reason, decision.patch, constraints(made)) == ("SelectorFails", (), [])
    assert decision.warnings == ("numalign: claim not aligned: a selector of gpu fails on some devices",)


def test_strict_requires_one_value_for_all() -> None:
    made, decision = mutated(claim(*GPU_AND_NIC), inventory(h100=H100))
    assert constraints(made) == [{"matchAttribute": NUMA, "requests": ["gpu", "nic"]}]
    assert made["spec"]["devices"]["requests"] == list(GPU_AND_NIC)
    assert decision.outcome == "mutated"
    assert decision.warnings == (f"numalign: claim: required {NUMA}: gpu, nic",)
    assert made["metadata"]["annotations"] == {decide.CLAIM: f"required {NUMA}: gpu, nic"}


def test_best_effort_splits_the_hub_alone_and_puts_it_first() -> None:
    made, _ = mutated(claim(request("cpu"), request("nic"), request("gpu", 2)), inventory(h100=H100), "best-effort")
    exact = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    assert made["spec"]["devices"]["requests"] == [
        {"name": "gpu", "firstAvailable": [{"name": "aligned", **exact}, {"name": "any", **exact}]},
        request("cpu"),
        request("nic"),
    ]
    assert constraints(made) == [
        {"matchAttribute": NUMA, "requests": ["gpu/aligned", "cpu"]},
        {"matchAttribute": NUMA, "requests": ["gpu/aligned", "nic"]},
    ]


def test_every_field_of_the_hub_is_in_both_alternatives() -> None:
    fields = {
        "selectors": [{"cel": {"expression": "true"}}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "capacity": {"requests": {}},
        "adminAccess": False,
    }
    made, _ = mutated(claim(request("gpu", 2, **fields)), inventory(h100=H100), "best-effort")
    kept = {key: each for key, each in fields.items() if key != "adminAccess"}
    for alternative in hub(made)["firstAvailable"]:
        assert {key: alternative[key] for key in kept} == kept
        assert "adminAccess" not in alternative
    assert constraints(made) == [{"matchAttribute": NUMA, "requests": ["gpu/aligned"]}]


def test_a_configuration_for_the_hub_names_its_alternatives_too() -> None:
    config = [
        {"requests": ["gpu"], "opaque": {"driver": GPU, "parameters": {}}},
        {"requests": ["nic"], "opaque": {"driver": NIC, "parameters": {}}},
        {"opaque": {"driver": GPU, "parameters": {}}},
    ]
    made, _ = mutated(claim(*GPU_AND_NIC, config=config), inventory(h100=H100), "best-effort")
    assert [each.get("requests") for each in made["spec"]["devices"]["config"]] == [
        ["gpu", "gpu/aligned", "gpu/any"],
        ["nic"],
        None,
    ]


def test_a_configuration_with_no_room_for_more_names_keeps_the_claim_as_written() -> None:
    others = [request(f"nic{i}", cls="nic") for i in range(30)]
    config = [{"requests": ["gpu", *(each["name"] for each in others)], "opaque": {"driver": GPU, "parameters": {}}}]
    many = [on(GPU, 0, 1), on(NIC, *([0] * 31))]
    made, decision = mutated(claim(request("gpu"), *others, config=config), inventory(n=many), "best-effort")
    assert constraints(made) == []
    assert "more than 32" in decision.warnings[0]


def test_two_requests_of_several_devices_have_no_exact_preference() -> None:
    two_nics = [on(GPU, 0, 0, 1, 1), on(NIC, 0, 0, 1, 1)]
    wanted = claim(request("gpu", 2), request("nic", 2))
    made, decision = mutated(wanted, inventory(n=two_nics), "best-effort")
    assert made == wanted
    assert "gpu and nic both ask for several devices" in decision.warnings[0]
    made, _ = mutated(wanted, inventory(n=two_nics), "strict")
    assert constraints(made) == [{"matchAttribute": NUMA, "requests": ["gpu", "nic"]}]


def test_where_some_hub_devices_do_not_say_strict_prefers() -> None:
    made, _ = mutated(claim(*GPU_AND_NIC), inventory(old=[on(GPU, None, None), on(NIC, 0)], new=H100))
    assert [each["name"] for each in hub(made)["firstAvailable"]] == ["aligned", "any"]


def test_a_request_whose_devices_do_not_all_say_is_never_bound_in_the_fallback() -> None:
    """A constraint asks for the attribute in `any` as well: devices without it would be lost."""
    some = [on(GPU, 0, 0, 1, 1), on(NIC, 0, None), on(CPU, 0, 1)]
    made, _ = mutated(claim(request("gpu", 2), request("nic"), request("cpu")), inventory(n=some), "best-effort")
    assert [each["requests"] for each in constraints(made)] == [["gpu/aligned", "cpu"]]


@pytest.mark.parametrize("unknown", [-1, ""])
def test_minus_one_and_empty_are_absent(unknown: Any) -> None:
    name = NUMA if unknown == -1 else PCIE
    slices = [spec(GPU, device("a", {name: 0 if unknown == -1 else "r"})), spec(NIC, device("b", {name: unknown}))]
    wanted = claim(request("gpu"), request("nic"))
    made, decision = mutated(wanted, inventory(n=slices))
    assert made == wanted
    assert decision.reason == "NoAttribute"


def test_unknown_values_match_each_other_so_a_single_request_is_left_alone() -> None:
    wanted = claim(request("gpu", 2))
    made, decision = mutated(wanted, inventory(n=[on(GPU, 0, 0, -1, -1)]), "best-effort")
    assert made == wanted
    assert "would match each other" in decision.warnings[0]


def test_the_attribute_is_what_all_share() -> None:
    alias = "dra.net/numaNode"
    gpu = spec(GPU, device("a", {PCIE: "r0", NUMA: 0}), device("b", {PCIE: "r1", NUMA: 1}))
    nic = spec(NIC, device("a", {PCIE: "r0", "numaNode": 0}), device("b", {PCIE: "r1", "numaNode": 1}))
    cpu = spec(CPU, device("a", {alias: 0}), device("b", {alias: 1}))
    known = inventory(n=[gpu, nic, cpu])
    made, _ = mutated(claim(request("gpu"), request("nic")), known)
    assert constraints(made) == [{"matchAttribute": PCIE, "requests": ["gpu", "nic"]}]
    made, _ = mutated(claim(request("nic"), request("cpu")), known)
    assert constraints(made) == [{"matchAttribute": alias, "requests": ["nic", "cpu"]}]


def test_pcie_roots_that_cannot_be_had_in_common_say_nothing_about_numa_nodes() -> None:
    roots = [spec(GPU, *(device(f"g{i}", pcie=f"r{i}") for i in range(4)))]
    made, decision = mutated(claim(request("gpu", 2), owned=False), inventory(n=roots))
    assert constraints(made) == []
    assert decision.reason == "NoAttribute"
    assert validated(claim(request("gpu", 2), owned=False), inventory(n=roots)).allowed


def test_types_that_differ_never_match() -> None:
    slices = [spec(GPU, device("a", {NUMA: 0})), spec(NIC, device("b", {NUMA: "0"}))]
    made, decision = mutated(claim(request("gpu"), request("nic")), inventory(n=slices))
    assert constraints(made) == []
    assert decision.reason == "NoAttribute"


def test_lists_need_a_gate_that_is_off() -> None:
    _, decision = mutated(
        claim(request("gpu", 2)), inventory(n=[spec(GPU, device("a", {NUMA: [0]}), device("b", {NUMA: [0, 1]}))])
    )
    assert decision.reason == "NoAttribute"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (claim(request("gpu")), "OneDevice"),
        (claim({"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}, request("nic")), "AllDevices"),
        (claim(request("gpu", 2, adminAccess=True)), "AdminAccess"),
        (claim({"name": "gpu", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}, request("nic")), "FirstAvailable"),
        (claim(request("gpu", 2), request("c", cls="compute-domain-default-channel.nvidia.com")), "ComputeDomain"),
        (claim(*GPU_AND_NIC, constraints=[{"matchAttribute": PCIE}]), "Constrained"),
        (claim(*GPU_AND_NIC, constraints=[{"matchAttribute": PCIE, "requests": ["nic"]}]), "Constrained"),
        (claim(*GPU_AND_NIC, constraints=[{"distinctAttribute": PCIE, "requests": ["nic"]}]), "Constrained"),
        (claim(request("gpu", 33)), "TooMany"),
        (claim(request("tpu", 2)), "NoNodeOffers"),
    ],
)
@pytest.mark.parametrize("mode", ["strict", "best-effort"])
def test_left_as_written(made: JSON, reason: str, mode: str) -> None:
    after, decision = mutated(made, inventory(h100=H100), mode)
    assert (after, decision.reason) == (made, reason)
    assert validated({**made, "metadata": {"name": "c"}}, inventory(h100=H100), mode).allowed


def test_the_schedulers_own_claim_is_left_alone() -> None:
    made = claim(request("gpu", 2))
    made["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    after, decision = mutated(made, inventory(h100=H100))
    assert (after, decision.reason) == (made, "ExtendedResource")


@pytest.mark.parametrize(
    ("published", "asked", "plain"),
    [
        ("memory", {"memory": "40Gi"}, Fits.YES),
        ("memory", {"memory": "80Gi"}, Fits.UNKNOWN),  # up to 1.35 nobody looks
        ("memory", {f"{GPU}/memory": "40Gi"}, Fits.UNKNOWN),
        (f"{GPU}/memory", {"memory": "40Gi"}, Fits.UNKNOWN),
        (f"{GPU}/memory", {f"{GPU}/memory": "40Gi"}, Fits.YES),
    ],
)
def test_a_capacity_has_the_name_under_which_it_is_published(published: str, asked: JSON, plain: Fits) -> None:
    devices = [device(name, numa=0) | {"capacity": {published: {"value": "40Gi"}}} for name in "ab"]
    made = claim(request("gpu", 2, capacity={"requests": asked}))
    found = plan(made, made["spec"]["devices"], inventory(h100=[spec(GPU, *devices)]), strict=True, rewritable=True)
    assert found.plain == {"h100": plain}


def test_a_class_that_is_not_known_is_left_out_and_named() -> None:
    made, decision = mutated(claim(request("tpu"), request("gpu", 2)), inventory(h100=H100))
    assert constraints(made) == [{"matchAttribute": NUMA, "requests": ["gpu"]}]
    assert any("DeviceClass tpu is not known" in line for line in decision.warnings)


class TestImpossible:
    WANTED = claim(request("gpu", 3), owned=False)
    KNOWN = inventory(h100=H100, a100=[on(GPU, 0, 1)])

    @pytest.mark.parametrize("mode", ["strict", "best-effort", "audit"])
    def test_is_left_out_with_a_warning(self, mode: str) -> None:
        made, decision = mutated(self.WANTED, self.KNOWN, mode)
        assert made == self.WANTED
        assert decision.allowed
        if mode != "audit":
            assert f"no node has 3 gpu with one {NUMA}" in decision.warnings[0]

    def test_strict_refuses_with_a_reason_per_class(self) -> None:
        decision = validated(self.WANTED, self.KNOWN)
        assert not decision.allowed
        assert f"h100: gpu asks for 3 devices with one {NUMA}; at most 2 share one" in decision.message
        assert "a100" not in decision.message  # it has no three GPUs at all

    def test_a_claim_of_a_controller_is_never_refused(self) -> None:
        assert validated(claim(request("gpu", 3)), self.KNOWN).allowed

    @pytest.mark.parametrize("changed", [{"mode": "best-effort"}, {"complete": False}])
    def test_nor_is_any_other_elsewhere(self, changed: JSON) -> None:
        assert validated(self.WANTED, self.KNOWN, **({"mode": "strict"} | changed)).allowed

    def test_the_clusters_nodes_of_the_moment_never_refuse(self) -> None:
        assert validated(self.WANTED, replace(self.KNOWN, complete=False)).allowed

    def test_a_class_that_is_not_known_never_refuses(self) -> None:
        assert validated(claim(request("gpu", 3), request("tpu"), owned=False), self.KNOWN).allowed

    def test_audit_says_what_strict_would_do(self) -> None:
        decision = validated(self.WANTED, self.KNOWN, "audit")
        assert (decision.allowed, decision.outcome) == (True, "would-refuse")

    def test_devices_of_which_more_is_asked_than_selectors_never_refuse(self) -> None:
        partitions = spec(GPU, *({**device(f"d{i}", numa=i % 2), "consumesCounters": [{}]} for i in range(4)))
        assert validated(claim(request("gpu", 2), owned=False), inventory(n=[partitions])).allowed

    def test_selectors_that_cannot_be_evaluated_never_refuse(self) -> None:
        odd = request("gpu", 3, selectors=[{"cel": {"expression": "device.attributes['x'].y.isLessThan(semver('1.0.0'))"}}])
        assert validated(claim(odd, owned=False), inventory(n=[on(GPU, 0, 0, 0, 1)])).allowed


def test_audit_changes_nothing_and_says_what_strict_would() -> None:
    wanted = claim(*GPU_AND_NIC)
    made, _ = mutated(wanted, inventory(h100=H100), "audit")
    assert made == wanted
    assert validated(wanted, inventory(h100=H100), "audit").warnings == (
        f"numalign: strict mode would set claim: required {NUMA}: gpu, nic",
    )


def test_a_claim_written_by_hand_gets_a_constraint_at_most() -> None:
    wanted = claim(*GPU_AND_NIC, owned=False)
    made, _ = mutated(wanted, inventory(h100=H100), "strict")
    assert constraints(made) == [{"matchAttribute": NUMA, "requests": ["gpu", "nic"]}]
    made, decision = mutated(wanted, inventory(h100=H100), "best-effort")
    assert made == wanted
    assert "written by hand" in decision.warnings[0]


@pytest.mark.parametrize("mode", ["strict", "best-effort"])
def test_a_second_pass_changes_nothing(mode: str) -> None:
    made, _ = mutated(claim(*GPU_AND_NIC), inventory(h100=H100), mode)
    again, decision = mutated(made, inventory(h100=H100), mode)
    assert again == made
    assert decision.warnings == () or mode == "best-effort"


def test_where_no_device_is_described_there_is_nothing_to_say() -> None:
    made, decision = mutated(claim(*GPU_AND_NIC), inventory())
    assert (made, decision.outcome, decision.warnings) == (claim(*GPU_AND_NIC), "undescribed", ())


@pytest.mark.parametrize(("policy", "label"), [({"exempt_namespaces": frozenset({"research"})}, "strict"), ({}, "off")])
def test_exempt(policy: JSON, label: str) -> None:
    from tests.unit.core.dra.claiming import snapshot

    decision = decide.mutate_claim(
        claim(*GPU_AND_NIC), Request("research", label=label), snapshot(inventory(h100=H100), **policy)
    )
    assert (decision.outcome, decision.patch) == ("exempt", ())


def test_a_template_can_make_its_claims_stricter() -> None:
    wanted = claim(*GPU_AND_NIC)
    wanted["metadata"]["annotations"] = {"numalign.io/mode": "strict"}
    made, _ = mutated(wanted, inventory(h100=H100), "best-effort")
    assert constraints(made) == [{"matchAttribute": NUMA, "requests": ["gpu", "nic"]}]
    wanted["metadata"]["annotations"] = {"numalign.io/mode": "audit"}
    made, decision = mutated(wanted, inventory(h100=H100), "strict")
    assert constraints(made)
    assert "is less strict than" in decision.warnings[0]


def test_metadata_may_be_missing() -> None:
    wanted = claim(*GPU_AND_NIC)
    del wanted["metadata"]
    made, _ = mutated(wanted, inventory(h100=H100))
    assert made["metadata"]["annotations"]


FIELDS = (
    *("metadata", "annotations", "ownerReferences", "spec", "devices", "requests", "constraints", "config", "name", "exactly"),
    *(
        "firstAvailable",
        "selectors",
        "cel",
        "expression",
        "count",
        "allocationMode",
        "adminAccess",
        "capacity",
        "deviceClassName",
    ),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
ANY = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(ANY)
def test_never_raises_whatever_the_claim(made: Any) -> None:
    known = Snapshot(inventory=inventory(h100=H100))
    for each in (made, {"spec": {"devices": made}}, {"spec": {"devices": {"requests": made}}}):
        assert decide.mutate_claim(each, Request(label="strict"), known).allowed
        assert decide.validate_claim(each, Request(label="strict"), known).allowed

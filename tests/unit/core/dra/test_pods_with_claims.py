"""Pods that ask for devices by claims."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.dra.claiming import GPU, JSON, NIC, claim, inventory, on, request
from tests.unit.core.dra.machines import Cluster, claiming, user
from tests.unit.core.setting import bare
from webhook.config.catalogue import shipped_catalogue
from webhook.config.selectors import Selectors
from webhook.core import decide
from webhook.core.decision import Decision, Request
from webhook.core.dra import decide as claim_decisions
from webhook.core.dra.asked import asks_for_accelerators
from webhook.core.dra.devices import DeviceClass, Inventory
from webhook.core.dra.pods import NOT_LOOKED_UP
from webhook.core.dra.references import LookupFailedError, references
from webhook.core.dra.served import MIXED
from webhook.core.dra.slices import literal_devices
from webhook.core.policy import ClaimRules, Policy
from webhook.core.snapshot import Snapshot

KNOWN = inventory(h100=[on(GPU, 0, 0, 1, 1), on("dra.net", 0)])


def template(*requests: JSON) -> JSON:
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "t"}, "spec": spec}


def pod(**resources: Any) -> JSON:
    spec = {
        "containers": [bare("main", None, **resources)],
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "t"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def validate(made: JSON, found: Any, mode: str = "strict", **policy: Any) -> Decision:
    known = Snapshot(Policy(**policy), shipped_catalogue(), inventory=KNOWN, lookup=Cluster({"t": found}))
    return decide.validate(made, Request("research", label=mode), known)


def test_strict_refuses_a_template_that_no_class_can_satisfy() -> None:
    decision = validate(pod(), template(request("gpu", 3)))
    assert (decision.allowed, decision.reason) == (False, "NotOnOneNode")
    assert decision.message.startswith("spec.resourceClaims[0], ResourceClaimTemplate t: no node class has")
    assert "h100: gpu asks for 3 devices" in decision.message
    assert decision.causes[0].field == "spec.resourceClaims[0]"


@pytest.mark.parametrize(
    ("mode", "policy", "outcome"),
    [("best-effort", {}, "allowed"), ("audit", {}, "would-refuse"), ("strict", {"complete": False}, "allowed")],
)
def test_elsewhere_it_is_a_warning(mode: str, policy: JSON, outcome: str) -> None:
    decision = validate(pod(), template(request("gpu", 3)), mode, **policy)
    assert (decision.allowed, decision.outcome) == (True, outcome)
    assert "claim gpus: no node has 3 gpu with one" in decision.warnings[0]


def test_a_template_that_fits_is_nothing_to_talk_about() -> None:
    decision = validate(pod(), template(request("gpu", 2)))
    assert (decision.allowed, decision.warnings) == (True, ())


@pytest.mark.parametrize(("cpu", "warned"), [("4", True), ("3500m", False), (None, False)])
def test_pinned_cpus_beside_claimed_devices_are_warned_about(cpu: str | None, warned: bool) -> None:
    decision = validate(pod(limits={"cpu": cpu} if cpu else {}), template(request("gpu", 2)))
    assert decision.allowed
    assert any(MIXED in line for line in decision.warnings) is warned


def test_the_warning_is_never_cut() -> None:
    decision = validate(pod(limits={"cpu": "4"}), template(request("gpu", 2)))
    assert decision.warnings == (f"numalign: {MIXED}",)


def test_claims_without_accelerators_are_none_of_our_business() -> None:
    decision = validate(pod(limits={"cpu": "4"}), template(request("nic", 5)))
    assert (decision.outcome, decision.warnings) == ("not-ours", ())


def test_what_cannot_be_read_is_a_warning() -> None:
    decision = validate(pod(), LookupFailedError("timed out"))
    assert decision.allowed
    assert decision.warnings == ("numalign: claims were not read, so not judged: ResourceClaimTemplate t: timed out",)


@pytest.mark.parametrize(
    "found",
    [None, {}, [], {"kind": "ResourceClaimTemplate"}, template(1), template({"name": "x"}), {"apiVersion": "resource.k8s.io/v1"}],
)
@pytest.mark.parametrize("mode", ["strict", "best-effort", "audit"])
def test_a_template_that_is_gone_or_odd_never_refuses(found: Any, mode: str) -> None:
    decision = validate(pod(), found, mode)
    assert (decision.allowed, decision.warnings) == (True, ())


class TestWithoutLookup:
    def decided(self, made: JSON, found: Inventory = KNOWN, mode: str = "strict") -> list[Decision]:
        known = Snapshot(catalogue=shipped_catalogue(), inventory=found)
        return [handler(made, Request("research", label=mode), known) for handler in (decide.mutate, decide.validate)]

    def test_the_pod_stays_as_written_and_that_is_said_once_in_each_decision(self) -> None:
        mutation, admission = self.decided(claiming())
        assert (mutation.outcome, mutation.reason, mutation.patch) == ("unchanged", "ClaimsNotRead", ())
        assert (admission.allowed, admission.outcome) == (True, "allowed")
        assert mutation.warnings == admission.warnings == (f"numalign: {NOT_LOOKED_UP}",)

    @pytest.mark.parametrize("found", [inventory(n=[on(NIC, 0)])])
    def test_no_word_where_no_device_is_an_accelerator(self, found: Inventory) -> None:
        assert [each.warnings for each in self.decided(claiming(), found)] == [(), ()]

    def test_where_no_device_is_known_it_could_be_one(self) -> None:
        assert all(each.warnings for each in self.decided(claiming(), inventory()))

    def test_no_word_where_no_container_uses_them(self) -> None:
        assert [each.warnings for each in self.decided(pod())] == [(), ()]

    def test_no_word_on_pods_that_are_known_by_their_resources(self) -> None:
        assert not any(NOT_LOOKED_UP in line for each in self.decided(claiming(user(gpu=1))) for line in each.warnings)

    def test_nor_where_the_mode_is_off(self) -> None:
        assert [each.warnings for each in self.decided(claiming(), mode="off")] == [(), ()]


def test_nothing_is_read_where_the_mode_is_off() -> None:
    decision = validate(pod(), AssertionError("nobody should ask"), "off")
    assert (decision.allowed, decision.outcome) == (True, "exempt")


class TestPrioritizedLists:
    """A cluster whose gate is off drops `firstAvailable`, so that nothing can be preferred there."""

    @pytest.mark.parametrize(("mode", "encoded"), [("strict", True), ("best-effort", False)])
    def test_no_preference_is_written_where_the_policy_says_so(self, mode: str, encoded: bool) -> None:
        off = Snapshot(Policy(claims=ClaimRules(prioritized_list=False)), inventory=KNOWN)
        made = claim(request("gpu", 2), request("nic"))
        decision = claim_decisions.mutate_claim(made, Request("research", label=mode), off)
        assert bool(decision.patch) is encoded
        assert "firstAvailable" not in str(decision.patch)
        if not encoded:
            assert (
                "a preference takes a prioritized list, and the policy says that the cluster knows none" in decision.warnings[0]
            )


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("gpu.nvidia.com", True),
        ("mig.nvidia.com", False),
        ("vfio.gpu.nvidia.com", True),
        ("gpu", True),
        ("nic", False),
        ("x", False),
    ],
)
def test_classes_of_accelerators(name: str, ours: bool) -> None:
    made = {"spec": {"devices": {"requests": [request("a", cls=name)]}}}
    assert asks_for_accelerators(made, KNOWN) is ours


def test_names_that_no_object_has_are_not_looked_up() -> None:
    entries = [{"name": "a", "resourceClaimName": name} for name in ("../../secrets/x", "", "A", "ok.name", 3, None)]
    assert [each.name for each in references({"spec": {"resourceClaims": entries}})] == ["ok.name"]


ANY = st.recursive(
    st.none() | st.integers() | st.sampled_from(["t", "..", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "resourceClaimName", "resourceClaimTemplateName"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(ANY)
def test_never_raises_whatever_the_entries(entries: Any) -> None:
    made = pod()
    made["spec"]["resourceClaims"] = entries
    validate(made, template(request("gpu", 2)))


class TestExtendedResources:
    def decided(self, extended: str, *slices: JSON) -> Decision:
        known = Inventory({"n": literal_devices(slices)}, {"gpu": DeviceClass("gpu", ("true",), extended)}, matches=Selectors())
        return decide.mutate(
            {"spec": {"containers": [bare("main", 2)]}},
            Request(label="strict"),
            Snapshot(catalogue=shipped_catalogue(), inventory=known),
        )

    def test_one_that_dra_serves_is_recognised_and_left_alone(self) -> None:
        decision = self.decided("nvidia.com/gpu", on(GPU, 0))
        assert (decision.allowed, decision.reason, decision.patch) == (True, "ServedByDra", ())
        assert "nvidia.com/gpu is served by DRA (gpu)" in decision.warnings[0]

    @pytest.mark.parametrize(("extended", "slices"), [("amd.com/gpu", (on(GPU, 0),)), ("nvidia.com/gpu", ())])
    def test_others_are_not(self, extended: str, slices: tuple[JSON, ...]) -> None:
        assert self.decided(extended, *slices).reason == "NoClassOffers"

"""Feature gates."""

import pytest

from webhook.core.kubelet.features import enabled_gates, gate_errors, known_gates
from webhook.core.model import MINORS

MANAGERS, LEVEL = "PodLevelResourceManagers", "PodLevelResources"


def messages(minor: int, given: dict[str, bool]) -> list[str]:
    return [message for _, message in gate_errors(minor, given)]


@pytest.mark.parametrize(
    ("minor", "gate", "stage", "default"),
    [
        (34, LEVEL, "b", True),
        (36, MANAGERS, "a", False),
        (37, MANAGERS, "b", False),
        (34, "CPUManagerPolicyAlphaOptions", "a", False),
        (37, "CPUManagerPolicyBetaOptions", "b", True),
        (37, "TopologyManagerPolicyAlphaOptions", "a", False),
    ],
)
def test_what_a_gate_is(minor: int, gate: str, stage: str, default: bool):
    found = known_gates(minor)[gate]

    assert (found.stage, found.default) == (stage, default)


def test_the_managers_gate_is_unknown_before_it_came():
    assert MANAGERS not in known_gates(35)


@pytest.mark.parametrize("minor", MINORS)
def test_defaults_start(minor: int):
    assert messages(minor, {}) == []
    assert {name for name, gate in known_gates(minor).items() if gate.default} == enabled_gates(minor, {})


@pytest.mark.parametrize(
    ("minor", "given", "expected"),
    [
        (37, {}, False),
        (37, {MANAGERS: True}, True),
        (37, {"AllBeta": True}, True),
        (36, {"AllBeta": True}, False),
        (36, {"AllAlpha": True}, True),
        (36, {"AllAlpha": True, MANAGERS: False}, False),
        (36, {MANAGERS: False, "AllAlpha": True}, False),
        (37, {"AllBeta": False, MANAGERS: True, LEVEL: True}, True),
    ],
)
def test_groups_of_gates(minor: int, given: dict[str, bool], expected: bool):
    assert (MANAGERS in enabled_gates(minor, given)) is expected


@pytest.mark.parametrize(
    ("minor", "given", "expected"),
    [
        (37, {"Bogus": True}, ["unrecognized feature gate: Bogus"]),
        (35, {MANAGERS: True}, [f"unrecognized feature gate: {MANAGERS}"]),
        (35, {"MemoryManager": False}, ["cannot set feature gate MemoryManager to false, feature is locked to true"]),
        (35, {"MemoryManager": True}, []),
        (36, {"MemoryManager": True}, ["unrecognized feature gate: MemoryManager"]),
        (37, {MANAGERS: True, LEVEL: False}, [f"{MANAGERS} is enabled, but depends on features that are disabled: [{LEVEL}]"]),
        # without dependencies before 1.35
        (34, {"AllBeta": False, "InPlacePodVerticalScalingExclusiveCPUs": True}, []),
    ],
)
def test_what_keeps_a_kubelet_from_starting(minor: int, given: dict[str, bool], expected: list[str]):
    found = messages(minor, given)

    assert [message for message in expected if message not in found] == []
    assert bool(found) is bool(expected)


def test_dependencies_are_checked_only_where_all_gates_could_be_set():
    assert messages(37, {MANAGERS: True, LEVEL: False, "Bogus": True}) == ["unrecognized feature gate: Bogus"]


def test_a_dependency_that_came_later():
    gate = "UserNamespacesHostNetworkSupport"

    assert "NodeDeclaredFeatures" not in known_gates(35)[gate].needs
    assert "NodeDeclaredFeatures" in known_gates(36)[gate].needs


@pytest.mark.parametrize("minor", MINORS)
def test_dependencies_name_known_gates(minor: int):
    known = known_gates(minor)

    assert all(need in known for gate in known.values() for need in gate.needs)
    assert (minor >= 35) is any(gate.needs for gate in known.values())

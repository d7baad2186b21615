"""The encodings keep their promises in the hands of the scheduler's allocator, on the committed cases."""

import json
from collections import Counter
from functools import cache

import pytest

from tests.conformance.dra import check, generator, golden, limits
from webhook.core.policy import Mode


def test_golden() -> None:
    counts: Counter[str] = Counter()
    for number, vector in enumerate(golden.vectors()):
        each = check.subject(vector["case"])
        asked = golden.digest(each.questions)
        assert asked == vector["asked"], f"case {number}: other claims come of it now: python -m tests.conformance.dra.golden"
        assert list(check.faults(each, vector["answers"], counts)) == [], json.dumps(vector["case"])
    tested = ("preferred: could be aligned", "preferred: could not", "required: could be aligned", "required: could not")
    assert all(counts[name] >= 50 for name in (*tested, "aligned: yes", "aligned: no", "plain: no"))
    assert all(counts[f"{word}: created"] >= 20 for word in ("required", "preferred"))


def _vector(mode: str) -> dict:
    """A case in which the mode's claim is aligned on one of several NUMA nodes of an idle node."""
    for vector in golden.vectors():
        found = vector["answers"][0]["allocations"]
        groups = [answer["fits"] for name, answer in found.items() if " on " in name]
        if mode in found and len(groups) > 1 and any(groups):
            return vector
    raise AssertionError(f"no case with {mode}")


@pytest.mark.parametrize("mode", check.MODES)
def test_a_placement_lost_is_a_fault(mode: str) -> None:
    vector = _vector(mode)
    vector["answers"][0]["allocations"][mode] = {"fits": False}
    assert list(check.faults(check.subject(vector["case"]), vector["answers"], Counter()))


def test_an_alignment_missed_is_a_fault() -> None:
    vector = _vector("best-effort")
    each = check.subject(vector["case"])
    attribute = each.plans[Mode.BEST_EFFORT].attribute
    result = vector["answers"][0]["allocations"]["best-effort"]["results"]
    devices = {device.key: device for device in each.inventory.nodes[vector["case"]["nodes"][0]]}
    value = devices[tuple(result[0][1:])].published(attribute)
    other = next(device for device in devices.values() if device.published(attribute) != value)
    result[0][1:] = other.key
    assert any("not aligned" in fault for fault in check.faults(each, vector["answers"], Counter()))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"invalid": "spec.devices: Invalid"}, "is invalid: spec.devices: Invalid"),
        ({"dropped": True}, "is not stored as changed"),
    ],
)
def test_what_the_api_server_does_not_take_is_a_fault(answer: dict, says: str) -> None:
    vector = _vector("best-effort")
    vector["answers"][0]["created"]["best-effort"] = answer
    found = list(check.faults(check.subject(vector["case"]), vector["answers"], Counter()))
    assert found == [f"best-effort claim {says}"]


@cache
def _changed() -> tuple[dict, ...]:
    cases = [*limits.CASES, *(vector["case"] for vector in golden.vectors())]
    return tuple(claim["spec"]["devices"] for case in cases for claim in check.subject(case).changed.values())


def test_limits_are_kept() -> None:
    for devices in _changed():
        names = {each["name"] for each in devices["requests"]}
        names |= {f"{each['name']}/{way['name']}" for each in devices["requests"] for way in each.get("firstAvailable", ())}
        named = [entry["requests"] for entry in (*devices["constraints"], *devices.get("config", ())) if entry.get("requests")]
        assert max(map(len, (devices["requests"], devices["constraints"], devices.get("config", ()), *named))) <= limits.MOST
        assert all(len(set(each)) == len(each) and names.issuperset(each) for each in named)


def test_limits_are_reached() -> None:
    sizes = [(len(each["requests"]), len(each["constraints"]), len(each.get("config", ()))) for each in _changed()]
    assert [max(each) for each in zip(*sizes, strict=True)] == [limits.MOST, limits.MOST - 1, limits.MOST]
    named = [len(entry.get("requests", ())) for each in _changed() for entry in (*each["constraints"], *each.get("config", ()))]
    assert max(named) == limits.MOST


def test_a_case_depends_on_its_seed_and_number_alone() -> None:
    assert generator.case(7, 3) == list(generator.cases(7, 4))[3]
    assert len({json.dumps(case) for case in generator.cases(7, 20)}) == 20

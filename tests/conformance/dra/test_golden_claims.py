"""The encodings keep their promises in the hands of the scheduler's allocator, on the committed cases."""

import json
from collections import Counter

import pytest

from tests.conformance.dra import check, generator, golden


def test_golden() -> None:
    counts: Counter[str] = Counter()
    for number, vector in enumerate(golden.vectors()):
        each = check.subject(vector["case"])
        asked = golden.digest(list(check.questions(each)))
        assert asked == vector["asked"], f"case {number}: other claims come of it now: python -m tests.conformance.dra.golden"
        assert list(check.faults(each, vector["answers"], counts)) == [], json.dumps(vector["case"])
    tested = ("preferred: could be aligned", "preferred: could not", "required: could be aligned", "required: could not")
    assert all(counts[name] >= 50 for name in (*tested, "aligned: yes", "aligned: no", "plain: no", "valid"))


def _vector(word: str) -> dict:
    """A case in which the word's claim is aligned on one of several NUMA nodes of an idle node."""
    for vector in golden.vectors():
        found = vector["answers"][0]["allocations"]
        groups = [answer["fits"] for name, answer in found.items() if " on " in name]
        if word in found and len(groups) > 1 and any(groups):
            return vector
    raise AssertionError(f"no case with {word}")


@pytest.mark.parametrize("word", ["required", "preferred"])
def test_a_placement_lost_is_a_fault(word: str) -> None:
    vector = _vector(word)
    vector["answers"][0]["allocations"][word] = {"fits": False}
    assert list(check.faults(check.subject(vector["case"]), vector["answers"], Counter()))


def test_an_alignment_missed_is_a_fault() -> None:
    vector = _vector("preferred")
    each = check.subject(vector["case"])
    result = vector["answers"][0]["allocations"]["preferred"]["results"]
    devices = {(d.driver, d.pool, d.name): d for d in each.inventory.nodes[vector["case"]["nodes"][0]]}
    value = devices[tuple(result[0][1:])].published(each.best_effort.attribute)
    other = next(d for d in devices.values() if d.published(each.best_effort.attribute) != value)
    result[0][1:] = [other.driver, other.pool, other.name]
    assert any("not aligned" in fault for fault in check.faults(each, vector["answers"], Counter()))


def test_what_is_invalid_is_a_fault() -> None:
    vector = _vector("preferred")
    vector["answers"][0]["invalid"] = {"preferred": "spec.devices: Invalid"}
    assert list(check.faults(check.subject(vector["case"]), vector["answers"], Counter())) == [
        "preferred claim is invalid: spec.devices: Invalid"
    ]


def test_a_case_depends_on_its_seed_and_number_alone() -> None:
    assert generator.case(7, 3) == list(generator.cases(7, 4))[3]
    assert len({json.dumps(case) for case in generator.cases(7, 20)}) == 20

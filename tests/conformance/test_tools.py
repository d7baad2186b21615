"""The comparison's own parts: a difference must be seen as one, and shrinking must keep it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import generator, summary
from tests.conformance.compare import Agreement, Answer, compare, difference
from tests.conformance.run import Report
from tests.conformance.shrink import shrink

JSON = dict[str, Any]

ADMITTED: JSON = {"start": None, "admitted": True, "reason": "", "masks": {"a": [0]}, "aligned": True, "certain": True}


def test_a_case_depends_on_its_seed_and_number_alone() -> None:
    first, again = (list(generator.cases(7, 20)) for _ in range(2))
    assert first == again
    assert generator.case(7, 13) == first[13]
    assert len({json.dumps(case) for case in first}) == 20


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({}, ""),
        ({"start": "no CPUs reserved"}, "start"),
        ({"admitted": False, "reason": "TopologyAffinityError"}, "admitted"),
        ({"reason": "SMTAlignmentError"}, "reason"),
        ({"masks": {"a": [1]}}, "masks"),
        ({"masks": {"a": None}}, "masks"),
        ({"aligned": False}, "aligned"),
        ({"certain": False}, "certain"),
    ],
)
def test_difference(changed: JSON, what: str) -> None:
    theirs = ADMITTED | changed
    assert difference(Answer(ADMITTED), theirs) == what
    assert compare(Answer(ADMITTED), theirs) is (Agreement.DIFFERENT if what else Agreement.SAME)


@pytest.mark.parametrize(
    ("ours", "theirs", "agreement"),
    [
        (Answer({}, no_class="spec: is required"), ADMITTED, Agreement.NO_CLASS),
        (Answer({}), ADMITTED, Agreement.DIFFERENT),
        (Answer(ADMITTED, unknown="too many masks"), ADMITTED, Agreement.DIFFERENT),
        (Answer(ADMITTED | {"certain": False}), ADMITTED | {"certain": False, "aligned": False}, Agreement.CHANCE),
        (Answer(ADMITTED | {"certain": False}), ADMITTED, Agreement.MAYBE),
        (Answer(ADMITTED), ADMITTED | {"reason": "KubeletPanic", "timedOut": True}, Agreement.SLOW),
        (Answer(ADMITTED | {"start": "this"}), ADMITTED | {"start": "that"}, Agreement.NO_START),
    ],
)
def test_agreement(ours: Answer, theirs: JSON, agreement: Agreement) -> None:
    assert compare(ours, theirs) is agreement


def test_shrinking_keeps_the_kind_of_difference() -> None:
    case = generator.case(1, 0)
    assert "topologyManagerScope" in case["nodeClass"]["spec"]["kubelet"]

    def differences(cases: list[JSON]) -> list[str]:
        return ["masks" if "topologyManagerScope" in one["nodeClass"]["spec"].get("kubelet", {}) else "crash" for one in cases]

    small = shrink(case, differences)
    assert set(small["nodeClass"]["spec"]) == {"selector", "kubernetes", "kubelet"}
    assert set(small["nodeClass"]["spec"]["kubelet"]) == {"topologyManagerScope"}
    assert small["pod"]["spec"] == {}


def test_a_summary_adds_up_runs_and_does_not_hide_a_difference(tmp_path: Path) -> None:
    files = []
    for minor, admitted in ((37, True), (37, False), (36, True)):
        report = Report(minor)
        for number in range(3):
            report.add(number, generator.case(1, 0), Answer(ADMITTED), ADMITTED | {"admitted": admitted or number > 0})
        files.append(tmp_path / f"{len(files)}.json")
        files[-1].write_text(json.dumps(report.counts(seed=1)))
    header, _, *rows = summary.table(summary.read(files)).splitlines()
    assert header == "| policy, scope | 1.37 | 1.36 |"
    assert rows[-1] == "| all | 6, 1 differ | 3 |"

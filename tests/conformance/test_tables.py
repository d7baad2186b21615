"""The model gives the verdicts of the tables, which the kubelet's own managers have confirmed."""

import pytest

from tests.conformance import tables
from tests.conformance.compare import ask_model

CASES = list(tables.cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verdict(case: tables.Case) -> None:
    answer = ask_model({"nodeClass": case.node_class, "pod": case.pod})
    assert not answer.no_class
    verdict = answer.verdict
    assert (verdict["start"] is None, verdict["admitted"], verdict["reason"]) == (case.starts, case.admitted, case.reason)
    assert verdict["masks"] == (case.masks if case.admitted else {})
    assert verdict["certain"]

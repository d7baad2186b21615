"""The reference tables: pods on reference machines, with the verdicts that the kubelet's own managers give."""

from functools import cache
from json import dumps, loads

import pytest

from tests.conformance.tables import Case, cases
from webhook.config.load import parse_class
from webhook.core.kubelet.admit import judge
from webhook.core.kubelet.node import NodeKubelet, compile_class

CASES = tuple(cases())


@cache
def compiled(document: str) -> NodeKubelet:
    node_class, errors = parse_class(loads(document))
    assert node_class is not None, errors
    return compile_class(node_class)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_verdict(case: Case):
    verdict = judge(compiled(dumps(case.node_class)), case.pod)

    assert (verdict.start is None) is case.starts
    if case.starts:
        assert (verdict.admitted, verdict.reason) == (case.admitted, case.reason)
    if case.admitted:
        assert {name: None if mask is None else list(mask) for name, mask in verdict.masks.items()} == case.masks
    assert verdict.certain

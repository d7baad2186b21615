"""The model gives the verdicts that the kubelet's own managers gave on the committed cases, minor by minor."""

import json

import pytest

from tests.conformance import golden
from tests.conformance.compare import VERSIONS, ask_model, describe, difference


@pytest.mark.parametrize("minor", VERSIONS)
def test_golden(minor: int) -> None:
    wrong = []
    for number, vector in enumerate(golden.vectors(minor)):
        answer = ask_model(vector)
        what = "class refused" if answer.no_class else difference(answer, vector["verdict"])
        if what:
            wrong.append(f"vector {number}: {what}\n{describe(answer, vector['verdict'])}\n{json.dumps(vector)}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n\n".join(wrong[:3])

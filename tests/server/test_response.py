from __future__ import annotations

import base64
import json

from webhook.core.decision import Cause, Decision
from webhook.core.policy import Mode
from webhook.server import response

PATCH = ({"op": "add", "path": "/metadata/annotations", "value": {"a": "ä"}},)


def decision(**fields: object) -> Decision:
    return Decision(**({"allowed": True, "mode": Mode.STRICT, "outcome": "allowed"} | fields))  # type: ignore[arg-type]


def test_allowed() -> None:
    assert json.loads(response.encode("7", decision(), may_patch=True)) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "7", "allowed": True},
    }


def test_patch_comes_with_its_type() -> None:
    built = response.build("7", decision(patch=PATCH), may_patch=True)
    assert built["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(built["patch"])) == list(PATCH)


def test_a_validating_webhook_never_patches() -> None:
    assert response.build("7", decision(patch=PATCH), may_patch=False) == {"uid": "7", "allowed": True}


def test_a_refusal_never_patches() -> None:
    assert "patch" not in response.build("7", decision(patch=PATCH, allowed=False), may_patch=True)


def test_refusal() -> None:
    causes = (Cause("spec.containers[0].resources.limits[nvidia.com/gpu]", "TopologyAffinityError", "now 8, use 4"),)
    built = response.build("7", decision(allowed=False, message="no class\n  a: b", causes=causes), may_patch=False)
    assert built["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": "no class\n  a: b",
        "details": {"causes": [{"reason": causes[0].reason, "message": "now 8, use 4", "field": causes[0].field}]},
    }


def test_warnings_come_once_on_one_line_and_short() -> None:
    assert response.warnings(["a\nb\x00\tc ", "a b c", "x" * 200]) == ["a b c", "x" * 118 + "…"]


def test_warnings_stay_in_the_budget_of_the_api_server() -> None:
    kept = response.warnings(f"{number:03} " + "ü" * 100 for number in range(100))
    assert sum(map(len, kept)) <= response.WARNINGS_BUDGET
    assert len(kept) > 30
    assert "more warnings" in kept[-1]


def test_audit_annotations_have_valid_keys() -> None:
    keys = ["verdict", "a/b c", "-x-", "", "k" * 80]
    found = response.audit_annotations(dict.fromkeys(keys, "v"))
    assert list(found) == ["verdict", "a-b-c", "x", "unnamed", "k" * 63]

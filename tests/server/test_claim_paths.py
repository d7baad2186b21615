"""The paths for claims: from the bytes of a review to the bytes of the answer."""

from __future__ import annotations

import base64
import json
from http import HTTPStatus

import jsonpatch
import pytest

from tests.unit.core.dra.claiming import GPU, NIC, NUMA, claim, inventory, on, request, snapshot
from webhook.server import review

KNOWN = snapshot(inventory(h100=[on(GPU, 0, 0, 1, 1), on(NIC, 0, 1)]))


def answer(path: str, made: object, operation: str = "CREATE") -> tuple[review.Answer, dict]:
    call = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u1",
            "operation": operation,
            "kind": {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"},
            "namespace": "research",
            "object": made,
        },
    }
    found = review.answer(path, json.dumps(call).encode(), KNOWN)
    assert found.status is HTTPStatus.OK
    return found, json.loads(found.body)["response"]


@pytest.mark.parametrize("label", ["strict", "default"])
def test_a_claim_is_changed(label: str) -> None:
    made = claim(request("gpu", 2), request("nic"))
    _, response = answer(f"/mutate/resourceclaims/{label}", made)
    after = jsonpatch.apply_patch(made, base64.b64decode(response["patch"]).decode())
    assert after["spec"]["devices"]["constraints"] == [{"matchAttribute": NUMA, "requests": ["gpu", "nic"]}]


def test_a_claim_written_by_hand_is_refused() -> None:
    _, response = answer("/validate/resourceclaims/strict", claim(request("gpu", 3), owned=False))
    assert response["allowed"] is False
    assert "at most 2 share one" in response["status"]["message"]


@pytest.mark.parametrize("made", [None, [], {"kind": "Pod"}, {"kind": "ResourceClaim", "spec": 1}, {"kind": "ResourceClaim"}])
@pytest.mark.parametrize("verb", ["mutate", "validate"])
def test_what_cannot_be_read_is_allowed(verb: str, made: object) -> None:
    found, response = answer(f"/{verb}/resourceclaims/strict", made)
    assert response["allowed"] is True
    assert found.error is None


def test_a_claim_that_exists_is_nothing_to_decide_on() -> None:
    _, response = answer("/validate/resourceclaims/strict", claim(request("gpu", 3), owned=False), "UPDATE")
    assert response["allowed"] is True

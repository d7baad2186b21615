"""What the webhook makes of claims is what a real API server stores, at the API's limits, too."""

import pytest

from tests.conformance.dra import check, golden, limits

PATH = "/apis/resource.k8s.io/v1/namespaces/changed-claims/resourceclaims"


def changed():
    """Yield the changed claims of the golden cases and of those near the limits."""
    cases = [*limits.CASES, *(vector["case"] for vector in golden.vectors())]
    for number, case in enumerate(cases):
        for mode, claim in check.subject(case).changed.items():
            yield claim | {"metadata": claim["metadata"] | {"name": f"c{number}-{mode}", "namespace": "changed-claims"}}


@pytest.fixture(scope="module", autouse=True)
def namespace(plane):
    plane.namespace("changed-claims", {"numalign.io/mode": "off"})


def test_changed_claims_are_created_as_they_are(plane):
    count = 0
    for claim in changed():
        stored = plane.api.create(PATH, claim, dryRun="All", fieldValidation="Strict")
        assert stored["spec"] == claim["spec"]
        assert stored["metadata"]["annotations"] == claim["metadata"]["annotations"]
        count += 1
    assert count > 200

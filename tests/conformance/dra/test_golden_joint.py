"""What is foreseen of a pod's claims is what the allocator does, on the committed cases."""

import json
from collections import Counter

from tests.conformance.dra import joint


def test_golden() -> None:
    counts: Counter[str] = Counter()
    for vector in joint.vectors():
        assert list(joint.faults(vector["case"], vector["answers"], joint.GOLDEN_MINOR, counts)) == [], json.dumps(vector["case"])
    assert all(counts[name] >= 50 for name in ("fits: yes", "fits: no", "fits: unknown", "first devices: foreseen"))


def test_other_devices_than_foreseen_are_a_fault() -> None:
    for vector in joint.vectors():
        results = vector["answers"][0]["allocations"]["written"].get("results")
        if results and "foreseen" in str(_counts(vector)):
            results[0][3] = "another"
            assert list(joint.faults(vector["case"], vector["answers"], joint.GOLDEN_MINOR, Counter()))
            return
    raise AssertionError("no such case")


def _counts(vector: dict) -> Counter[str]:
    counts: Counter[str] = Counter()
    one = {**vector["case"], "nodes": vector["case"]["nodes"][:1]}
    list(joint.faults(one, vector["answers"][:1], joint.GOLDEN_MINOR, counts))
    return Counter({name: count for name, count in counts.items() if name == "first devices: foreseen"})

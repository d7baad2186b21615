"""The pod as the API server stores it."""

from typing import Any

import pytest

from webhook.core.kubelet.contract import PodView, Refusal
from webhook.core.kubelet.view import view
from webhook.core.quantities import format_bytes, format_cpu, milli, value

JSON = dict[str, Any]


def pod(*containers: JSON, init: tuple[JSON, ...] = (), **spec: Any) -> JSON:
    named = [{"name": f"c{index}", "resources": resources} for index, resources in enumerate(containers)]
    inits = [{"name": f"i{index}", **container} for index, container in enumerate(init)]
    return {"spec": {"containers": named, "initContainers": inits, **spec}}


def stored(raw: JSON, minor: int = 37) -> PodView:
    found = view(raw, minor)
    assert isinstance(found, PodView), found
    return found


def text(amounts: Any) -> dict[str, str]:
    return {
        name: format_bytes(value(amount)) if name == "memory" or "huge" in name else format_cpu(milli(amount))
        for name, amount in amounts.items()
    }


def test_requests_come_from_limits():
    (found,) = stored(pod({"limits": {"cpu": "8", "memory": "64Gi"}, "requests": {"cpu": "2"}})).containers

    assert text(found.requests) == {"cpu": "2", "memory": "64Gi"}
    assert text(found.limits) == {"cpu": "8", "memory": "64Gi"}


def test_amounts_are_rounded_up_to_thousandths():
    (found,) = stored(pod({"limits": {"cpu": "100u", "memory": "1.5Gi"}})).containers

    assert text(found.requests) == {"cpu": "1m", "memory": "1536Mi"}


def test_null_is_zero_and_absent_blocks_are_empty():
    raw = {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": None}, "requests": None}}, {"name": "b"}]}}

    assert [dict(c.requests) for c in stored(raw).containers] == [{"cpu": 0}, {}]


EQUAL = {"limits": {"cpu": "1", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("minor", "resources", "requests", "limits"),
    [
        # the sum of the containers first, then the pod's own limit
        (36, {"limits": {"cpu": "4", "memory": "8Gi"}}, {"cpu": "2", "memory": "2Gi"}, {"cpu": "4", "memory": "8Gi"}),
        (37, {"limits": {"cpu": "4", "memory": "8Gi"}}, {"cpu": "2", "memory": "2Gi"}, {"cpu": "4", "memory": "8Gi"}),
        # up to 1.36 nothing is filled in without a pod-level limit; from 1.37 limits are, where every container has one
        (36, {"requests": {"cpu": "3"}}, {"cpu": "3"}, {}),
        (37, {"requests": {"cpu": "3"}}, {"cpu": "3", "memory": "2Gi"}, {"cpu": "3", "memory": "2Gi"}),
        (37, {"requests": {"cpu": "2"}}, {"cpu": "2", "memory": "2Gi"}, {"cpu": "2", "memory": "2Gi"}),
    ],
)
def test_pod_level_defaults(minor: int, resources: JSON, requests: dict[str, str], limits: dict[str, str]):
    found = stored(pod(EQUAL, EQUAL, resources=resources), minor)

    assert (text(found.requests), text(found.limits)) == (requests, limits)
    assert found.pod_level


def test_no_pod_level_limit_unless_every_container_has_one():
    found = stored(pod(EQUAL, {}, resources={"requests": {"cpu": "3"}}))

    assert text(found.limits) == {}


@pytest.mark.parametrize("minor", [34, 37])
def test_pod_level_pages_come_from_the_containers(minor: int):
    pages = {"limits": {"cpu": "1", "memory": "1Gi", "hugepages-1Gi": "2Gi"}}
    found = stored(pod(pages, EQUAL, resources={"limits": {"cpu": "4", "memory": "8Gi"}}), minor)

    assert text(found.limits)["hugepages-1Gi"] == text(found.requests)["hugepages-1Gi"] == "2Gi"


def test_pod_level_sum_counts_an_init_container_with_the_sidecars_before_it():
    sidecar = {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    init = {"resources": {"requests": {"cpu": "5"}}}
    found = stored(pod({"requests": {"cpu": "3"}}, init=(sidecar, init), resources={"limits": {"cpu": "9"}}))

    assert text(found.requests)["cpu"] == "6"


@pytest.mark.parametrize(
    ("minor", "resources", "expected"),
    [
        (36, {}, "BestEffort"),
        (37, {}, "Guaranteed"),
        (37, None, "Guaranteed"),
        (36, {"limits": {"cpu": "2", "memory": "8Gi"}, "requests": {"cpu": "2", "memory": "8Gi"}}, "Guaranteed"),
        (37, {"limits": {"cpu": "3", "memory": "8Gi"}}, "Burstable"),
    ],
)
def test_pod_level_resources_decide_the_class(minor: int, resources: JSON | None, expected: str):
    assert stored(pod(EQUAL, resources=resources), minor).qos == expected


def test_overhead_is_read():
    assert text(stored(pod(EQUAL, overhead={"cpu": "250m", "memory": "120Mi"})).overhead) == {"cpu": "250m", "memory": "120Mi"}


def test_what_cannot_be_decoded_is_invalid():
    found = view(pod({"limits": {"cpu": "eight"}}), 37)

    assert isinstance(found, Refusal)
    assert found.reason == "Invalid"
    assert found.message.startswith("spec.containers[0].resources.limits[cpu]:")


def test_blanks_around_an_amount_are_dropped():
    (found,) = stored(pod({"limits": {"cpu": " 8 "}})).containers

    assert text(found.limits) == {"cpu": "8"}


@pytest.mark.parametrize(
    ("amount", "value_read"),
    [
        ("9E", 9 * 10**18),
        ("20E", 0),
        ("1e20", 0),
        ("20Ei", 2**63 - 1),
        ("20000000000000000000", 0),  # 20E
        ("20000000000000000001", 20 * 10**18 + 1 - 2**64),
        ("9223372036854775808", -(2**63)),
    ],
)
def test_more_than_an_int64_holds_reads_as_nothing_or_as_its_lowest_bits(amount: str, value_read: int):
    (found,) = stored(pod({"limits": {"memory": amount}})).containers

    assert value(found.requests["memory"]) == value_read

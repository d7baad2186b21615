"""The lookup asks once, and never waits twice for an API server that does not answer."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.cluster.claims import DEADLINE, FOUND_SECONDS, MISSING_SECONDS, PAUSE_SECONDS, CachedLookup
from webhook.cluster.errors import ClusterError
from webhook.core.dra.references import LookupFailedError, Reference

TEMPLATE = Reference("gpus", "ResourceClaimTemplate", "t", 0)
CLAIM = Reference("gpus", "ResourceClaim", "c", 0)


class Api:
    """Answers in turn; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.calls = list(answers), []

    def call(self, method: str, path: str, *, seconds: float) -> Any:
        self.calls.append((method, path, seconds))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_object_is_read_once_a_minute_within_the_deadline() -> None:
    api, clock = Api({"a": 1}, {"a": 2}), Clock()
    lookup = CachedLookup(api, clock)
    assert [lookup.find("ns", TEMPLATE), lookup.find("ns", TEMPLATE)] == [{"a": 1}, {"a": 1}]
    assert api.calls == [("GET", "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaimtemplates/t", DEADLINE)]
    clock.now += FOUND_SECONDS
    assert lookup.find("ns", TEMPLATE) == {"a": 2}


def test_what_is_missing_is_asked_for_again_soon() -> None:
    api, clock = Api(ClusterError("gone", 404), {"a": 1}), Clock()
    lookup = CachedLookup(api, clock)
    assert [lookup.find("ns", CLAIM), lookup.find("ns", CLAIM)] == [None, None]
    clock.now += MISSING_SECONDS
    assert lookup.find("ns", CLAIM) == {"a": 1}
    assert api.calls[0][1].endswith("/resourceclaims/c")


@pytest.mark.parametrize("error", [ClusterError("not reached"), ClusterError("forbidden", 403)])
def test_after_a_failure_nobody_waits_for_a_while(error: ClusterError) -> None:
    api, clock = Api(error, {"a": 1}), Clock()
    lookup = CachedLookup(api, clock)
    for reference in (TEMPLATE, TEMPLATE, CLAIM):
        with pytest.raises(LookupFailedError):
            lookup.find("ns", reference)
    assert len(api.calls) == 1
    clock.now += PAUSE_SECONDS
    assert lookup.find("ns", TEMPLATE) == {"a": 1}


def test_what_is_known_is_served_while_the_server_is_silent() -> None:
    api, clock = Api({"a": 1}, ClusterError("not reached")), Clock()
    lookup = CachedLookup(api, clock)
    lookup.find("ns", TEMPLATE)
    with pytest.raises(LookupFailedError):
        lookup.find("ns", CLAIM)
    assert lookup.find("ns", TEMPLATE) == {"a": 1}


def test_an_answer_that_is_no_object() -> None:
    with pytest.raises(LookupFailedError):
        CachedLookup(Api(ValueError("no JSON"))).find("ns", CLAIM)


def test_many_references_are_read_within_one_deadline() -> None:
    """A sidecar that answers, but slowly: a pod of many claims would wait for each of them."""
    clock, names = Clock(), [Reference("gpus", "ResourceClaim", f"c{n}", n) for n in range(6)]

    class Slow(Api):
        def call(self, method: str, path: str, *, seconds: float) -> Any:
            clock.now += DEADLINE * 0.4
            return super().call(method, path, seconds=seconds)

    api = Slow(*[{"n": n} for n in range(6)])
    lookup = CachedLookup(api, clock)
    assert [lookup.find("ns", each) for each in names[:3]] == [{"n": 0}, {"n": 1}, {"n": 2}]
    for each in names[3:]:
        with pytest.raises(LookupFailedError, match="too long"):
            lookup.find("ns", each)
    assert [round(seconds / DEADLINE, 1) for _, _, seconds in api.calls] == [1.0, 0.6, 0.2]
    assert lookup.find("ns", names[0]) == {"n": 0}
    clock.now += 1.0
    assert lookup.find("ns", names[3]) == {"n": 3}

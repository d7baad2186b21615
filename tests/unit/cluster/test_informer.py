"""The informer: what is known after any sequence of events, and after anything that goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from webhook.cluster.errors import ClusterError
from webhook.cluster.informer import Informer

GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}


def named(name: str, version: str = "1") -> dict[str, Any]:
    return {"metadata": {"namespace": "team", "name": name, "resourceVersion": version}}


def listed(version: str, *items: Any) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}, "items": list(items)}


def event(kind: str, name: str = "", version: str = "1") -> dict[str, Any]:
    obj = named(name, version) if name else {"metadata": {"resourceVersion": version}}
    return {"type": kind, "object": obj}


class Api:
    """Plays lists and watches in turn; an exception is raised. The last watch stops the informer."""

    def __init__(self, lists: list[Any], watches: list[Any]) -> None:
        self.lists, self.watches, self.versions = lists, watches, []
        self.stop = threading.Event()

    def call(self, method: str, path: str, *, query: dict[str, str]) -> Any:
        assert (method, path, query) == ("GET", "/things", {"resourceVersion": "0"})
        found = self.lists.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def watch(self, path: str, version: str) -> Iterator[Any]:
        assert path == "/things"
        self.versions.append(version)
        events = self.watches.pop(0)
        if not self.watches:
            self.stop.set()
        for each in events:
            if isinstance(each, Exception):
                raise each
            yield each


class World:
    def __init__(self, lists: list[Any], watches: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        self.known: list[list[str]] = []
        self.failures: list[str] = []
        self.pauses: list[float] = []
        api = Api(lists, watches)
        monkeypatch.setattr(api.stop, "wait", self.pauses.append)
        self.versions = api.versions
        informer = Informer(api, "/things", self._changed, lambda error: self.failures.append(str(error)))
        informer.run(api.stop)

    def _changed(self, items: tuple[Any, ...]) -> None:
        self.known.append([each["metadata"]["name"] for each in items])


def test_a_list_and_what_happens_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event("ADDED", "b", "6"), event("MODIFIED", "a", "7"), event("DELETED", "a", "8"), event("DELETED", "x", "9")]
    world = World([listed("5", named("a"))], [events], monkeypatch)
    assert world.known == [["a"], ["a", "b"], ["a", "b"], ["b"], ["b"]]
    assert (world.versions, world.failures) == (["5"], [])


def test_a_watch_that_ends_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World([listed("5")], [[event("ADDED", "a", "6")], [event("BOOKMARK", version="9")], []], monkeypatch)
    assert world.versions == ["5", "6", "9"]
    assert world.known == [[], ["a"]]


def test_where_the_api_server_forgot_everything_is_listed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no failure, it is what API servers do."""
    world = World([listed("5", named("a")), listed("70", named("b"))], [[GONE], []], monkeypatch)
    assert (world.known, world.versions, world.failures) == ([["a"], ["b"]], ["5", "70"], [])


def test_a_failure_keeps_what_is_known_and_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, forbidden = ClusterError("connection reset"), ClusterError("forbidden", 403)
    world = World(
        [listed("5", named("a")), forbidden, forbidden, listed("9", named("b")), listed("10")],
        [[broken], [broken], []],
        monkeypatch,
    )
    assert world.known == [["a"], ["b"], []]
    assert world.failures == ["connection reset", "connection reset"]
    assert world.pauses == [2.0, 4.0, 8.0, 2.0]


def test_pauses_grow_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World([*[ClusterError("away")] * 7, listed("1")], [[]], monkeypatch)
    assert world.pauses == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert world.failures == ["away"]


@pytest.mark.parametrize(
    "answer", [{}, {"metadata": {}}, {"items": [{}]}, listed("1", {"metadata": None}), ValueError("no JSON")]
)
def test_an_answer_that_is_no_list_is_a_failure(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    world = World([answer, listed("1", named("a"))], [[]], monkeypatch)
    assert world.known[-1] == ["a"]
    assert (len(world.failures), world.pauses) == (1, [2.0])


@pytest.mark.parametrize("event", [{}, {"type": "ADDED"}, {"type": "ADDED", "object": {}}, ValueError("no JSON")])
def test_an_event_that_is_none_is_a_failure(monkeypatch: pytest.MonkeyPatch, event: Any) -> None:
    world = World([listed("1", named("a")), listed("2", named("b"))], [[event], []], monkeypatch)
    assert world.known[-1] == ["b"]
    assert len(world.failures) == 1

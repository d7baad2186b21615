"""Objects of one kind, all namespaces, as the API server tells of them: one list, then a watch that never ends.

Whatever goes wrong, what is known stays, and everything is listed anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol

from webhook.cluster.errors import ClusterError
from webhook.core.dra.devices import Json

PAUSE_SECONDS: Final = 2.0
LONGEST_PAUSE_SECONDS: Final = 60.0


class Watched(Protocol):
    """The calls that are needed of `Api`."""

    def call(self, method: str, path: str, *, query: dict[str, str]) -> Json:
        """Return the object at a path; see `Api.call`."""
        ...

    def watch(self, path: str, version: str) -> Iterator[Json]:
        """Yield what happens from a version on; see `Api.watch`."""
        ...


@dataclass(slots=True)
class Informer:
    """Knows the objects of the collection at `path`.

    Attributes:
        changed: called, in the informer's thread, whenever they are others than before.
        failed: called with why a call failed or its answer cannot be read, once until one succeeds again.
    """

    api: Watched
    path: str
    changed: Callable[[tuple[Json, ...]], None]
    failed: Callable[[Exception], None]
    _known: dict[tuple[str, str], Json] = field(default_factory=dict)
    _pause: float = 0.0

    def run(self, stop: threading.Event) -> None:
        """Follow the collection until told to stop, which is noticed with the next event at the latest."""
        while not stop.is_set():
            try:
                self.follow(stop)
            except (ClusterError, KeyError, TypeError, ValueError) as error:  # the others: that was no answer of an API server
                if not self._pause and getattr(error, "status", None) != HTTPStatus.GONE:
                    self.failed(error)
                self._pause = min(self._pause * 2 or PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
                stop.wait(self._pause)

    def follow(self, stop: threading.Event) -> None:
        """List, then watch until told to stop.

        Raises:
            ClusterError: a call failed, or the API server has forgotten where we were.
        """
        version = self._list()
        self._pause = 0.0
        while not stop.is_set():
            for event in self.api.watch(self.path, version):
                version = self._take(event)

    def _list(self) -> str:
        """Take everything there is, from the API server's cache, which is what a watch goes on from."""
        listed = self.api.call("GET", self.path, query={"resourceVersion": "0"})
        self._known = {_key(item): item for item in listed.get("items") or ()}
        self._tell()
        return str(listed["metadata"]["resourceVersion"])

    def _take(self, event: Json) -> str:
        """Take one event and return the version from which to go on."""
        item, kind = event["object"], event["type"]
        if kind == "ERROR":
            raise ClusterError(str(item.get("message")), int(item.get("code") or 0))
        if kind == "DELETED":
            self._known.pop(_key(item), None)
        elif kind != "BOOKMARK":
            self._known[_key(item)] = item
        if kind != "BOOKMARK":
            self._tell()
        return str(item["metadata"]["resourceVersion"])

    def _tell(self) -> None:
        self.changed(tuple(item for _, item in sorted(self._known.items())))


def _key(item: Json) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]

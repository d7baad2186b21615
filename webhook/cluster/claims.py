"""Claims and templates that pods refer to, read by the sidecar within a deadline and remembered for a while.

A pod that is being created waits for this. So an answer that does not come soon is none, and after one that did not come nobody
is asked for some seconds.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock, local
from typing import Final

from webhook.cluster.errors import ClusterError
from webhook.cluster.relay import Reader
from webhook.core.dra.devices import Json
from webhook.core.dra.references import TEMPLATE, LookupFailedError, Reference

DEADLINE: Final = 0.3
"""For all that one pod refers to: a thread spends no longer than this on reading in any second."""

FOUND_SECONDS: Final = 60.0
"""Specs of claims and templates are immutable; only an object that was made anew under its name differs."""

MISSING_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 5.0
_REMEMBERED: Final = 4096
_WINDOW: Final = 1.0


@dataclass(slots=True)
class CachedLookup:
    """A `Lookup`. Thread-safe."""

    api: Reader
    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[tuple[str, str, str], tuple[float, Json | None]] = field(default_factory=OrderedDict)
    _silent_until: float = 0.0
    _lock: Lock = field(default_factory=Lock)
    _spent: local = field(default_factory=local)

    def find(self, namespace: str, reference: Reference) -> Json | None:
        """Return the object, None where there is none.

        Raises:
            LookupFailedError: the API server did not say so in time, or does not let us read it.
        """
        key, now = (namespace, reference.kind, reference.name), self.clock()
        with self._lock:
            until, found = self._known.get(key, (0.0, None))
            if now < until:
                return found
            if now < self._silent_until:
                raise LookupFailedError("the API server did not answer a moment ago")
        found = self._within_deadline(namespace, reference)
        with self._lock:
            self._known[key] = (now + (MISSING_SECONDS if found is None else FOUND_SECONDS), found)
            self._known.move_to_end(key)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found

    def _within_deadline(self, namespace: str, reference: Reference) -> Json | None:
        mine, started = self._spent.__dict__, self.clock()
        if started - mine.get("since", -_WINDOW) >= _WINDOW:
            mine |= {"since": started, "seconds": 0.0}
        if mine["seconds"] >= DEADLINE:
            raise LookupFailedError("reading the claims before it took too long")
        try:
            return self._read(namespace, reference, DEADLINE - mine["seconds"])
        finally:
            mine["seconds"] += self.clock() - started

    def _read(self, namespace: str, reference: Reference, seconds: float) -> Json | None:
        try:
            return self.api.call("GET", path(namespace, reference.kind, reference.name), seconds=seconds)
        except ClusterError as error:
            if error.is_missing:
                return None
            with self._lock:
                self._silent_until = self.clock() + PAUSE_SECONDS
            raise LookupFailedError(str(error)[:80]) from error
        except ValueError as error:
            raise LookupFailedError("what the API server answered is no object") from error


def path(namespace: str, kind: str, name: str) -> str:
    """Return where the API server has a claim or a template."""
    resource = "resourceclaimtemplates" if kind == TEMPLATE else "resourceclaims"
    return f"/apis/resource.k8s.io/v1/namespaces/{namespace}/{resource}/{name}"

"""A bounded memory of results, safe to share between threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """The `limit` results used last. Two threads may compute the same one at once; both results are right."""

    __slots__ = ("_kept", "_limit", "_lock")

    def __init__(self, limit: int) -> None:
        """Take the number of results to keep."""
        self._limit = limit
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result for `key`, made by `make` where it is not known yet."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return made

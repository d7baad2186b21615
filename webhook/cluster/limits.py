"""The cluster's LimitRanges, as a file for the server, which has no credentials to read them itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from webhook.cluster.files import replace
from webhook.cluster.informer import Informer, Watched
from webhook.core.dra.devices import Json
from webhook.core.limitranges import CONTAINER, MAX, MIN, POD, RATIO

PATH: Final = "/api/v1/limitranges"
WRITE_SECONDS: Final = 0.5
"""Between two writes: a cluster that is being set up makes hundreds of LimitRanges at once."""

Failed = Callable[[Exception], None]


class LimitsFile:
    """Keeps a file with the LimitRanges that there are. What could not be read or written is told, and tried again."""

    def __init__(self, api: Watched, file: Path, failed: Failed) -> None:
        """Nothing is read or written before `start`; `failed` is called from other threads then."""
        self._file, self._failed = file, failed
        self._informer = Informer(api, PATH, self._take, failed)
        self._text, self._changed = "", threading.Event()

    def start(self) -> None:
        """Follow the cluster in threads that end with the process."""
        threading.Thread(target=self._informer.run, args=(threading.Event(),), name="limit-ranges", daemon=True).start()
        threading.Thread(target=self._keep_writing, name="limits-file", daemon=True).start()

    def _take(self, ranges: tuple[Json, ...]) -> None:
        self._text = listing(ranges)
        self._changed.set()

    def _keep_writing(self) -> None:
        pause = threading.Event()
        while self._changed.wait():
            self._changed.clear()
            try:
                replace(self._file, self._text)
            except OSError as error:
                self._failed(error)
                self._changed.set()
            pause.wait(WRITE_SECONDS)


def listing(ranges: Iterable[Json]) -> str:
    """Return a List of the LimitRanges that bound pods or containers, with their bounds alone."""
    items = [bare for each in ranges if (bare := _bare(each))["spec"]["limits"]]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, separators=(",", ":"), sort_keys=True)


def _bare(limit_range: Json) -> Json:
    limits = [
        {key: item[key] for key in ("type", MIN, MAX, RATIO) if key in item}
        for item in (limit_range.get("spec") or {}).get("limits") or ()
        if item.get("type") in {CONTAINER, POD} and any(item.get(key) for key in (MIN, MAX, RATIO))
    ]
    metadata = {key: limit_range["metadata"][key] for key in ("namespace", "name")}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": limits}}

"""The file of the cluster's LimitRanges: written by the sidecar, read by the server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webhook.cluster.limits import LimitsFile, listing
from webhook.config.limits import load_limits

ITEM = {"type": "Pod", "max": {"cpu": "6"}, "default": {"cpu": "1"}}
METADATA = {"namespace": "team", "name": "bounds", "resourceVersion": "1", "managedFields": [{}]}
RANGE = {"metadata": METADATA, "spec": {"limits": [ITEM, {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}}


def test_only_bounds_are_kept() -> None:
    storage = {"metadata": METADATA, "spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}}
    defaults = {"metadata": METADATA, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {}}]}}
    (item,) = json.loads(listing([RANGE, storage, defaults, {"metadata": METADATA}]))["items"]
    assert item["metadata"] == {"namespace": "team", "name": "bounds"}
    assert item["spec"] == {"limits": [{"type": "Pod", "max": {"cpu": "6"}}]}


class Api:
    """One list, then events until the test ends."""

    def __init__(self) -> None:
        self.listed, self.more = [RANGE], threading.Event()

    def call(self, method: str, path: str, *, query: dict[str, str]) -> Any:
        assert (method, path, query) == ("GET", "/api/v1/limitranges", {"resourceVersion": "0"})
        return {"metadata": {"resourceVersion": "1"}, "items": self.listed}

    def watch(self, path: str, version: str) -> Iterator[Any]:
        assert (path, version) == ("/api/v1/limitranges", "1")
        self.more.wait()
        self.more.clear()
        yield {"type": "DELETED", "object": RANGE}
        threading.Event().wait()


def wait_for(file: Path, namespaces: set[str]) -> None:
    seen = threading.Event()
    for _ in range(500):
        if file.exists() and set(load_limits(file)[0] or ()) == namespaces:
            return
        seen.wait(0.01)
    raise AssertionError(f"{file} never told of {namespaces}")


def test_the_file_follows_the_cluster(tmp_path: Path) -> None:
    api, file, failures = Api(), tmp_path / "limits.json", []
    LimitsFile(api, file, failures.append).start()
    wait_for(file, {"team"})
    api.more.set()
    wait_for(file, set())
    assert failures == []


def test_a_directory_that_is_not_there_yet_is_told_and_tried_again(tmp_path: Path) -> None:
    told = threading.Event()
    LimitsFile(Api(), tmp_path / "later" / "limits.json", lambda _: told.set()).start()
    assert told.wait(10)
    (tmp_path / "later").mkdir()
    wait_for(tmp_path / "later" / "limits.json", {"team"})

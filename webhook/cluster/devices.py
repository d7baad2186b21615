"""The cluster's DeviceClasses and ResourceSlices, as a file for the server, which has no credentials to read them itself.

Nodes with the same devices are written once. The file is replaced as a whole, and only when it says something new: the server
loads everything anew each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from webhook.cluster.api import Api, Json
from webhook.cluster.errors import ClusterError
from webhook.cluster.files import replace
from webhook.core.dra.devices import distinct
from webhook.core.dra.slices import class_problems, devices_by_node, spec_problems

MAX_BYTES: Final = 7 * 1024**2
"""Less than what the server takes for one file."""

_GROUP: Final = "/apis/resource.k8s.io/v1"
_KINDS: Final = {"DeviceClass": "deviceclasses", "ResourceSlice": "resourceslices"}


def write(api: Api, file: Path) -> bool:
    """Write what the cluster publishes; tell whether that was new.

    Raises:
        ClusterError: a call failed, or it is too much for a file; the file is as it was.
        OSError: it cannot be written.
    """
    text = listing(_list(api, "DeviceClass"), _list(api, "ResourceSlice"))
    if len(text) > MAX_BYTES:
        raise ClusterError(f"the cluster's devices take {len(text)} bytes, and at most {MAX_BYTES} are read")
    return replace(file, text)


def listing(classes: Iterable[Json], slices: Iterable[Json]) -> str:
    """Return a List of the objects that can be read, without what changes for no reason of ours."""
    known = [each for each in slices if not any(spec_problems(each.get("spec")))]
    items = [*(_bare(each, "DeviceClass") for each in classes if not any(class_problems(each))), *_telling(known)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, separators=(",", ":"), sort_keys=True)


def _telling(slices: Iterable[Json]) -> Iterator[Json]:
    """Yield the slices of one node of each kind, and those of no node."""
    ordered = sorted(slices, key=lambda each: str((each.get("metadata") or {}).get("name")))
    kept = distinct(devices_by_node(each["spec"] for each in ordered)).keys()
    for each in ordered:
        node = each["spec"].get("nodeName")
        if not node or node in kept:
            yield _bare(each, "ResourceSlice")


def _bare(each: Mapping[str, Any], kind: str) -> Json:
    name = (each.get("metadata") or {}).get("name")
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": each.get("spec") or {}}


def _list(api: Api, kind: str) -> list[Json]:
    """Return all objects of a kind; none where the API server does not know it."""
    try:
        return list(api.get(f"{_GROUP}/{_KINDS[kind]}").get("items") or ())
    except ClusterError as error:
        if error.is_missing:
            return []
        raise

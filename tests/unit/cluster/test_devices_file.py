"""The file of the cluster's devices: what the server reads is what the cluster has, each kind of node once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.core.dra.claiming import GPU, on
from webhook.cluster import devices
from webhook.cluster.errors import ClusterError
from webhook.config.load import load_classes


class Api:
    def __init__(self, **found: Any) -> None:
        self.found = found

    def get(self, path: str) -> Any:
        answer = self.found[path.rpartition("/")[2]]
        if isinstance(answer, Exception):
            raise answer
        return {"items": answer}


def slice_of(node: str, *numa: int) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = on(GPU, *numa) | {"nodeName": node, "pool": pool}
    return {"metadata": {"name": f"{node}-gpu", "resourceVersion": "7"}, "spec": spec}


CLASS = {"metadata": {"name": "gpu", "uid": "1"}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}}


def test_the_server_reads_what_the_cluster_has(tmp_path: Path) -> None:
    file = tmp_path / "devices.json"
    api = Api(deviceclasses=[CLASS], resourceslices=[slice_of("b", 0, 1), slice_of("a", 0, 1), slice_of("c", 0, 0)])
    assert devices.write(api, file) is True  # type: ignore[arg-type]
    loaded = load_classes([file])
    assert loaded.errors == ()
    assert sorted(loaded.inventory.nodes) == ["a", "c"]
    assert loaded.inventory.classes["gpu"].selectors == ("true",)


def test_nothing_is_written_where_nothing_of_ours_changed(tmp_path: Path) -> None:
    file, api = tmp_path / "devices.json", Api(deviceclasses=[CLASS], resourceslices=[slice_of("a", 0)])
    devices.write(api, file)  # type: ignore[arg-type]
    inode = file.stat().st_ino
    touched = slice_of("a", 0)
    touched["metadata"]["resourceVersion"] = "8"
    assert devices.write(Api(deviceclasses=[CLASS], resourceslices=[touched]), file) is False  # type: ignore[arg-type]
    assert file.stat().st_ino == inode
    assert [each.name for each in tmp_path.iterdir()] == ["devices.json"]


def test_an_api_server_without_the_api_has_no_devices(tmp_path: Path) -> None:
    file, missing = tmp_path / "devices.json", ClusterError("no such resource", 404)
    devices.write(Api(deviceclasses=missing, resourceslices=missing), file)  # type: ignore[arg-type]
    assert load_classes([file]).inventory.is_empty


def test_a_failed_call_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "devices.json"
    file.write_text("as it is")
    with pytest.raises(ClusterError):
        devices.write(Api(deviceclasses=[], resourceslices=ClusterError("forbidden", 403)), file)  # type: ignore[arg-type]
    assert file.read_text() == "as it is"


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "devices.json"
    odd = [{"metadata": {"name": "x"}, "spec": None}, {"spec": {"driver": 1}}, {}]
    devices.write(Api(deviceclasses=[{}, CLASS], resourceslices=[*odd, slice_of("a", 0)]), file)  # type: ignore[arg-type]
    loaded = load_classes([file])
    assert (loaded.errors, sorted(loaded.inventory.nodes)) == ((), ["a"])

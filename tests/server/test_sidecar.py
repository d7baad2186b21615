"""What the sidecar leaves for the server: LimitRanges in a file, claims behind a socket. Either may be late, or broken."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.server.reviews import encoded, pod
from tests.server.running import Running, post, started, until
from tls import selfsigned
from webhook.cluster.relay import Relay

MUTATE, VALIDATE = "/mutate/pods/strict", "/validate/pods/strict"


@pytest.fixture
def directory() -> Iterator[Path]:
    """A short path: sockets' names have at most 107 bytes."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture
def server(files: selfsigned.Files, policy: Path, directory: Path) -> Iterator[Running]:
    options = ("--limits-file", directory / "limits.json", "--lookup-claims", directory / "claims.sock")
    with started(files, "--policy", policy, "--reload-seconds", "0.05", *options) as running:
        yield running


def asked(server: Running, path: str, obj: dict[str, Any]) -> dict[str, Any]:
    with closing(server.connect()) as connection:
        answer, body = post(connection, path, encoded(obj))
    assert answer.status == 200
    return dict(json.loads(body)["response"])


def cpus(server: Running) -> int:
    """The CPUs that a pod with one GPU gets."""
    patch = json.loads(base64.b64decode(asked(server, MUTATE, pod())["patch"]))
    return next(int(each["value"]) for each in patch if each["path"].endswith("/limits/cpu"))


def write(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


def limits(most: int) -> str:
    spec = {"limits": [{"type": "Pod", "max": {"cpu": str(most)}}]}
    return json.dumps({"items": [{"metadata": {"namespace": "research", "name": "bounds"}, "spec": spec}]})


def test_limit_ranges_are_followed(server: Running, directory: Path) -> None:
    file, whole = directory / "limits.json", cpus(server)
    assert whole > 8
    write(file, limits(8))
    until(lambda: cpus(server) == 8)
    write(file, "{")
    server.event(lambda line: "LimitRanges stay as they were" in line.get("problem", ""))
    assert cpus(server) == 8
    assert server.plain("/readyz") == (200, "ok\n")
    write(file, limits(4))
    until(lambda: cpus(server) == 4)
    file.unlink()
    until(lambda: cpus(server) == whole)


def claiming() -> dict[str, Any]:
    """A pod with a claim from the template `gpus`, and nothing else."""
    made = pod(resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "gpus"}])
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
    return made


class Api:
    """A cluster with one template, of a claim of two GPUs."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def call(self, method: str, path: str, *, seconds: float) -> Any:
        assert (method, seconds) == ("GET", 5.0)
        self.asked.append(path)
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]
        return {"kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": {"requests": requests}}}}


def test_a_missing_sidecar_is_a_warning_and_a_new_one_is_found(server: Running, directory: Path) -> None:
    response = asked(server, VALIDATE, claiming())
    assert response["allowed"]
    assert "claims were not read, so not judged: ResourceClaimTemplate gpus" in response["warnings"][0]
    api = Api()
    with Relay(api, directory / "claims.sock", 5.0) as relay:
        relay.start()
        # for some seconds after a failure nobody is asked
        until(lambda: not any("not read" in warning for warning in asked(server, VALIDATE, claiming()).get("warnings", ())))
        relay.shutdown()
    assert api.asked == ["/apis/resource.k8s.io/v1/namespaces/research/resourceclaimtemplates/gpus"]

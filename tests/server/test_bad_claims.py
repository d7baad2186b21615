"""Whatever slices, classes, claims and templates say: an answer, and no refusal for what could not be read."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from flask.testing import FlaskClient

from tests.server.reviews import encoded
from tests.unit.core.dra.claiming import GPU, JSON, NIC, claim, device, on, request, spec
from tests.unit.core.setting import bare, m112, named
from webhook.config.live import Live
from webhook.core.dra.references import LookupFailedError, Reference
from webhook.server.app import create_app
from webhook.server.health import Drain
from webhook.server.metrics import Metrics

POLICY = """\
apiVersion: numalign.io/v1alpha1
kind: Policy
metadata: {name: test}
spec: {mode: strict, coverage: complete}
"""
MODES = ("strict", "best-effort", "audit", "default")

FOUR, TWO = on(GPU, 0, 0, 1, 1), on(NIC, 0, 1)
THREE_GPUS = (request("gpu", 3, "gpu.nvidia.com"), request("nic", 1, "dranet"))
ONE_AND_ONE = (request("gpu", 1, "gpu.nvidia.com"), request("nic", 1, "dranet"))


class Cluster:
    """What pods refer to; an exception is raised, None is not there."""

    def __init__(self) -> None:
        self.found: Any = None

    def find(self, _namespace: str, _reference: Reference, _deadline: float | None = None) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def typed(devices: JSON) -> JSON:
    """The class that drivers install looks at the type."""
    for each in devices["devices"]:
        each["attributes"][f"{GPU}/type"] = {"string": "gpu"}
    return devices


def serving(path: Path, slices: list[JSON], *objects: JSON, lookup: Cluster | None = None) -> FlaskClient:
    """A server that knows one node class with these slices."""
    known = named(m112({}), "h100", resourceSlices=slices)
    (path / "classes.yaml").write_text(yaml.safe_dump_all([known, *objects]))
    (path / "policy.yaml").write_text(POLICY)
    live = Live(path / "policy.yaml", [path / "classes.yaml"], lookup=lookup)
    assert live.status.ok, live.status.last_error
    return create_app(live, Metrics(), Drain(None)).test_client()


def answers(client: FlaskClient, obj: Any, resource: str = "resourceclaims") -> dict[str, JSON]:
    """What is answered to an object, by path."""
    found = {}
    for verb, mode in itertools.product(("mutate", "validate"), MODES):
        answer = client.post(f"/{verb}/{resource}/{mode}", data=encoded(obj), content_type="application/json")
        assert answer.status_code == 200
        found[f"{verb} {mode}"] = answer.get_json()["response"]
        assert "internal error" not in json.dumps(found)
    return found


def refusals(found: dict[str, JSON]) -> list[str]:
    return [path for path, response in found.items() if not response["allowed"]]


def test_what_is_read_and_certain_is_refused(tmp_path: Path) -> None:
    client = serving(tmp_path, [typed(FOUR), TWO])
    assert refusals(answers(client, claim(*THREE_GPUS, owned=False))) == ["validate strict", "validate default"]
    assert refusals(answers(client, claim(*THREE_GPUS))) == []


def _pool(generation: int, count: int) -> JSON:
    return {"pool": {"name": "p", "generation": generation, "resourceSliceCount": count}}


def _class(name: str, *expressions: Any) -> JSON:
    selectors = [{"cel": {"expression": each}} for each in expressions]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors},
    }


BROKEN = (
    "((",
    "device.driver ==",
    "",
    "no.such.thing(device)",
    "'text'",
    "device.attributes['x'].y == 1 ? true : 7",
    "true " * 4000,
)


@pytest.mark.parametrize(
    ("slices", "requests"),
    [
        ([], THREE_GPUS),
        ([typed(spec(GPU, device("a"), device("b"), device("c"))), TWO], THREE_GPUS),  # nobody says where it is
        ([typed(on(GPU, 0, None, 1, 1)), TWO], ONE_AND_ONE),
        ([typed(on(GPU, 0, 1)), spec(NIC, device("n", numa="0"), device("m", numa=1))], ONE_AND_ONE),  # texts among numbers
        ([typed(on(GPU, -1, -1, -1)), on(NIC, -1)], THREE_GPUS),
        ([typed(spec(GPU, device("a", numa=[0, 1]), device("b", numa=[0]))), TWO], ONE_AND_ONE),  # lists, behind a gate
        (
            [typed(on(GPU, 0, 0, 0, 1) | _pool(2, 1)), typed(FOUR | _pool(1, 1)), TWO],
            THREE_GPUS,
        ),  # an older generation is there, too
    ],
)
def test_slices(tmp_path: Path, slices: list[JSON], requests: tuple[JSON, ...]) -> None:
    client = serving(tmp_path, slices)
    for owned in (True, False):
        assert refusals(answers(client, claim(*requests, owned=owned))) == []


def test_a_device_class_that_is_not_there(tmp_path: Path) -> None:
    client = serving(tmp_path, [typed(FOUR), TWO])
    for name in ("no-such-class", "gpu.example.com", "", "x" * 300):
        for others in ((), (request("gpu", 3, "gpu.nvidia.com"),), ONE_AND_ONE):
            assert refusals(answers(client, claim(request("a", 3, name), *others, owned=False))) == []


@pytest.mark.parametrize("objects", [[], [_class("gpu.nvidia.com", "device.driver == 'gpu.nvidia.com'")]])
def test_slices_of_the_cluster(tmp_path: Path, objects: list[JSON]) -> None:
    """Those of nodes that no class describes: the pool is incomplete, or an old generation has what the new one has not."""
    there = {"nodeName": "n1"}
    slices = [
        on(GPU, 0, 1) | _pool(2, 3),
        on(GPU, 0) | _pool(2, 3),
        on(GPU, 0, 0, 0) | _pool(1, 1),
        {**TWO, "pool": {"name": "n"}},
    ]
    made = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"s{index}"}, "spec": each | there}
        for index, each in enumerate(slices)
    ]
    client = serving(tmp_path, [], *made, *objects)
    for owned in (True, False):
        assert refusals(answers(client, claim(*THREE_GPUS, owned=owned))) == []


@pytest.mark.parametrize("expression", BROKEN)
def test_expressions(tmp_path: Path, expression: str) -> None:
    """Nothing that could be without them is refused; what no device could make possible is, whatever they say."""
    selectors = [{"cel": {"expression": expression}}]
    client = serving(tmp_path, [typed(FOUR), TWO], _class("broken", expression), _class("half", "true", expression))
    possible = (
        (request("gpu", 3, "broken"),),
        (request("gpu", 3, "half"),),
        (request("gpu", 2, "gpu.nvidia.com", selectors=selectors), request("nic", 1, "dranet")),
        (request("gpu", 2, "gpu.nvidia.com"), request("nic", 1, "dranet", selectors=selectors)),
    )
    for requests, owned in itertools.product(possible, (True, False)):
        assert refusals(answers(client, claim(*requests, owned=owned))) == []
    answers(client, claim(*THREE_GPUS, request("more", 1, "broken"), owned=False))


@pytest.mark.parametrize("count", [32, 33, 400])
def test_many_requests(tmp_path: Path, count: int) -> None:
    client = serving(tmp_path, [typed(on(GPU, *[0] * 40)), TWO])
    many = [request(f"r{index}", 1, "gpu.nvidia.com") for index in range(count)]
    for owned in (True, False):
        assert refusals(answers(client, claim(*many, owned=owned))) == []
    assert refusals(answers(client, claim(*many, config=[{"requests": [each["name"] for each in many]}] * 32))) == []


def _pod() -> JSON:
    container = bare("main", None) | {"resources": {"claims": [{"name": "gpus"}]}}
    references = [{"name": "gpus", "resourceClaimTemplateName": "t"}, {"name": "more", "resourceClaimName": "c"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [container], "resourceClaims": references},
    }


def _template(**spec: Any) -> JSON:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": spec},
    }


@pytest.mark.parametrize(
    "found",
    [
        None,
        LookupFailedError("not reached"),
        {},
        {"kind": "Status", "code": 404},
        _template(),
        _template(devices=[]),
        _template(devices={"requests": "all"}),
        _template(devices={"requests": [{"name": "gpu"}]}),
        _template(devices={"requests": [request("gpu", 3, "no-such-class")]}),
        _template(devices={"requests": [request("gpu", 2, "gpu.nvidia.com", selectors=[{"cel": {"expression": "(("}}])]}),
    ],
)
def test_templates_and_claims_that_pods_refer_to(tmp_path: Path, found: Any) -> None:
    lookup = Cluster()
    lookup.found = found
    assert refusals(answers(serving(tmp_path, [typed(FOUR), TWO], lookup=lookup), _pod(), "pods")) == []


def test_a_template_that_is_read_and_certain_is_refused(tmp_path: Path) -> None:
    lookup = Cluster()
    lookup.found = _template(devices={"requests": list(THREE_GPUS)})
    client = serving(tmp_path, [typed(FOUR), TWO], lookup=lookup)
    assert refusals(answers(client, _pod(), "pods")) == ["validate strict", "validate default"]

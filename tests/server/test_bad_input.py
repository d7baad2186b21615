"""Whatever is posted: a valid answer or a clean 4xx, the uid in it, no traceback, and no refusal of what was not judged."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import pytest
from flask.testing import FlaskClient
from gunicorn.http.errors import InvalidChunkSize
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.reviews import encoded, pod, review
from webhook.config.live import Live
from webhook.server import review as reviews
from webhook.server.app import BODY_LIMIT, create_app
from webhook.server.health import Drain
from webhook.server.metrics import Metrics

MUTATE, VALIDATE, ADVISE = "/mutate/pods/strict", "/validate/pods/strict", "/advise/workloads"
PATHS = (MUTATE, VALIDATE, ADVISE)
UID = review(None)["request"]["uid"]


@pytest.fixture(scope="module")
def client(live: Live) -> FlaskClient:
    return create_app(live, Metrics(), Drain(None)).test_client()


def post(client: FlaskClient, path: str, body: bytes, content_type: str = "application/json") -> tuple[int, Any]:
    answer = client.post(path, data=body, content_type=content_type)
    assert "Traceback" not in answer.text
    return answer.status_code, answer.get_json() if answer.is_json else answer.text


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def without(key: str) -> bytes:
    whole = review(pod())
    del whole["request"][key]
    return json.dumps(whole).encode()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "no JSON"),
        (b"{", 400, "no JSON"),
        (b"\xff\xfe", 400, "no JSON"),
        (b'{"request": NaN}', 400, "no JSON"),
        (b'{"request": ' + b"9" * 5000 + b"}", 400, "no JSON"),
        (b"null", 400, "AdmissionReview"),
        (b"[]", 400, "AdmissionReview"),
        (b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}', 400, "request"),
        (json.dumps(review(pod()) | {"request": None}).encode(), 400, "request"),
        (json.dumps(review(pod()) | {"request": []}).encode(), 400, "request"),
        (json.dumps(review(pod()) | {"apiVersion": "admission.k8s.io/v1beta1"}).encode(), 400, "admission.k8s.io/v1"),
        (json.dumps(review(pod()) | {"kind": "Pod"}).encode(), 400, "AdmissionReview"),
        (without("uid"), 400, "uid"),
        (encoded(pod(), uid=7), 400, "uid"),
        (without("operation"), 400, "operation"),
        (nested(2_500_000), 400, "nests too deeply"),
        (b" " * (BODY_LIMIT + 1), 413, ""),
    ],
)
def test_no_review(client: FlaskClient, path: str, body: bytes, status: int, says: str) -> None:
    found, text = post(client, path, body)
    assert found == status
    assert says in text
    assert len(text) < 1000


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/yaml", "application/vnd.kubernetes.protobuf"])
def test_content_type(client: FlaskClient, content_type: str) -> None:
    assert post(client, MUTATE, encoded(pod()), content_type)[0] == 415


def test_content_type_with_parameters(client: FlaskClient) -> None:
    assert post(client, MUTATE, encoded(pod()), "application/json; charset=utf-8")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/mutate/pods",
        "/mutate/pods/",
        "/mutate/pods/off",
        "/mutate/pods/Strict",
        "/mutate/nodes/strict",
        "/advise",
        "/echo",
        "/metrics",
    ],
)
def test_no_such_path(client: FlaskClient, path: str) -> None:
    assert post(client, path, encoded(pod()))[0] == 404


def test_wrong_method(client: FlaskClient) -> None:
    answer = client.get(MUTATE)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


ODD_OBJECTS = [
    (None, "NoObject"),
    ("a pod", "NoObject"),
    (7, "NoObject"),
    ([pod()], "NoObject"),
    ({}, "Malformed"),
    ({"apiVersion": "v1", "kind": "Service", "spec": {}}, "NoPod"),
    (pod() | {"spec": None}, "Malformed"),
    (pod() | {"spec": []}, "Malformed"),
    (pod() | {"metadata": []}, ""),
    (pod(containers="main"), "Malformed"),
    (pod(containers={"name": "main"}), "Malformed"),
    (pod(containers=[None]), "Malformed"),
    (pod(initContainers="x"), "Malformed"),
    (pod("0.5.1"), "Malformed"),
    (pod("null"), "Malformed"),
    (pod("1.5"), ""),
    (pod("-1"), ""),
    (pod(0), ""),
    (pod("1e30"), ""),
    (pod(containers=pod()["spec"]["containers"] * 2), ""),
    (pod(containers=[{"name": "main", "resources": {"limits": {"nvidia.com/gpu": None}}}]), "Malformed"),
    (pod(containers=[{"name": "main", "resources": {"limits": {"nvidia.com/gpu": ["1"]}}}]), "Malformed"),
    (pod(containers=[{"name": "main", "resources": {"limits": ["nvidia.com/gpu"]}}]), "Malformed"),
    (pod(containers=[{"name": f"c{i}", "resources": {"limits": {"nvidia.com/gpu": 1}}} for i in range(65)]), "TooManyContainers"),
    (pod(unknownField={"a": [1]}) | {"unknown": True}, ""),
    (pod() | {"metadata": {"name": "x", "annotations": {"numalign.io/injected": "{"}}}, ""),
    (pod() | {"metadata": {"name": "x", "annotations": {"numalign.io/injected": '{"/spec/hostPID":[false,true]}'}}}, ""),
    (pod() | {"metadata": {"name": "x", "annotations": {"numalign.io/mode": 7}}}, ""),
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("obj", "reason"), ODD_OBJECTS)
def test_odd_object(live: Live, client: FlaskClient, path: str, obj: Any, reason: str) -> None:
    body = encoded(obj)
    status, answered = post(client, path, body)
    response = answered["response"]
    assert (status, response["uid"]) == (200, UID)
    check(path, response)
    decision = reviews.answer(path, body, live.current()).decision
    assert decision is not None
    assert decision.outcome != "error"
    if reason and path != ADVISE:
        assert decision.reason == reason
        assert response["allowed"]
        assert response["warnings"]
        assert "patch" not in response


def check(path: str, response: dict[str, Any]) -> None:
    """Everything that the API server checks in a response, and what it would cut."""
    assert set(response) <= {"uid", "allowed", "status", "patch", "patchType", "warnings", "auditAnnotations"}
    assert ("patch" in response) == ("patchType" in response)
    if "patch" in response:
        assert path == MUTATE
        assert response["patchType"] == "JSONPatch"
        assert json.loads(base64.b64decode(response["patch"], validate=True))
    if path != VALIDATE:
        assert response["allowed"]
    assert ("status" in response) == (not response["allowed"])
    warnings = response.get("warnings", [])
    assert len(warnings) == len(set(warnings))
    assert all(len(text) < 120 and text.isprintable() for text in warnings)


@pytest.mark.parametrize("path", PATHS)
def test_uid_of_what_nests_too_deeply(client: FlaskClient, path: str) -> None:
    body = encoded("DEEP").replace(b'"DEEP"', nested(2_500_000))
    status, answered = post(client, path, body)
    assert status == 200
    assert answered["response"] == {
        "uid": UID,
        "allowed": True,
        "warnings": ["numalign: the object nests too deeply; nothing was judged"],
    }


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("depth", [100, 300, 600, 900, 990])
def test_nesting_that_json_takes_but_a_decision_may_not(client: FlaskClient, path: str, depth: int) -> None:
    obj = pod()
    obj["spec"]["volumes"] = "DEEP"
    status, answered = post(client, path, encoded(obj).replace(b'"DEEP"', nested(depth)))
    assert status == 200
    check(path, answered["response"])


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT", "UPDATE"])
def test_what_no_operation_of_ours_is_left_alone(client: FlaskClient, operation: str) -> None:
    for path in (MUTATE, VALIDATE):
        _, answered = post(client, path, encoded(pod(8), operation=operation, oldObject=pod(8)))
        assert answered["response"] == {"uid": UID, "allowed": True}


def test_a_resize_without_the_old_pod_is_not_judged(client: FlaskClient) -> None:
    _, answered = post(client, VALIDATE, encoded(pod(8), operation="UPDATE", subResource="resize", oldObject=None))
    assert answered["response"]["allowed"]
    assert answered["response"]["warnings"] == ["numalign: the review carries no old object; nothing was judged"]


class BrokenChunks(io.BytesIO):
    def readinto(self, _: object) -> int:
        raise InvalidChunkSize(b"ZZ")

    def read(self, _: int | None = -1) -> bytes:
        raise InvalidChunkSize(b"ZZ")


def test_a_body_that_turns_out_to_be_no_http(client: FlaskClient) -> None:
    chunked = {"wsgi.input_terminated": True}
    answer = client.post(MUTATE, input_stream=BrokenChunks(), content_type="application/json", environ_overrides=chunked)
    assert answer.status_code == 400
    assert "chunk size" in answer.text
    assert answer.headers["Connection"] == "close"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
pod_keys = st.sampled_from(["spec", "metadata", "kind"])
spec_keys = st.sampled_from(["initContainers", "nodeSelector", "affinity", "tolerations", "volumes", "resources", "os"])
container_keys = st.sampled_from(["name", "resources", "restartPolicy", "volumeMounts"])
odd_containers = st.lists(st.dictionaries(container_keys, json_values), max_size=3)
odd_pods = st.builds(
    lambda whole, spec, containers: pod(**spec, **({"containers": containers} if containers else {})) | whole,
    st.dictionaries(pod_keys, json_values, max_size=1),
    st.dictionaries(spec_keys, json_values, max_size=3),
    odd_containers,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(obj=odd_pods | json_values, path=st.sampled_from(PATHS))
def test_any_object(live: Live, obj: Any, path: str) -> None:
    answer = reviews.answer(path, encoded(obj), live.current())
    response = json.loads(answer.body)["response"]
    assert answer.error is None
    assert response["uid"] == UID
    check(path, response)


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=64) | json_values.map(lambda value: json.dumps(value).encode()), path=st.sampled_from(PATHS))
def test_any_body(live: Live, body: bytes, path: str) -> None:
    assert 400 <= reviews.answer(path, body, live.current()).status < 500

"""`numalign review`: the server's very answers."""

from __future__ import annotations

import base64
import json
from typing import Any

from click.testing import CliRunner, Result

from webhook.cli.group import numalign
from webhook.cli.inputs import load_snapshot
from webhook.server import review as server


def request(uid: str, gpus: int, **limits: str) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": str(gpus), **limits}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "research"},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.machine": "DGXH100"},
            "containers": [{"name": "trainer", "image": "i", "resources": resources}],
        },
    }
    body = {
        "uid": uid,
        "operation": "CREATE",
        "namespace": "research",
        "object": pod,
        "resource": {"resource": "pods", "version": "v1"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}


def run(text: str, *args: str) -> Result:
    return CliRunner().invoke(numalign, ["review", *args], input=text)


def test_the_answer_is_the_servers() -> None:
    text = json.dumps(request("u1", 2))
    result = run(text)
    assert (
        result.stdout.encode().rstrip(b"\n") == server.answer("/mutate/pods/default", text.encode(), load_snapshot(None, ())).body
    )
    response = json.loads(result.stdout)["response"]
    assert response["uid"] == "u1"
    assert json.loads(base64.b64decode(response["patch"]))
    assert result.exit_code == 0


def test_a_refusal_exits_with_one() -> None:
    result = run(json.dumps(request("u2", 5, cpu="16", memory="64Gi")), "--path", "/validate/pods/strict?timeout=3s")
    response = json.loads(result.stdout)["response"]
    assert (response["allowed"], response["uid"], result.exit_code) == (False, "u2", 1)
    assert "needs 5 GPUs on one NUMA node; each has 4" in response["status"]["message"]


def test_lines_are_answered_one_by_one_and_a_bad_one_does_not_stop_the_rest() -> None:
    lines = [json.dumps(request("a", 1)), "no json", "", json.dumps(request("b", 1))]
    result = run("\n".join(lines), "--jsonl")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer.get("response", {}).get("uid") for answer in answers] == ["a", None, "b"]
    assert answers[1]["httpStatus"] == 400
    assert result.exit_code == 2


def test_a_path_that_does_not_exist_is_bad_input() -> None:
    result = run("{}", "--path", "/mutate")
    assert result.exit_code == 2
    assert "/mutate/pods/strict" in result.stderr

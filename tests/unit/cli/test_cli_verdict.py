"""`numalign verdict`: JSON lines in, JSON lines out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from webhook.cli.group import numalign

CLASS: dict[str, Any] = {
    "apiVersion": "numalign.io/v1alpha1",
    "kind": "NodeClass",
    "metadata": {"name": "two-nodes"},
    "spec": {
        "selector": {"class": "two-nodes"},
        "topology": {
            "sockets": 2,
            "threadsPerCore": 2,
            "numaNodes": [
                {"id": 0, "cpus": 64, "memory": "256Gi", "devices": {"nvidia.com/gpu": 4}},
                {"id": 1, "cpus": 64, "memory": "256Gi", "devices": {"nvidia.com/gpu": 4}},
            ],
        },
        "kubelet": {
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "single-numa-node",
            "systemReserved": {"cpu": "4", "memory": "8Gi"},
        },
    },
}


def changed(**kubelet: Any) -> dict[str, Any]:
    return {**CLASS, "spec": {**CLASS["spec"], "kubelet": {**CLASS["spec"]["kubelet"], **kubelet}}}


def pod(gpus: Any, cpu: str = "16") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": gpus, "cpu": cpu, "memory": "64Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}]},
    }


def run(*lines: Any, args: tuple[str, ...] = ()) -> tuple[Result, list[dict[str, Any]]]:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    result = CliRunner().invoke(numalign, ["verdict", *args], input=text)
    return result, [json.loads(line) for line in result.stdout.splitlines()]


def test_an_admitted_and_a_refused_pod() -> None:
    result, (first, second) = run({"nodeClass": CLASS, "pod": pod(4)}, {"nodeClass": CLASS, "pod": pod(5)})
    assert first == {
        "start": None,
        "admitted": True,
        "reason": "",
        "message": "",
        "masks": {"main": [0]},
        "aligned": True,
        "certain": True,
    }
    assert (second["admitted"], second["reason"], second["masks"]) == (False, "TopologyAffinityError", {})
    assert result.exit_code == 1


def test_all_admitted_exits_with_zero_and_empty_lines_are_skipped() -> None:
    result, answers = run({"nodeClass": CLASS, "pod": pod(1)}, "", {"nodeClass": CLASS, "pod": pod(2)})
    assert result.exit_code == 0
    assert len(answers) == 2


def test_a_kubelet_that_does_not_start_is_a_verdict() -> None:
    result, (answer,) = run({"nodeClass": changed(systemReserved={"memory": "8Gi"}), "pod": pod(1)})
    assert answer["start"]
    assert (answer["admitted"], answer["reason"], answer["masks"]) == (False, "", {})
    assert result.exit_code == 1


def test_a_pod_that_the_api_server_refuses_is_invalid() -> None:
    _, answers = run({"nodeClass": CLASS, "pod": pod("0.5.1")}, {"nodeClass": CLASS, "pod": pod("1500m")})
    assert [answer["reason"] for answer in answers] == ["Invalid", "Invalid"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("no json", "line 1: no JSON"),
        ("[]", "line 1: expected an object"),
        ("{}", "line 1: nodeClass"),
        ({"nodeClass": CLASS}, "line 1: pod: expected a Pod"),
        (
            {"nodeClass": {**CLASS, "spec": {}}, "pod": pod(1)},
            "line 1: nodeClass: spec.topology: is required",
        ),
        ({"nodeClass": "nowhere", "pod": pod(1)}, "line 1: nodeClass: no class is called 'nowhere'"),
    ],
)
def test_a_bad_line_does_not_stop_the_rest(line: Any, expected: str) -> None:
    result, (bad, good) = run(line, {"nodeClass": CLASS, "pod": pod(1)})
    assert bad["error"].startswith(expected)
    assert good["admitted"]
    assert result.exit_code == 2


def test_a_class_may_be_named() -> None:
    result, (answer,) = run({"nodeClass": "dgx-h100", "pod": pod(4)})
    assert answer["masks"] == {"main": [0]}
    assert result.exit_code == 0


def test_nesting_beyond_reason_is_a_bad_line() -> None:
    result, (answer,) = run("[" * 200_000)
    assert "error" in answer
    assert result.exit_code == 2

"""`numalign explain` on claims and their templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.conformance.tables import kubelet, m112
from tests.unit.core.dra.claiming import GPU, JSON, NIC, NUMA, claim, device, request, spec
from webhook.cli.group import numalign

REQUESTS = (request("gpu", 2, cls="gpu.nvidia.com"), request("nic", cls="dranet"))
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t"},
    "spec": {"spec": {"devices": {"requests": list(REQUESTS)}}},
}


@pytest.fixture
def slices(tmp_path: Path) -> Path:
    gpus = spec(GPU, *(device(f"g{i}", {"type": "gpu"}, numa=i // 2) for i in range(4)), nodeName="n")
    nics = spec(NIC, device("n0", numa=1), nodeName="n")
    objects = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {}, "spec": each} for each in (gpus, nics)
    ]
    node_class = m112({})
    node_class["metadata"] = {"name": "n"}
    node_class["spec"] |= {"selector": {"class": "n"}, "resourceSlices": [gpus, nics]}
    (tmp_path / "class.yaml").write_text(yaml.safe_dump(node_class))
    path = tmp_path / "slices.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


def explain(slices: Path, *objects: JSON, code: int = 0, mode: str = "strict", fmt: str = "json") -> Any:
    arguments = ["explain", "--classes", str(slices), "-f", "-", "--mode", mode, "-o", fmt]
    result = CliRunner().invoke(numalign, arguments, input=yaml.safe_dump_all(objects))
    assert result.exit_code == code, result.output
    return json.loads(result.output) if fmt == "json" else result.output


@pytest.mark.parametrize(("mode", "word"), [("strict", "required"), ("best-effort", "preferred")])
def test_a_template_is_explained_by_the_claim_that_it_makes(slices: Path, mode: str, word: str) -> None:
    (found,) = explain(slices, TEMPLATE, mode=mode)
    assert (found["object"], found["outcome"], found["attribute"]) == ("ResourceClaimTemplate/t", "mutated", NUMA)
    assert found["says"] == f"{word} {NUMA}: gpu, nic"
    assert found["classes"] == [{"class": "n", "devices": "yes", "aligned": "yes", "says": ""}]


def test_a_refusal_says_why_class_by_class(slices: Path) -> None:
    wanted = claim(request("gpu", 3, cls="gpu.nvidia.com"), owned=False)
    assert explain(slices, wanted)[0]["classes"][0]["aligned"] == "no"  # the cluster's nodes of the moment never refuse
    slices = slices.parent / "class.yaml"
    (found,) = explain(slices, wanted, code=1)
    assert found["classes"][0]["aligned"] == "no"
    assert "at most 2 share one" in found["classes"][0]["says"]
    assert "refused" in explain(slices, wanted, code=1, fmt="table")


def test_the_flat_form_of_v1beta1(slices: Path) -> None:
    flat = [{"name": each["name"], **each["exactly"]} for each in REQUESTS]
    made = claim(owned=False) | {"apiVersion": "resource.k8s.io/v1beta1", "spec": {"devices": {"requests": flat}}}
    (found,) = explain(slices, made)
    assert found["says"] == f"required {NUMA}: gpu, nic"


@pytest.mark.parametrize("broken", [{"spec": None}, {"spec": {"devices": 1}}, {"spec": {"devices": {"requests": [1]}}}])
def test_what_cannot_be_read_is_said(slices: Path, broken: JSON) -> None:
    (found,) = explain(slices, claim() | broken)
    assert found["allowed"] is True


def train(**more: Any) -> JSON:
    container = {"name": "main", "image": "registry.example/work", "resources": {"claims": [{"name": "devices"}]} | more}
    spec = {"containers": [container], "resourceClaims": [{"name": "devices", "resourceClaimTemplateName": "t"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"}, "spec": spec}


class TestPodsWithClaims:
    @pytest.fixture
    def described(self, slices: Path) -> Path:
        """The class, with GPUs in an order that leads the allocator to the NUMA node of the first CPUs."""
        gpus = spec(GPU, *(device(f"g{i}", {"type": "gpu"}, numa=i // 2) for i in range(4)))
        nics = spec(NIC, device("n0", numa=0))
        made = yaml.safe_load((slices.parent / "class.yaml").read_text())
        made["spec"] |= {"resourceSlices": [gpus, nics], "kubelet": kubelet()}
        path = slices.parent / "described.yaml"
        path.write_text(yaml.safe_dump(made))
        return path

    def test_a_pod_is_explained_with_the_template_beside_it(self, described: Path) -> None:
        claim_says, pod_says = explain(described, train(), TEMPLATE)
        assert claim_says["says"] == f"required {NUMA}: gpu, nic"
        assert (pod_says["object"], pod_says["outcome"]) == ("Pod/train", "mutated")
        assert pod_says["classes"][0]["verdict"] == "admitted"
        assert pod_says["classes"][0]["says"].startswith("claimed devices and CPUs that the kubelet pins")
        assert pod_says["fixes"] == []
        assert "cpu unset -> " in pod_says["warnings"][0]

    def test_a_template_of_another_namespace_is_not_the_pods(self, described: Path) -> None:
        elsewhere = TEMPLATE | {"metadata": {"name": "t", "namespace": "elsewhere"}}
        found = explain(described, train(), elsewhere)[1]
        assert found["warnings"] == [
            "numalign: claims were not read, so not judged: ResourceClaimTemplate t: it is not in these files"
        ]

    def test_what_no_class_has_is_refused_with_its_reason(self, described: Path) -> None:
        many = {"spec": {"spec": {"devices": {"requests": [request("gpu", 9, cls="gpu.nvidia.com")]}}}}
        page = explain(described, train(), TEMPLATE | many, code=1, fmt="table")
        assert "n: devices/gpu asks for 9 devices; 4 there" in page
        assert "as written: no described node has the devices\n" in page

    def test_what_the_kubelet_refuses_comes_with_a_change(self, described: Path) -> None:
        found = explain(described, train(limits={"cpu": "100", "memory": "1Gi"}), TEMPLATE, code=1)[1]
        (fix,) = found["fixes"]
        assert (fix["changes"][0]["field"], fix["changes"][0]["value"]) == ("spec.containers[0].resources.limits.cpu", "56")


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        (["slices.yaml"], ["DRA devices of 1 node can be used: n"]),
        (["class.yaml"], ["1 class can be used: n"]),
    ],
)
def test_checking_says_what_can_be_used(slices: Path, names: list[str], lines: list[str]) -> None:
    result = CliRunner().invoke(numalign, ["classes", "check", *(str(slices.parent / name) for name in names)])
    assert (result.exit_code, result.stdout.splitlines()) == (0, lines)

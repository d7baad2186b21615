"""deploy/helm renders to the objects of the kustomize base, and to the webhooks that the program itself prints."""

import json
import os
import subprocess

import pytest
import yaml
from click.testing import CliRunner

from tests.e2e.controlplane import binaries
from tests.e2e.rig.cluster import DEPLOY, NAMESPACE
from webhook.cli.group import numalign as command

CHART = DEPLOY / "helm" / "numalign"
CLASS = DEPLOY / "overlays" / "example" / "classes" / "l40s.yaml"


@pytest.fixture(scope="module")
def helm():
    try:
        program = binaries.find_helm()
    except binaries.MissingError as error:
        pytest.skip(f"NO HELM: {error}")

    def run(*args, values=None, namespace=NAMESPACE):
        text = yaml.safe_dump(values or {})
        arguments = [
            program,
            "template",
            "numalign",
            CHART,
            "--namespace",
            namespace,
            "--kube-version",
            "1.37.0",
            "-f",
            "-",
            *args,
        ]
        return subprocess.run(arguments, input=text, capture_output=True, text=True, check=False, timeout=60)

    return run


def objects(text):
    return [each for each in yaml.safe_load_all(text) if each]


def rendered(done):
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)


def plain(obj):
    """Without what tells kustomize's work from helm's: labels and annotations for people, hashes in names, default fields."""
    obj = json.loads(json.dumps(obj))
    obj["metadata"].pop("labels", None)
    obj["metadata"].pop("annotations", None)
    if obj["kind"] == "ConfigMap":
        obj["metadata"]["name"] = "-".join(obj["metadata"]["name"].split("-")[:2])
        obj["data"] = {name: yaml.safe_load(text) for name, text in (obj.get("data") or {}).items()}
        obj["data"].get("policy.yaml", {"metadata": None})["metadata"] = None
    if obj["kind"] == "Deployment":
        template = obj["spec"]["template"]
        template["metadata"] = None
        for container in (*template["spec"]["initContainers"], *template["spec"]["containers"]):
            container.pop("imagePullPolicy", None)
        for volume in template["spec"]["volumes"]:
            if "configMap" in volume:
                volume["configMap"]["name"] = "-".join(volume["configMap"]["name"].split("-")[:2])
    return obj


def by_key(objs):
    return {(each["kind"], plain(each)["metadata"]["name"]): plain(each) for each in objs}


def test_the_chart_renders_to_the_objects_of_the_base(helm, plane):
    base = [
        *objects(plane.must("kustomize", str(DEPLOY / "base"))),
        *objects(plane.must("kustomize", str(DEPLOY / "base/webhooks"))),
    ]
    chart = rendered(helm(values={"policy": {"mode": "strict"}}))
    expected = by_key(each for each in base if each["kind"] != "Namespace")
    assert by_key(chart) == expected


def test_with_claims_it_renders_to_the_base_with_the_component(helm, plane, tmp_path):
    base, component = (os.path.relpath(DEPLOY / part, tmp_path) for part in ("base", "components/claims"))
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [base], "components": [component]}))
    chart = rendered(helm("--set", "claims.enabled=true,webhooks.enabled=false", values={"policy": {"mode": "strict"}}))
    overlay = objects(plane.must("kustomize", str(tmp_path)))
    assert by_key(chart) == by_key(each for each in overlay if each["kind"] != "Namespace")


@pytest.mark.parametrize("mode", ["strict", "best-effort", "audit", "off"])
@pytest.mark.parametrize("exempt", [["gpu-operator"], ["zoo", "another"], []])
def test_webhooks_are_those_that_the_program_prints(helm, tmp_path, mode, exempt):
    policy = {"mode": mode, "exemptNamespaces": exempt}
    chart = [each for each in rendered(helm(values={"policy": policy}, namespace="elsewhere")) if "Webhook" in each["kind"]]
    file = tmp_path / "policy.yaml"
    document = {"apiVersion": "numalign.io/v1alpha1", "kind": "Policy", "metadata": {"name": "x"}, "spec": policy}
    file.write_text(yaml.safe_dump(document))
    printed = CliRunner().invoke(command, ["webhooks", "--policy", str(file), "--namespace", "elsewhere"])
    assert by_key(chart) == by_key(objects(printed.output))


def test_classes_and_every_other_value_pass_the_api_server(helm, plane, cluster):  # noqa: ARG001
    values = {
        "replicas": 3,
        "classes": {"l40s.yaml": yaml.safe_load(CLASS.read_text())},
        "nodeSelector": {"pool": "system"},
        "affinity": {"podAntiAffinity": {}},
        "tolerations": [],
        "image": {"repository": "registry.example.com/numalign", "tag": "1"},
    }
    made = rendered(helm(values=values))
    done = plane.kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", manifest=made)
    assert done.code == 0, done.err
    (classes,) = (each for each in made if each["metadata"]["name"] == "numalign-classes")
    assert yaml.safe_load(classes["data"]["l40s.yaml"]) == values["classes"]["l40s.yaml"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"replicas": 0}, "replicas"),
        ({"policy": {"mode": "stricter"}}, "mode"),
        ({"classes": {"l40s": {}}}, "classes"),
        ({"colour": "blue"}, "colour"),
        ({"policy": {"mode": "audit", "exempt": {"users": ["x"]}}}, "numalign webhooks"),
    ],
)
def test_bad_values_are_refused(helm, values, problem):
    done = helm(values=values)
    assert done.returncode != 0
    assert problem in done.stderr

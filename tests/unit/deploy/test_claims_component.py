"""deploy/components/claims against the Deployment that it patches and the command line."""

from pathlib import Path

import click
import pytest
import yaml

from webhook.cli.group import numalign
from webhook.cluster import devices

DEPLOY = Path(__file__).parents[3] / "deploy"


@pytest.fixture(scope="module")
def component():
    return yaml.safe_load((DEPLOY / "components" / "claims" / "kustomization.yaml").read_text())


@pytest.fixture(scope="module")
def spec():
    (deployment,) = (each for each in yaml.safe_load_all((DEPLOY / "base" / "deployment.yaml").read_text()) if each)
    return deployment["spec"]["template"]["spec"]


def test_the_arguments_go_to_the_containers_that_take_them(component, spec):
    for operation in yaml.safe_load(component["patches"][1]["patch"]):
        field, index = operation["path"].split("/")[4:6]
        group, words = numalign, [*spec[field][int(index)]["args"], operation["value"]]
        while not words[0].startswith("-"):
            group = group.get_command(click.Context(group), words.pop(0))
        assert group.make_context("x", words).params


def test_the_file_that_one_writes_is_the_one_that_the_other_reads(component):
    values = [each["value"].partition("=")[2] for each in yaml.safe_load(component["patches"][1]["patch"])]
    assert values[0] == values[1]
    pod = yaml.safe_load(component["patches"][0]["patch"])["spec"]["template"]["spec"]
    mounts = [mount for field in ("initContainers", "containers") for each in pod[field] for mount in each["volumeMounts"]]
    assert {mount["mountPath"] for mount in mounts} == {str(Path(values[0]).parent)}
    assert {mount["name"] for mount in mounts} == {each["name"] for each in pod["volumes"]}


def test_the_role_allows_what_is_called(component):
    (role, _) = yaml.safe_load_all((DEPLOY / "components" / "claims" / component["resources"][0]).read_text())
    assert role["rules"] == [
        {"apiGroups": ["resource.k8s.io"], "resources": list(devices._KINDS.values()), "verbs": ["list"]},
    ]

"""deploy/components/claims against the Deployment that it patches, the command line, and the calls that are made."""

from pathlib import Path

import click
import pytest
import yaml

from webhook.cli.group import numalign
from webhook.cluster import claims, devices
from webhook.core.dra.references import CLAIM, TEMPLATE

DEPLOY = Path(__file__).parents[3] / "deploy"
FIELDS = ("initContainers", "containers")


@pytest.fixture(scope="module")
def operations():
    component = yaml.safe_load((DEPLOY / "components" / "claims" / "kustomization.yaml").read_text())
    return yaml.safe_load(component["patches"][0]["patch"])


@pytest.fixture(scope="module")
def spec():
    (deployment,) = (each for each in yaml.safe_load_all((DEPLOY / "base" / "deployment.yaml").read_text()) if each)
    return deployment["spec"]["template"]["spec"]


def added(operations, field):
    """Option -> value, of those that the component adds to one of both containers."""
    ours = [each for each in operations if each["path"].split("/")[4:6] == [field, "0"]]
    return dict(each["value"].split("=") for each in ours)


def test_the_arguments_go_to_the_containers_that_take_them(operations, spec):
    for field in FIELDS:
        words = [*spec[field][0]["args"], *(f"{option}={value}" for option, value in added(operations, field).items())]
        group = numalign
        while not words[0].startswith("-"):
            group = group.get_command(click.Context(group), words.pop(0))
        assert group.make_context("x", words).params
    assert len(operations) == sum(len(added(operations, field)) for field in FIELDS)


def test_what_one_writes_is_what_the_other_reads(operations, spec):
    sidecar, server = (added(operations, field) for field in FIELDS)
    assert sidecar["--devices-file"] == server["--classes"]
    assert sidecar["--claims-socket"] == server["--lookup-claims"]
    volume = {mount["mountPath"]: mount["name"] for mount in spec["initContainers"][0]["volumeMounts"]}
    for path in (*sidecar.values(), *server.values()):
        assert volume[str(Path(path).parent)] == "cluster"


def test_the_role_allows_what_is_called():
    (role, _) = yaml.safe_load_all((DEPLOY / "components" / "claims" / "rbac.yaml").read_text())
    listed, single = role["rules"]
    assert listed == {"apiGroups": ["resource.k8s.io"], "resources": list(devices._KINDS.values()), "verbs": ["list"]}
    asked = sorted(claims.path("n", kind, "x").split("/")[-2] for kind in (CLAIM, TEMPLATE))
    assert single == {"apiGroups": ["resource.k8s.io"], "resources": asked, "verbs": ["get"]}

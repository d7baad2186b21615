"""The commands of docs/operations.md, in their order, on a copy of deploy/: the API server is asked, but nothing is stored."""

import re
import shutil
import subprocess

import pytest
import yaml
from click.testing import CliRunner

from tests.e2e.rig.cluster import DEPLOY
from webhook.cli.group import numalign as command

PAGE = DEPLOY.parent / "docs" / "operations.md"
BLOCKS = re.findall(r"(?m)^```([^\n`]*)\n((?:.*\n)*?)^```$", PAGE.read_text())
INSTALL, APPLY, REMOVE = (body for info, body in BLOCKS if not info)
_NOT_HERE = ("docker ", "kubectl -n numalign-system rollout status ")
"""No image is built here, and no kubelet would run it."""


def commands(block):
    """The commands of a block, here-documents in one piece, comments left out."""
    found = re.findall(r"(?ms)^(?:cat >>.*?^EOF|[^\n]+)$", block)
    return [each.partition("   #")[0].strip() for each in found]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A directory with deploy/ and somebody's own class, after the commands that make an overlay of it."""
    directory = tmp_path_factory.mktemp("checkout")
    shutil.copytree(DEPLOY, directory / "deploy")
    (directory / "my-classes").mkdir()
    shown = CliRunner().invoke(command, ["classes", "show", "dgx-h100", "--file"]).output
    (directory / "my-classes" / "h100.yaml").write_text(shown)
    for each in commands(INSTALL):
        if not each.startswith(_NOT_HERE):
            subprocess.run(["bash", "-euc", each], cwd=directory, check=True, timeout=60)
    return directory


@pytest.fixture
def dry(plane, cluster, copy):  # noqa: ARG001
    """Runs a kubectl command of the page in the copy, as far as an API server can be asked what it would do."""

    def run(line):
        words = line.split()
        assert words[0] == "kubectl", line
        words = [str(copy / word) if word.startswith("deploy/") else word for word in words[1:]]
        absent = ["--ignore-not-found"] if words[0] == "delete" else []  # its ConfigMaps were never stored
        return plane.must(*words, "--dry-run=server", *absent)

    return run


def test_the_overlay_of_ones_own_has_ones_image_and_classes(plane, copy):
    made = list(yaml.safe_load_all(plane.must("kustomize", str(copy / "deploy/overlays/mine"))))
    (deployment,) = (each for each in made if each["kind"] == "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    images = {each["image"] for each in (*spec["initContainers"], *spec["containers"])}
    assert images == {"registry.example.com/numalign:0.1.0"}
    (classes,) = (
        each for each in made if each["kind"] == "ConfigMap" and each["metadata"]["name"].startswith("numalign-classes")
    )
    assert "NVIDIA-H100" in classes["data"]["h100.yaml"]
    assert classes["metadata"]["name"] in {volume.get("configMap", {}).get("name") for volume in spec["volumes"]}


def test_installing(dry, numalign):
    lines = [each for each in commands(APPLY) if not each.startswith(_NOT_HERE)]
    assert len(lines) == 3
    server, webhooks, show = lines
    assert "deployment.apps/numalign configured (server dry run)" in dry(server)
    assert dry(webhooks).count("(server dry run)") == 2
    done = numalign(*show.split()[1:])
    assert (done.code, done.out.count(" trusts it")) == (0, 2), done.err


def test_removing(dry):
    lines = commands(REMOVE)
    assert [each.endswith("/webhooks") for each in lines] == [True, False]
    assert dry(lines[0]).count('numalign" deleted') == 2
    assert 'deployment.apps "numalign" deleted' in dry(lines[1])


def test_the_switches_of_the_runbook(plane, cluster):  # noqa: ARG001
    table = PAGE.read_text().partition("**Switch it off**")[2].partition("\nNever scale")[0]
    lines = re.findall(r"(?m)^\| `(kubectl [^`]+)`", table)
    assert len(lines) == 4
    for line in lines:
        words = re.findall(r"'[^']*'|\S+", line.replace("NAME", "strict"))[1:]
        plane.must(*(word.strip("'") for word in words), "--dry-run=server")

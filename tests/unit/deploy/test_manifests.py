"""deploy/ against what it is made for: the policy, the command line, the roles. A real API server takes it in tests/e2e."""

import os
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from webhook.cli.group import numalign
from webhook.config.load import load_classes, load_policy
from webhook.core.webhookconfig import SYSTEM_NAMESPACES
from webhook.server.review import ROUTES

DEPLOY = Path(__file__).parents[3] / "deploy"
POLICIES = sorted(DEPLOY.glob("**/policy.yaml"))


def documents(path):
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def overlay_id(path):
    return str(path.relative_to(DEPLOY).parent)


@pytest.fixture(scope="module")
def template():
    (deployment,) = documents(DEPLOY / "base" / "deployment.yaml")
    return deployment["spec"]["template"]


@pytest.fixture(scope="module")
def containers(template):
    spec = template["spec"]
    return {each["name"]: each for each in (*spec["initContainers"], *spec["containers"])}


@pytest.mark.golden
@pytest.mark.parametrize("policy", POLICIES, ids=overlay_id)
def test_webhook_configurations_are_those_of_the_policy(policy):
    made = CliRunner().invoke(numalign, ["webhooks", "--policy", str(policy)])
    assert made.exit_code == 0, made.output
    path = policy.parent / "webhooks" / "webhooks.yaml"
    if os.environ.get("NUMALIGN_UPDATE_GOLDEN"):
        path.write_text(made.output)
    assert path.read_text() == made.output, "rewrite them with NUMALIGN_UPDATE_GOLDEN=1"
    assert "caBundle" not in made.output


@pytest.mark.golden
def test_the_chart_starts_from_the_same_webhook_configurations():
    path, base = DEPLOY / "helm" / "numalign" / "files" / "webhooks.yaml", DEPLOY / "base" / "webhooks" / "webhooks.yaml"
    if os.environ.get("NUMALIGN_UPDATE_GOLDEN"):
        path.write_text(base.read_text())
    assert path.read_text() == base.read_text(), "rewrite it with NUMALIGN_UPDATE_GOLDEN=1"


@pytest.mark.parametrize("policy", POLICIES, ids=overlay_id)
def test_policies_load_and_exempt_the_same_namespaces_as_the_shipped_one(policy):
    loaded, errors = load_policy(policy)
    assert errors == ()
    assert loaded.exempt_namespaces == load_policy(None)[0].exempt_namespaces


def test_the_charts_policy_audits_and_exempts_the_same_namespaces():
    (values,) = documents(DEPLOY / "helm" / "numalign" / "values.yaml")
    assert values["policy"]["mode"] == "audit"
    assert set(values["policy"]["exemptNamespaces"]) == load_policy(None)[0].exempt_namespaces


def test_the_audit_overlay_audits():
    assert load_policy(DEPLOY / "overlays" / "audit" / "policy.yaml")[0].mode == "audit"


def test_the_example_classes_load_without_a_warning():
    policy, _ = load_policy(DEPLOY / "overlays" / "example" / "policy.yaml")
    loaded = load_classes((DEPLOY / "overlays" / "example" / "classes",), policy.builtin_classes)
    assert (loaded.errors, loaded.warnings) == ((), ())
    assert {node.node_class.name for node in loaded.classes} == {"dgx-h100", "l40s"}


@pytest.mark.parametrize("name", ["webhook", "certs"])
def test_the_command_line_takes_the_arguments(containers, name):
    group, words = numalign, list(containers[name]["args"])
    while not words[0].startswith("-"):
        group = group.get_command(click.Context(group), words.pop(0))
    assert group.make_context(name, words).params


def test_every_path_in_an_argument_is_on_a_volume(template, containers):
    volumes = {each["name"] for each in template["spec"]["volumes"]}
    for container in containers.values():
        mounts = {each["mountPath"] for each in container["volumeMounts"]}
        assert {each["name"] for each in container["volumeMounts"]} <= volumes
        paths = [word.rpartition("=")[2] for word in container["args"] if word.rpartition("=")[2].startswith("/")]
        assert paths
        for path in paths:
            assert any(path == mount or path.startswith(f"{mount}/") for mount in mounts), path


def test_nothing_runs_with_more_than_it_needs(template, containers):
    pod = template["spec"]["securityContext"]
    assert (pod["runAsNonRoot"], pod["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert template["spec"]["automountServiceAccountToken"] is False
    for container in containers.values():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"requests", "limits"} <= container["resources"].keys()
    token = [name for name, each in containers.items() if any(m["name"] == "token" for m in each["volumeMounts"])]
    assert token == ["certs"]


def test_what_the_sidecar_writes_about_limit_ranges_is_what_the_server_reads(containers):
    (written, read) = (
        next(word.partition("=")[2] for word in containers[name]["args"] if word.startswith("--limits-file"))
        for name in ("certs", "webhook")
    )
    assert written == read
    mounts = {name: {m["name"]: m.get("readOnly", False) for m in each["volumeMounts"]} for name, each in containers.items()}
    assert (mounts["certs"]["cluster"], mounts["webhook"]["cluster"]) == (False, True)


def test_the_sidecar_may_follow_limit_ranges_and_no_more():
    roles = {each["metadata"]["name"]: each for each in documents(DEPLOY / "base" / "rbac.yaml") if each["kind"] == "ClusterRole"}
    assert roles["numalign-limits"]["rules"] == [{"apiGroups": [""], "resources": ["limitranges"], "verbs": ["list", "watch"]}]


def test_the_server_survives_its_drain(template, containers):
    """The grace period holds the preStop's sleep, the graceful timeout, and the lingering of kept-alive connections."""
    from webhook.server.gunicorn_config import GRACEFUL_SECONDS

    hook = containers["webhook"]["lifecycle"]["preStop"]["exec"]["command"]
    sleep = int(hook[-1].rpartition(" ")[2])
    assert template["spec"]["terminationGracePeriodSeconds"] >= sleep + GRACEFUL_SECONDS + 5
    drained = next(word.partition("=")[2] for word in containers["webhook"]["args"] if word.startswith("--drain-file"))
    assert f"touch {drained} &&" in hook[-1]


def test_ports_meet(containers):
    ports = {each["name"]: each["containerPort"] for each in containers["webhook"]["ports"]}
    assert f"--port={ports['webhook']}" in containers["webhook"]["args"]
    assert f"--metrics-port={ports['metrics']}" in containers["webhook"]["args"]
    targets = {port["targetPort"] for each in documents(DEPLOY / "base" / "service.yaml") for port in each["spec"]["ports"]}
    (policy,) = documents(DEPLOY / "base" / "network.yaml")
    assert targets == set(ports) == {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}


def test_the_webhook_never_waits_for_itself():
    """Its own namespace and the system's are left out of every entry, so that a stopped cluster can start again."""
    for each in documents(DEPLOY / "base" / "webhooks" / "webhooks.yaml"):
        for entry in each["webhooks"]:
            expressions = entry["namespaceSelector"]["matchExpressions"]
            names = next(
                e["values"] for e in expressions if e["key"] == "kubernetes.io/metadata.name" and e["operator"] == "NotIn"
            )
            assert {"numalign-system", *SYSTEM_NAMESPACES} <= set(names)


def test_every_registered_path_is_served():
    for each in documents(DEPLOY / "base" / "webhooks" / "webhooks.yaml"):
        assert {entry["clientConfig"]["service"]["path"] for entry in each["webhooks"]} <= set(ROUTES)

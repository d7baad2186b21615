"""`numalign classes`, `policy`, `webhooks`, `version`: what they print and how they fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from webhook.cli.group import COMMANDS, numalign
from webhook.config.load import builtin_names, load_policy
from webhook.core.policy import Mode, Policy


def run(*args: str) -> Result:
    return CliRunner().invoke(numalign, args)


def test_help_lists_every_command_and_each_has_its_own() -> None:
    listed = run("--help").stdout
    for name in COMMANDS:
        assert name in listed
        assert run(name, "--help").exit_code == 0


@pytest.mark.parametrize("name", ["explain", "review", "serve", "verdict", "webhooks", "version"])
def test_every_command_takes_a_policy_and_classes(name: str) -> None:
    text = run(name, "--help").stdout
    assert "--policy FILE" in text
    assert "--classes PATH" in text


def test_all_built_in_classes_are_listed() -> None:
    found = json.loads(run("classes", "list", "-o", "json").stdout)
    assert [each["name"] for each in found] == list(builtin_names())
    assert all(each["devices"] and each["cpus"] for each in found)


def test_the_table_of_classes_cuts_nothing_off() -> None:
    page = run("classes", "list").stdout
    assert "…" not in page
    assert all(f" {name} " in page for name in builtin_names())


def test_a_class_shows_what_its_numa_nodes_leave_to_pods() -> None:
    found = json.loads(run("classes", "show", "dgx-h100", "-o", "json").stdout)
    first, second = found["leavesToPods"]
    assert first["nvidia.com/gpu"] == second["nvidia.com/gpu"] == "4"
    assert int(first["cpu"]) < int(second["cpu"])
    assert "What each NUMA node leaves to pods" in run("classes", "show", "dgx-h100").stdout
    assert run("classes", "show", "dgx").exit_code == 2


def test_a_built_in_classs_file_can_be_used_as_ones_own(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(run("classes", "show", "dgx-h100", "--file").stdout)
    result = run("classes", "check", str(mine), "-o", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["classes"] == ["dgx-h100"]
    assert json.loads(run("classes", "list", "--classes", str(mine), "-o", "json").stdout)[0]["name"] == "dgx-h100"


def test_every_error_of_every_class_file_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: NodeClass\nspec: {topologie: {}}\n")
    (tmp_path / "b.yaml").write_text("[")
    result = run("classes", "check", str(tmp_path))
    assert result.exit_code == 2
    assert "a.yaml:2: spec.topologie" in result.stdout
    assert "is no YAML" in result.stdout


def test_a_policy_is_printed_as_its_file_would_say_it(tmp_path: Path) -> None:
    mine = tmp_path / "policy.yaml"
    mine.write_text(
        "apiVersion: numalign.io/v1alpha1\nkind: Policy\nspec:\n  mode: audit\n  cpu: {perAccelerator: 12, source: limit}\n"
        "  accelerators: [{name: example.com/npu, kind: device, vendor: example}]\n"
    )
    printed = tmp_path / "printed.yaml"
    printed.write_text(run("policy", "check", str(mine), "-o", "yaml").stdout)
    assert load_policy(printed) == load_policy(mine)
    assert load_policy(printed)[0].mode is Mode.AUDIT


def test_the_shipped_policy_is_the_default_and_a_bad_one_exits_with_two(tmp_path: Path) -> None:
    assert run("policy", "check").exit_code == 0
    bad = tmp_path / "policy.yaml"
    bad.write_text("apiVersion: numalign.io/v1alpha1\nkind: Policy\nspec: {mode: stirct, steer: maybe}\n")
    for result in (run("policy", "check", str(bad)), run("webhooks", "--policy", str(bad))):
        assert result.exit_code == 2
        assert "spec.mode" in result.stderr
        assert "spec.steer" in result.stderr


def test_webhooks_come_as_two_documents_that_follow_the_policy(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: numalign.io/v1alpha1\nkind: Policy\nspec: {mode: audit}\n")
    result = run("webhooks", "--policy", str(policy), "--namespace", "align", "--service", "hook", "--port", "8443")
    mutating, validating = yaml.safe_load_all(result.stdout)
    assert (mutating["kind"], validating["kind"]) == ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    service = mutating["webhooks"][0]["clientConfig"]["service"]
    assert service == {"namespace": "align", "name": "hook", "path": "/mutate/pods/strict", "port": 8443}
    policies: dict[str, Any] = {each["name"]: each["failurePolicy"] for each in validating["webhooks"]}
    assert policies["default.pods.numalign.io"] == "Ignore"
    assert "nvidia.com/gpu" in result.stdout


def test_an_url_has_to_be_one_that_an_api_server_calls() -> None:
    result = run("webhooks", "--url", "http://numalign.example")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "https:// only" in result.stderr
    called = run("webhooks", "--url", "https://numalign.example").stdout
    assert "url: https://numalign.example/validate/pods/strict" in called


def test_version_is_printed_in_every_form() -> None:
    assert run("version").stdout.startswith("numalign ")
    assert json.loads(run("version", "-o", "json").stdout)["kubernetes"] == ["1.34", "1.35", "1.36", "1.37"]
    number = yaml.safe_load(run("version", "-o", "yaml").stdout)["numalign"]
    assert run("--version").stdout == f"numalign {number}\n"


def test_the_defaults_of_the_shipped_policy_are_those_of_the_model() -> None:
    shipped, errors = load_policy()
    assert not errors
    assert shipped.mode is Policy().mode


def test_serve_says_what_it_lacks() -> None:
    result = run("serve")
    assert result.exit_code == 2
    assert "--cert" in result.stderr

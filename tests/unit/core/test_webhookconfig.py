"""The webhook configurations: one entry a mode, its path, its policy on failure, and who never gets here."""

from __future__ import annotations

import json
import re

import pytest

from webhook.core.accelerators import Catalogue, Entry, Kind
from webhook.core.policy import MODE_KEY, Mode, Policy
from webhook.core.webhookconfig import Endpoint, configurations, entry_names

CATALOGUE = Catalogue(
    [
        Entry(Kind.DEVICE, "nvidia", name="nvidia.com/gpu"),
        Entry(Kind.MEMORY, "nvidia", name="nvidia.com/gpumem", implies="nvidia.com/gpu"),
        Entry(Kind.PARTITION, "nvidia", pattern=r"^nvidia\.com/mig-\d+g\.\d+gb$"),
        Entry(Kind.PSEUDO, "nvidia", name="nvidia.com/priority", units_per_device=None),
        Entry(Kind.NIC, "any", name="openshift.io/vf"),
    ]
)


def made(policy: Policy = Policy(), endpoint: Endpoint = Endpoint()) -> tuple[dict, dict]:  # noqa: B008
    return configurations(policy, CATALOGUE, endpoint)


def entries(configuration: dict) -> dict[str, dict]:
    return {webhook["name"]: webhook for webhook in configuration["webhooks"]}


def condition(webhook: dict, name: str) -> str:
    return next(c["expression"] for c in webhook["matchConditions"] if c["name"] == name)


def test_one_mutating_entry_a_mode_and_one_for_the_rest() -> None:
    mutating, _ = made()
    labels, resources = ("strict", "best-effort", "audit", "default"), ("pods", "resourceclaims")
    wanted = [(label, resource) for resource in resources for label in labels]
    assert entry_names(mutating) == tuple(f"{label}.{resource}.numalign.io" for label, resource in wanted)
    for (label, resource), webhook in zip(wanted, mutating["webhooks"], strict=True):
        assert webhook["clientConfig"]["service"]["path"] == f"/mutate/{resource}/{label}"
        assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == ("Ignore", 2)
        assert webhook["reinvocationPolicy"] == "IfNeeded"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.STRICT, {"strict": "Fail", "best-effort": "Ignore", "audit": "Ignore", "default": "Fail"}),
        (Mode.BEST_EFFORT, {"strict": "Fail", "best-effort": "Ignore", "audit": "Ignore", "default": "Ignore"}),
        (Mode.AUDIT, {"strict": "Fail", "best-effort": "Ignore", "audit": "Ignore", "default": "Ignore"}),
        (Mode.OFF, {"strict": "Fail", "best-effort": "Ignore", "audit": "Ignore", "default": "Ignore"}),
    ],
)
def test_only_what_refuses_fails_closed(mode: Mode, expected: dict[str, str]) -> None:
    _, validating = made(Policy(mode=mode))
    found = entries(validating)
    assert {label: found[f"{label}.pods.numalign.io"]["failurePolicy"] for label in expected} == expected
    others = [w for name, w in found.items() if not name.endswith(".pods.numalign.io")]
    assert {w["failurePolicy"] for w in others} == {"Ignore"}


def test_validation_sees_creation_and_resize() -> None:
    _, validating = made()
    rules = entries(validating)["strict.pods.numalign.io"]["rules"]
    assert [(r["operations"], r["resources"]) for r in rules] == [(["CREATE"], ["pods"]), (["UPDATE"], ["pods/resize"])]


def test_every_entry_carries_what_dry_run_and_old_clients_need() -> None:
    for configuration in made():
        for webhook in configuration["webhooks"]:
            assert webhook["sideEffects"] == "None"
            assert webhook["matchPolicy"] == "Equivalent"
            assert webhook["admissionReviewVersions"] == ["v1"]
            assert "caBundle" not in webhook["clientConfig"]
            assert all(rule["scope"] == "Namespaced" for rule in webhook["rules"])


def matches(selector: dict, labels: dict[str, str]) -> bool:
    """Evaluate the two operators that a namespaceSelector of ours uses; an absent key passes NotIn."""
    for term in selector["matchExpressions"]:
        inside = labels.get(term["key"]) in term["values"]
        if inside != (term["operator"] == "In"):
            return False
    return True


@pytest.mark.parametrize("value", [None, "strict", "best-effort", "audit", "off", "stirct"])
def test_a_namespace_meets_exactly_one_entry_unless_it_is_off(value: str | None) -> None:
    labels = {"kubernetes.io/metadata.name": "research"} | ({} if value is None else {MODE_KEY: value})
    for configuration in made():
        met = [w["name"] for w in configuration["webhooks"] if ".pods." in w["name"] and matches(w["namespaceSelector"], labels)]
        expected = value if value in {"strict", "best-effort", "audit"} else "default"
        assert met == ([] if value == "off" else [f"{expected}.pods.numalign.io"])


@pytest.mark.parametrize("name", ["kube-system", "kube-node-lease", "align", "gpu-operator"])
def test_system_own_and_exempt_namespaces_are_never_met(name: str) -> None:
    policy = Policy(exempt_namespaces=frozenset({"gpu-operator"}))
    for configuration in made(policy, Endpoint(namespace="align")):
        for webhook in configuration["webhooks"]:
            assert not matches(webhook["namespaceSelector"], {"kubernetes.io/metadata.name": name, MODE_KEY: "strict"})


def test_the_condition_names_accelerators_and_what_implies_them_but_no_nic() -> None:
    expression = condition(made()[1]["webhooks"][0], "accelerators")
    listed = json.loads(re.search(r"r in (\[.*?\])", expression)[1])
    assert listed == ["nvidia.com/gpu", "nvidia.com/gpumem"]
    pattern = json.loads(re.search(r'matches\((".*?")\)', expression)[1])
    assert re.search(pattern, "nvidia.com/mig-1g.10gb")
    assert not re.search(pattern, "xnvidia.com/mig-1g.10gbx")
    assert "object.spec.initContainers" in expression


def test_pods_with_claims_only_have_an_entry_of_their_own_that_cannot_block_them() -> None:
    mutating, validating = made()
    claims = entries(validating)["strict.claims.numalign.io"]
    assert claims["failurePolicy"] == "Ignore"
    assert condition(claims, "no-accelerators").startswith("!(")
    assert "resourceClaims" in condition(mutating["webhooks"][0], "accelerators-or-claims")
    assert "resourceClaims" not in condition(entries(validating)["strict.pods.numalign.io"], "accelerators")


def test_claims_of_several_devices_are_seen_and_never_blocked() -> None:
    for verb, configuration in zip(("mutate", "validate"), made(), strict=True):
        claims = entries(configuration)["strict.resourceclaims.numalign.io"]
        assert (
            claims["rules"][0] | {"apiGroups": ["resource.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"]}
            == claims["rules"][0]
        )
        assert claims["clientConfig"]["service"]["path"] == f"/{verb}/resourceclaims/strict"
        assert claims["failurePolicy"] == "Ignore"
        assert "count > 1" in condition(claims, "several-devices")
        assert "extended-resource-claim" in condition(claims, "not-allocated")
        written = [each["name"] for each in claims["matchConditions"] if each["name"] == "written-by-hand"]
        assert bool(written) == (verb == "validate")


def test_exempt_users_and_runtime_classes_do_not_depend_on_us() -> None:
    policy = Policy(exempt_users=frozenset({"system:a", 'b"c'}), exempt_runtime_classes=frozenset({"kata"}))
    for configuration in made(policy):
        webhook = configuration["webhooks"][0]
        assert condition(webhook, "not-an-exempt-user") == r'!(request.userInfo.username in ["b\"c", "system:a"])'
        assert '"kata"' in condition(webhook, "not-an-exempt-runtime-class")
    names = [c["name"] for c in made()[0]["webhooks"][0]["matchConditions"]]
    assert names == ["not-a-mirror-pod", "accelerators-or-claims"]


def test_workloads_are_advised_and_an_unchanged_template_is_left_alone() -> None:
    found = entries(made()[1])
    advised = {name: w for name, w in found.items() if ".workloads." in name}
    kinds = sorted(resource for w in advised.values() for rule in w["rules"] for resource in rule["resources"])
    assert kinds == ["cronjobs", "daemonsets", "deployments", "jobs", "jobsets", "statefulsets"]
    for webhook in advised.values():
        assert webhook["clientConfig"]["service"]["path"] == "/advise/workloads"
        assert condition(webhook, "pod-template-changed").startswith("oldObject == null || ")


def test_a_url_replaces_the_service() -> None:
    mutating, _ = made(endpoint=Endpoint(url="https://127.0.0.1:8443/"))
    assert mutating["webhooks"][0]["clientConfig"] == {"url": "https://127.0.0.1:8443/mutate/pods/strict"}


def test_the_order_of_sets_and_entries_changes_nothing() -> None:
    turned = Catalogue(reversed(CATALOGUE.entries))
    policy = Policy(exempt_namespaces=frozenset({"b", "a", "c"}))
    assert configurations(policy, turned, Endpoint()) == configurations(policy, CATALOGUE, Endpoint())

import pytest
import yaml

from webhook.config.catalogue import load_catalogue
from webhook.config.load import load_policy
from webhook.core.accelerators import Kind, NumaHint
from webhook.core.policy import Mode, Policy

GI = 1024**3


def load(tmp_path, spec, **document):
    file = tmp_path / "policy.yaml"
    whole = {"apiVersion": "numalign.io/v1alpha1", "kind": "Policy", "metadata": {"name": "p"}, "spec": spec, **document}
    file.write_text(yaml.safe_dump(whole))
    return load_policy(file)


def test_the_shipped_policy_is_strict_and_says_every_default():
    policy, errors = load_policy()
    assert errors == ()
    assert policy.mode is Mode.STRICT
    assert policy.builtin_classes == ()
    assert {"gpu-operator", "hami-system"} <= policy.exempt_namespaces
    assert {**vars_of(policy), "exempt_namespaces": frozenset()} == vars_of(Policy())


def vars_of(policy):
    return {name: getattr(policy, name) for name in Policy.__slots__}


def test_an_empty_spec_is_the_shipped_policy(tmp_path):
    assert load(tmp_path, {}) == load_policy()
    assert load(tmp_path, None) == load_policy()


def test_only_a_policy_that_says_so_exempts_no_namespace(tmp_path):
    shipped, _ = load_policy()
    assert load(tmp_path, {"mode": "audit"})[0].exempt_namespaces == shipped.exempt_namespaces
    assert load(tmp_path, {"exemptNamespaces": []}) == (Policy(), ())


def test_everything_arrives(tmp_path):
    policy, errors = load(
        tmp_path,
        {
            "mode": "off",
            "requireEnforcement": True,
            "coverage": "partial",
            "builtinClasses": ["dgx-h100"],
            "annotationMayRelax": True,
            "exemptNamespaces": ["infra"],
            "exempt": {"users": ["system:serviceaccount:ci:runner"], "runtimeClasses": ["kata"]},
            "accelerators": [{"name": "example.com/npu", "kind": "device", "vendor": "Example", "hint": "yes"}],
            "cpu": {"source": "request", "perAccelerator": 12, "default": "250m"},
            "memory": {"inject": "never", "default": "2Gi"},
            "hugepages": {"size": "2Mi", "perAccelerator": "4Gi"},
            "claims": {"shapePods": False, "prioritizedList": False},
            "shapeShared": True,
            "steer": False,
            "hami": False,
        },
    )
    assert errors == ()
    assert (policy.mode, policy.require_enforcement, policy.complete) == (Mode.OFF, True, False)
    assert (policy.builtin_classes, policy.annotation_may_relax) == (("dgx-h100",), True)
    assert (policy.exempt_namespaces, policy.exempt_runtime_classes) == ({"infra"}, {"kata"})
    assert policy.exempt_users == {"system:serviceaccount:ci:runner"}
    assert (policy.cpu.source, policy.cpu.per_accelerator, policy.cpu.default) == ("request", 12000, 250)
    assert (policy.memory.inject, policy.memory.default) == ("never", 2 * GI)
    assert (policy.hugepages.size, policy.hugepages.per_accelerator) == (2 * 1024**2, 4 * GI)
    assert (policy.claims.shape_pods, policy.claims.prioritized_list) == (False, False)
    assert (policy.shape_shared, policy.steer, policy.hami) == (True, False, False)
    assert [(entry.name, entry.kind, entry.hint) for entry in policy.accelerators] == [
        ("example.com/npu", Kind.DEVICE, NumaHint.YES)
    ]
    assert load_catalogue(policy).find("example.com/npu").is_accelerator
    assert load_catalogue().find("example.com/npu") is None


ENTRY = {"name": "a.b/c", "kind": "device", "vendor": "V"}


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({"mode": "strickt"}, "spec.mode", "did you mean strict?"),
        ({"mode": True}, "spec.mode", "expected one of strict, best-effort, audit, off"),
        ({"modes": "strict"}, "spec.modes", "did you mean mode?"),
        ({"claims": {"shapePod": True}}, "spec.claims.shapePod", "did you mean shapePods?"),
        ({"claims": {"prioritizedList": "no"}}, "spec.claims.prioritizedList", "expected true or false"),
        ({"builtinClass": []}, "spec.builtinClass", "did you mean builtinClasses?"),
        ({"builtinClasses": ["dgx-h10"]}, "spec.builtinClasses[0]", "did you mean dgx-h100?"),
        ({"builtinClasses": ["cray"]}, "spec.builtinClasses[0]", "there are aws-p4d-24xlarge"),
        ({"builtinClasses": "dgx-h100"}, "spec.builtinClasses", "expected a list"),
        ({"coverage": "full"}, "spec.coverage", "expected one of complete, partial"),
        ({"requireEnforcement": "yes"}, "spec.requireEnforcement", "expected true or false"),
        ({"exemptNamespaces": ["ok", "Not Ok"]}, "spec.exemptNamespaces[1]", "expected a name"),
        ({"exempt": {"user": []}}, "spec.exempt.user", "did you mean users?"),
        ({"cpu": {"source": "shared"}}, "spec.cpu.source", "did you mean share?"),
        ({"cpu": {"perAccelerator": "1500m"}}, "spec.cpu.perAccelerator", "whole CPUs"),
        ({"cpu": {"perAccelerator": 0}}, "spec.cpu.perAccelerator", "at least 1"),
        ({"cpu": {"default": 0}}, "spec.cpu.default", "more than 0"),
        ({"memory": {"inject": "sometimes"}}, "spec.memory.inject", "expected one of always, never"),
        ({"memory": {"default": "0"}}, "spec.memory.default", "more than 0"),
        ({"memory": {"default": "1GB"}}, "spec.memory.default", "expected a quantity"),
        ({"hugepages": {"perAccelerator": "1536Mi"}}, "spec.hugepages.perAccelerator", "whole number of pages"),
        ({"hugepages": {"size": "3Gi"}}, "spec.hugepages.size", "a power of two"),
        ({"accelerators": {}}, "spec.accelerators", "expected a list of entries"),
        ({"accelerators": [{**ENTRY, "kind": "gpu"}]}, "spec.accelerators[0].kind", "expected one of device, shared"),
        ({"accelerators": [{**ENTRY, "hint": "maybe"}]}, "spec.accelerators[0].hint", "expected one of yes, no, unknown"),
        ({"accelerators": [{**ENTRY, "name": "gpu"}]}, "spec.accelerators[0].name", "expected a resource name"),
        ({"accelerators": [{**ENTRY, "pattern": "a[.]b/.*"}]}, "spec.accelerators[0]", "either name or pattern"),
        ({"accelerators": [{"kind": "device", "vendor": "V"}]}, "spec.accelerators[0]", "either name or pattern"),
        ({"accelerators": [{"name": "a/b", "kind": "device"}]}, "spec.accelerators[0].vendor", "is required"),
        ({"accelerators": [{**ENTRY, "counts": {"per": 0}}]}, "spec.accelerators[0].counts", "expected each, one, none"),
        ({"accelerators": [{**ENTRY, "counts": "two"}]}, "spec.accelerators[0].counts", "expected each, one, none"),
        (
            {"accelerators": [{"pattern": ".*", "kind": "nic", "vendor": "V"}]},
            "spec.accelerators[0].pattern",
            "begins with a domain",
        ),
        (
            {"accelerators": [{"pattern": "a.b/.*", "kind": "nic", "vendor": "V"}]},
            "spec.accelerators[0].pattern",
            "begins with a domain",
        ),
        (
            {"accelerators": [{"pattern": "a/(", "kind": "nic", "vendor": "V"}]},
            "spec.accelerators[0].pattern",
            "no regular expression",
        ),
        ({"accelerators": [{"pattern": "a/(?!x).*", "kind": "nic", "vendor": "V"}]}, "spec.accelerators[0].pattern", "RE2"),
    ],
)
def test_says_what_is_wrong_and_where(tmp_path, spec, path, message):
    _, errors = load(tmp_path, spec)
    found = {error.path: error for error in errors}
    assert message in found[path].message
    assert found[path].file == str(tmp_path / "policy.yaml")
    assert found[path].line > 1


def test_all_errors_come_at_once(tmp_path):
    spec = {"mode": "x", "cpu": {"source": "y"}, "accelerators": [{"kind": "z"}], "builtinClasses": ["cray"]}
    _, errors = load(tmp_path, spec, kind="Polici")
    paths = {error.path for error in errors}
    assert paths >= {"kind", "spec.mode", "spec.cpu.source", "spec.accelerators[0].kind", "spec.builtinClasses[0]"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one Policy document, got 0"),
        ("{apiVersion: numalign.io/v1alpha1, kind: Policy}\n---\n{kind: Policy}\n", "got 2"),
        ("[1, 2]", "expected a Policy document"),
        ("a: [", "is no YAML"),
    ],
)
def test_a_file_holds_one_policy(tmp_path, text, message):
    file = tmp_path / "p.yaml"
    file.write_text(text)
    policy, errors = load_policy(file)
    assert policy == Policy()
    assert message in errors[0].message


def test_a_missing_file_is_an_error(tmp_path):
    _, errors = load_policy(tmp_path / "nope.yaml")
    assert "cannot be read" in errors[0].message

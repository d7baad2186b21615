"""Which mode counts: policy, namespace and pod; and what each handler does in each mode."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.setting import GPU, SINGLE, bare, kubelet, m128, mutated, named, pod, snapshot, validated
from webhook.core import decide
from webhook.core.decision import Request
from webhook.core.edit import put
from webhook.core.policy import MODE_KEY, Mode, Policy, effective_mode

KNOWN = snapshot(named(m128(kubelet(SINGLE)), "a"))
FITS = pod(bare())
NEVER_FITS = pod(bare(gpu=5))


@pytest.mark.parametrize(
    ("policy", "label", "annotation", "expected", "warns"),
    [
        (Mode.STRICT, None, None, Mode.STRICT, False),
        (Mode.AUDIT, None, None, Mode.AUDIT, False),
        (Mode.STRICT, "audit", None, Mode.AUDIT, False),
        (Mode.AUDIT, "strict", None, Mode.STRICT, False),
        (Mode.AUDIT, "strictest", None, Mode.AUDIT, True),
        # the pod moves towards stricter only
        (Mode.AUDIT, None, "strict", Mode.STRICT, False),
        (Mode.STRICT, "best-effort", "strict", Mode.STRICT, False),
        (Mode.STRICT, None, "best-effort", Mode.STRICT, True),
        (Mode.STRICT, None, "off", Mode.STRICT, True),
        (Mode.STRICT, "best-effort", "audit", Mode.BEST_EFFORT, True),
        (Mode.BEST_EFFORT, None, "maybe", Mode.BEST_EFFORT, True),
        (Mode.BEST_EFFORT, None, ["strict"], Mode.BEST_EFFORT, True),
        # off on the namespace is final, off by the policy is a default like any other
        (Mode.STRICT, "off", "strict", Mode.OFF, False),
        (Mode.OFF, None, "strict", Mode.STRICT, False),
    ],
)
def test_effective_mode(policy: Mode, label: str | None, annotation: Any, expected: Mode, warns: bool) -> None:
    annotations = {} if annotation is None else {MODE_KEY: annotation}
    mode, warnings = effective_mode(Policy(mode=policy), label, annotations)
    assert (mode, bool(warnings)) == (expected, warns)


def test_a_policy_may_let_pods_relax_their_mode() -> None:
    policy = Policy(annotation_may_relax=True)
    assert effective_mode(policy, "strict", {MODE_KEY: "off"}) == (Mode.OFF, ())
    assert effective_mode(policy, "off", {MODE_KEY: "strict"}) == (Mode.OFF, ())


@pytest.mark.parametrize(
    ("mode", "changed", "outcome"),
    [("strict", True, "mutated"), ("best-effort", True, "mutated"), ("audit", False, "unchanged"), ("off", False, "exempt")],
)
def test_mutating(mode: str, changed: bool, outcome: str) -> None:
    made, decision = mutated(FITS, KNOWN, mode)
    assert (made != FITS, decision.outcome) == (changed, outcome)


@pytest.mark.parametrize(
    ("mode", "allowed", "outcome"),
    [
        ("strict", False, "refused"),
        ("best-effort", True, "warned"),
        ("audit", True, "would-refuse"),
        ("off", True, "exempt"),
    ],
)
def test_validating_what_fits_nowhere(mode: str, allowed: bool, outcome: str) -> None:
    decision = validated(mutated(NEVER_FITS, KNOWN, mode)[0], KNOWN, mode)
    assert (decision.allowed, decision.outcome) == (allowed, outcome)
    if mode != "off":
        assert decision.reason == "TopologyAffinityError"
        assert decision.message
        assert decision.causes
        assert decision.warnings or mode == "strict"
        assert decision.audit["verdict"] == "not on a"


@pytest.mark.parametrize("mode", ["strict", "best-effort", "audit"])
def test_validating_what_fits(mode: str) -> None:
    decision = validated(mutated(FITS, KNOWN, mode)[0], KNOWN, mode)
    assert (decision.allowed, decision.outcome, decision.reason) == (True, "allowed", "Aligned")


def test_audit_tells_what_strict_would_have_changed() -> None:
    decision = validated(FITS, KNOWN, "audit")
    assert decision.warnings == (
        "numalign: strict mode would set container main: cpu unset -> 15, memory unset -> 63987Mi (requests = limits)",
    )
    assert decision.audit == {"verdict": "aligned on a", "would-mutate": "1 changes"}


def test_the_pods_own_annotation_counts_and_a_wrong_one_is_named() -> None:
    policy = Policy(mode=Mode.AUDIT)
    known = snapshot(named(m128(kubelet(SINGLE)), "a"), policy=policy)
    stricter = put(FITS, ("metadata", "annotations", MODE_KEY), "strict")
    assert decide.mutate(stricter, Request(), known).mode is Mode.STRICT
    wrong = decide.mutate(put(FITS, ("metadata", "annotations", MODE_KEY), "yes"), Request(), known)
    assert wrong.mode is Mode.AUDIT
    assert "must be strict, best-effort, audit or off" in wrong.warnings[0]


POLICY = Policy(
    exempt_namespaces=frozenset({"gpu-operator"}), exempt_users=frozenset({"root"}), exempt_runtime_classes=frozenset({"kata"})
)
EXEMPT = [
    (FITS, Request(namespace="gpu-operator"), "Namespace"),
    (FITS, Request(user="root"), "User"),
    (put(FITS, ("spec", "runtimeClassName"), "kata"), Request(), "RuntimeClass"),
    (put(FITS, ("metadata", "annotations", "kubernetes.io/config.mirror"), "x"), Request(), "MirrorPod"),
    (put(FITS, ("spec", "os"), {"name": "windows"}), Request(), "Windows"),
    (put(FITS, ("spec", "nodeSelector"), {"kubernetes.io/os": "windows"}), Request(), "Windows"),
    (FITS, Request(label="off"), "ModeOff"),
]


@pytest.mark.parametrize(("made", "request_", "reason"), EXEMPT)
def test_exempt(made: dict[str, Any], request_: Request, reason: str) -> None:
    known = snapshot(named(m128(kubelet(SINGLE)), "a"), policy=POLICY)
    for handler in (decide.mutate, decide.validate):
        decision = handler(made, request_, known)
        assert (decision.allowed, decision.outcome, decision.reason) == (True, "exempt", reason)
        assert not decision.patch
        assert not decision.warnings


@pytest.mark.parametrize(
    "containers",
    [
        [{"name": "a"}],
        [{"name": "a", "resources": {"limits": {"cpu": "0.5.1"}}}],
        [{"name": "a", "resources": {"limits": {"example.com/foo": 1, "nvidia.com/driver": 1}}}],
        [{"name": "a", "resources": {"limits": {GPU: "0"}}}],
        [{"name": "a", "resources": None}],
    ],
)
def test_without_accelerators_a_pod_is_none_of_our_business(containers: list[Any]) -> None:
    for handler in (decide.mutate, decide.validate):
        decision = handler({"spec": {"containers": containers}}, Request(), KNOWN)
        assert (decision.allowed, decision.outcome, decision.warnings) == (True, "not-ours", ())


@pytest.mark.parametrize(
    "made",
    [
        None,
        [],
        "pod",
        {},
        {"kind": "Deployment", "spec": {"template": {}}},
        {"spec": {"containers": "x"}},
        {"spec": {"containers": ["x"]}},
        {"spec": {"containers": [], "initContainers": 3}},
        {"spec": {"containers": [{"name": "a", "resources": [1]}]}},
        {"spec": {"containers": [{"name": "a", "resources": {"limits": [1]}}]}},
        {"spec": {"containers": [{"name": "a", "resources": {"limits": {GPU: "0.5"}}}]}},
        {"spec": {"containers": [{"name": "a", "resources": {"limits": {GPU: -1}}}]}},
        {"spec": {"containers": [{"name": "a", "resources": {"limits": {GPU: 1, "cpu": None}}}]}},
        pod(bare(), bare()),
        {"metadata": [], **{k: v for k, v in FITS.items() if k != "metadata"}},
    ],
)
def test_what_cannot_be_read_is_allowed_as_it_is_with_a_warning(made: Any) -> None:
    for handler in (decide.mutate, decide.validate):
        decision = handler(made, Request(label="strict"), KNOWN)
        assert (decision.allowed, decision.outcome, decision.patch) == (True, "malformed", ())
        assert decision.warnings[0].startswith("numalign: left as written: ")


def test_nesting_without_end() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    made = put(FITS, ("spec", "affinity"), {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [deep]}})
    assert decide.mutate(made, Request(label="strict"), KNOWN).outcome == "malformed"
    while deep:  # taken apart step by step: freeing it at once would nest as deep
        deep = deep.pop("a")

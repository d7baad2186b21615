"""Real GPU workloads against the built-in node classes: what strict mode does with each, on disk for review."""

from __future__ import annotations

import copy
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from tests.golden.files import GOLDEN, check
from webhook.config.catalogue import shipped_catalogue
from webhook.config.load import load_builtin_classes
from webhook.core import decide
from webhook.core.containers import Pod, field_path
from webhook.core.decision import Decision, Request
from webhook.core.snapshot import Snapshot
from webhook.core.workloads import Template, templates

MANIFESTS = sorted((GOLDEN.parent / "corpus" / "manifests").glob("*.yaml"))
STRICT = Request(label="strict")


@cache
def known() -> Snapshot:
    loaded = load_builtin_classes()
    assert not loaded.errors
    return Snapshot(catalogue=shipped_catalogue(), classes=loaded.classes)


@cache
def documents(path: Path) -> list[Any]:
    with path.open() as file:
        return [document for document in yaml.load_all(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if document]


@pytest.mark.golden
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_what_strict_mode_does_with_it(path: Path) -> None:
    found = {}
    for index, document in enumerate(documents(path)):
        for template in templates(document):
            found[f"{index} {field_path(template.path)}".strip()] = summary(template)
    counts = Counter(each if isinstance(each, str) else each["create"] for each in found.values())
    check(GOLDEN / "corpus" / f"{path.stem}.yaml", {"counts": dict(sorted(counts.items())), "pods": found})


def summary(template: Template) -> Any:
    original = copy.deepcopy(template.pod)
    made = decide.mutate(template.pod, STRICT, known())
    assert made.allowed
    assert template.pod == original, "a decision leaves its input alone"
    final = jsonpatch.apply_patch(template.pod, list(made.patch))
    assert decide.mutate(final, STRICT, known()).patch == ()
    answer = decide.validate(final, STRICT, known())
    if made.outcome in {"not-ours", "undescribed"}:
        return f"{made.outcome}: {made.reason}"
    return {"asks": asked(template.pod), "create": word(made), "warnings": list(made.warnings), "admission": word(answer)} | tail(
        answer
    )


def word(decision: Decision) -> str:
    return f"{decision.outcome}: {decision.reason}" if decision.reason else decision.outcome


def tail(answer: Decision) -> dict[str, Any]:
    by_outcome: dict[str, list[str]] = {}
    for name, verdict in answer.verdicts.items():
        by_outcome.setdefault(str(verdict.outcome), []).append(name)
    verdicts = {outcome: ", ".join(names) for outcome, names in by_outcome.items()}
    return ({"verdicts": verdicts} if verdicts else {}) | ({"message": answer.message} if answer.message else {})


def asked(pod: Pod) -> dict[str, Any]:
    both = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    return {each["name"]: each.get("resources") or {} for each in both}


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_advice_and_audit_take_it_too(path: Path) -> None:
    for document in documents(path):
        advice = decide.advise(document, Request(), known())
        assert advice.allowed
        assert all(len(warning) < 120 for warning in advice.warnings)
        for template in templates(document):
            for mode in ("audit", "best-effort"):
                assert decide.validate(template.pod, Request(label=mode), known()).allowed

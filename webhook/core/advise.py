"""Early advice on workloads: what strict mode will say about the pods that a controller is going to create from a template."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.core.containers import Path, Pod, field_path
from webhook.core.decision import Decision
from webhook.core.mutate import shortened
from webhook.core.policy import Mode
from webhook.core.workloads import Template, templates

Audit = Callable[[Pod], Decision]


def advise_on(workload: Any, mode: Mode, audit: Audit) -> Decision:
    """Return warnings about the pod templates of a workload; it is always allowed.

    `audit`: what audit mode decides on a pod, which is what strict mode would have done.
    """
    findings = [(template, audit(template.pod)) for template in templates(workload)]
    ours = [(template, decision) for template, decision in findings if decision.outcome != "not-ours"]
    if not ours:
        return Decision(allowed=True, mode=mode, outcome="not-ours", reason="NoAccelerator")
    lines = [line for template, decision in ours for line in _lines(template, decision)]
    worst = next((decision for _, decision in ours if decision.outcome == "would-refuse"), ours[0][1])
    return Decision(
        allowed=True,
        mode=mode,
        outcome="warned" if lines else "allowed",
        reason=worst.reason,
        message=worst.message,
        causes=worst.causes,
        warnings=shortened(lines),
        verdicts=worst.verdicts,
    )


def _lines(template: Template, decision: Decision) -> list[str]:
    where = _name(template.path)
    if decision.outcome == "would-refuse":
        return [f"strict mode will refuse the pods of {where}", *(_bare(warning) for warning in decision.warnings)]
    if decision.outcome in {"warned", "undescribed", "malformed"}:
        return [f"{where}: {_bare(warning)}" for warning in decision.warnings]
    return []


def _name(path: Path) -> str:
    return field_path(path) or "this object"


def _bare(warning: str) -> str:
    return warning.removeprefix("numalign: ")

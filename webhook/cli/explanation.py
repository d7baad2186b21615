"""What `numalign explain` finds out about one pod, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jsonpatch

from webhook.cli.manifests import Found
from webhook.core import decide, explain, validate, wellformed
from webhook.core.change import Change
from webhook.core.containers import Pod, field_path, visit
from webhook.core.decision import Decision, Request
from webhook.core.edit import get, put
from webhook.core.explain import Account
from webhook.core.fixes import Fix
from webhook.core.limitranges import with_defaults
from webhook.core.snapshot import Snapshot
from webhook.core.verdict import Outcome, Placement, Verdict


@dataclass(frozen=True, slots=True)
class Explanation:
    """What becomes of one pod.

    Attributes:
        stored: the pod as the API server hands it to the webhook: requests that are missing come from the limits.
        mutated: the mutating handler's decision.
        final: the validating handler's decision on the pod as mutated.
        after: the pod as mutated.
        before: class -> verdict on the pod as written.
        account: why classes do not align it, and what would help.
    """

    found: Found
    stored: Pod
    mutated: Decision
    final: Decision
    after: Pod
    before: Mapping[str, Verdict]
    account: Account

    @property
    def allowed(self) -> bool:
        """Tell whether the pod would be created."""
        return self.mutated.allowed and self.final.allowed

    def data(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "file": self.found.document.file,
            "line": self.found.line,
            "object": self.found.title,
            "mode": str(self.final.mode),
            "allowed": self.allowed,
            "outcome": self.mutated.outcome if self.mutated.patch and self.allowed else self.final.outcome,
            "message": self.final.message or self.mutated.message,
            "warnings": list(dict.fromkeys((*self.mutated.warnings, *self.final.warnings))),
            "classes": [self._class(name, verdict) for name, verdict in self.final.verdicts.items()],
            "patch": [dict(operation) for operation in self.mutated.patch],
            "fixes": [self._fix(fix) for fix in self.account.fixes],
        }

    def _class(self, name: str, verdict: Verdict) -> dict[str, Any]:
        return {
            "class": name,
            "verdict": str(verdict.outcome),
            "says": self.says(name, verdict),
            "beforeMutation": str(self.before.get(name, verdict).outcome),
            "masks": {container: mask and list(mask) for container, mask in verdict.masks.items()},
            "placements": {container: _placement(each) for container, each in verdict.placements.items()},
        }

    def says(self, name: str, verdict: Verdict) -> str:
        """Return one class's verdict with its reason."""
        reason = self.account.whys.get(name)
        return reason.text if reason else explain.summary(verdict)

    def _fix(self, fix: Fix) -> dict[str, Any]:
        return {"classes": list(fix.classes), "changes": [self._change(change) for change in fix.changes]}

    def _change(self, change: Change) -> dict[str, Any]:
        return {
            "file": self.found.document.file,
            "line": self.found.line_of(change.path),
            "container": change.container,
            "field": field_path((*self.found.template.path, *change.path)),
            "present": change.present or None,
            "value": change.value or None,
            "advice": explain.advice(self._as_in_manifest(change)),
        }

    def _as_in_manifest(self, change: Change) -> Change:
        """Leave out the request where the manifest has none: the API server takes it from the limit."""
        asked = get(self.found.pod, (*change.where, "resources", "requests", change.resource))
        return change if asked is not None else replace(change, fields=change.fields[-1:])


def _placement(placement: Placement) -> dict[str, Any]:
    return {
        "cpus": list(placement.cpus),
        "memory": {str(cell): size for cell, size in placement.memory.items()},
        "devices": {name: {str(cell): count for cell, count in counts.items()} for name, counts in placement.devices.items()},
    }


def examine(found: Found, snapshot: Snapshot, label: str | None, ranges: Iterable[Any] = ()) -> Explanation:
    """Send a pod through both handlers, as the API server would, and account for what is not aligned.

    `ranges`: the LimitRange objects of its namespace.
    """
    request = Request(namespace=found.namespace, label=label)
    stored = _defaulted(found.pod, ranges)
    mutated = decide.mutate(stored, request, snapshot)
    after: Pod = jsonpatch.apply_patch(stored, mutated.patch) if mutated.patch else stored
    final = decide.validate(after, request, snapshot)
    sight = snapshot if wellformed.problems(stored) else decide.seen(stored, request, snapshot)
    before = validate.judged(stored, sight).verdicts if mutated.patch else final.verdicts
    return Explanation(found, stored, mutated, final, after, before, _account(after, final.verdicts, sight))


def _defaulted(pod: Pod, ranges: Iterable[Any]) -> Pod:
    """Return the pod with requests taken from limits (`pkg/apis/core/v1/defaults.go`), then with what LimitRanges add.

    One that is malformed stays as it is.
    """
    if wellformed.problems({key: value for key, value in pod.items() if key != "kind"}):
        return pod
    for container in visit(pod):
        limits, requests = container.quantities("limits"), container.quantities("requests")
        if limits.keys() - requests.keys():
            pod = put(pod, (*container.path, "resources", "requests"), {**limits, **requests})
    return with_defaults(pod, ranges)


def _account(after: Pod, verdicts: Mapping[str, Verdict], snapshot: Snapshot) -> Account:
    """Where some class aligns the pod, the others are accounted for but nothing needs fixing."""
    account = validate.account(validate.Case(after, (), verdicts), snapshot)
    aligned = any(verdict.outcome is Outcome.ALIGNED for verdict in verdicts.values())
    return replace(account, fixes=()) if aligned else account

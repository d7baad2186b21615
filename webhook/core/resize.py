"""In-place resize (`pods/resize`, KEP-1287): never mutated, and refused in strict mode only if it loses an alignment."""

from __future__ import annotations

from webhook.core.containers import Pod
from webhook.core.decision import Decision
from webhook.core.judging import is_met
from webhook.core.policy import Mode
from webhook.core.snapshot import Snapshot
from webhook.core.validate import accepted, judged, refuses, rejected, warned


def resize_pod(old: Pod, new: Pod, mode: Mode, snapshot: Snapshot) -> Decision:
    """Return the decision on a resize of a well-formed pod, judged as if the new pod were created on an idle node."""
    before, after = judged(old, snapshot), judged(new, snapshot)
    lost = is_met(before.verdicts, before.classes) and not is_met(after.verdicts, after.classes)
    if not lost or not refuses(after, snapshot):
        return accepted(after, mode)
    if mode is Mode.STRICT:
        return rejected(after, mode, snapshot)
    return warned(after, mode, snapshot, "would-refuse" if mode is Mode.AUDIT else "warned")

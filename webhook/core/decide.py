"""Deciding on admission requests: the one door to the core for the server and the command line.

What is not our business leaves by the first `if`, before anything is copied or judged. Everything else is decided on the pod's
essence, in a form that knows no order of keys, and remembered by it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from webhook.core import record
from webhook.core.accelerators import Catalogue, asks
from webhook.core.advise import advise_on
from webhook.core.decision import Decision, Request
from webhook.core.dra import seen as dra
from webhook.core.dra.pods import unread, with_claims
from webhook.core.dra.reading import NOTHING, Found, look_up
from webhook.core.dra.references import references
from webhook.core.essence import essence
from webhook.core.mutate import mutate_pod, shortened
from webhook.core.policy import Mode, Policy, effective_mode
from webhook.core.resize import resize_pod
from webhook.core.snapshot import Snapshot
from webhook.core.validate import validate_pod
from webhook.core.wellformed import problems

__all__ = ["Snapshot", "advise", "mutate", "validate"]

_MIRROR = "kubernetes.io/config.mirror"
_OS = "kubernetes.io/os"

MOST_CONTAINERS = 64
"""Judging many more takes longer than the API server waits; nobody has a real pod of that size."""

_Handler = Callable[[dict[str, Any], Mode, Snapshot], Decision]


def mutate(pod: Any, request: Request, snapshot: Snapshot) -> Decision:
    """Return how a pod that is being created should be changed; it is always allowed. Never raises on any JSON."""
    return _decide("mutate", mutate_pod, pod, request, snapshot, claims=True)


def validate(pod: Any, request: Request, snapshot: Snapshot) -> Decision:
    """Return whether a pod may be created, or resized where the request carries the old one. Never raises on any JSON."""
    if request.old is None:
        return _decide("validate", validate_pod, pod, request, snapshot, claims=True)
    if problems(request.old):
        return Decision(allowed=True, mode=snapshot.policy.mode, outcome="malformed", reason="OldObject")
    try:
        old = _canonical(request.old)
    except (RecursionError, TypeError):
        return Decision(allowed=True, mode=snapshot.policy.mode, outcome="malformed", reason="OldObject")

    def resized(new: dict[str, Any], mode: Mode, known: Snapshot) -> Decision:
        return resize_pod(json.loads(old), new, mode, known)

    return _decide(f"resize {old}", resized, pod, request, snapshot)


def advise(workload: Any, request: Request, snapshot: Snapshot) -> Decision:
    """Return warnings about the pods that a workload will create; it is always allowed. Never raises on any JSON."""

    def audit(pod: Any) -> Decision:
        mode, _ = _mode(pod, request, snapshot.policy)
        strictest = replace(request, label=Mode.OFF if mode is Mode.OFF else Mode.AUDIT)
        return _decide("advise", lambda each, _, known: validate_pod(each, Mode.AUDIT, known), pod, strictest, snapshot)

    mode, _ = effective_mode(snapshot.policy, request.label, {})
    return advise_on(workload, mode, audit)


def seen(pod: Any, request: Request, snapshot: Snapshot) -> Snapshot:
    """Return the set in force as a well-formed pod sees it, by what can be read of its claims."""
    mode, _ = _mode(pod, request, snapshot.policy)
    return dra.seen(pod, look_up(pod, request, snapshot), mode, snapshot.within(request.namespace))


def _decide(name: str, handler: _Handler, pod: Any, request: Request, snapshot: Snapshot, *, claims: bool = False) -> Decision:
    by_resources, by_claims = _may_be_ours(pod, snapshot.catalogue), claims and bool(references(pod))
    if not by_resources and not by_claims:
        return Decision(allowed=True, mode=snapshot.policy.mode, outcome="not-ours", reason="NoAccelerator")
    mode, notes = _mode(pod, request, snapshot.policy)
    left_alone = _left_alone(pod, mode, request, snapshot.policy)
    if left_alone is not None:
        return left_alone
    try:
        kept = _canonical(pod)
    except (RecursionError, TypeError):
        return _malformed(mode, "left as written: nested too deeply, or no JSON")
    known = snapshot.within(request.namespace)
    # What claims ask for stands in other objects, which may change: that is part of the question.
    read = look_up(pod, request, known) if by_claims else NOTHING
    key = (name, mode, kept, known.bounds, read.key)
    decision = known.remembered.get(key, lambda: _on_essence(name, handler, json.loads(kept), mode, known, read))
    missing = unread(pod, read, known.inventory, lone=not by_resources) if by_claims else ()
    if missing and decision.outcome == "not-ours":
        decision = replace(decision, outcome="allowed" if name == "validate" else "unchanged", reason="ClaimsNotRead")
    return replace(decision, warnings=(*shortened(notes), *decision.warnings, *missing)) if notes or missing else decision


def _left_alone(pod: Any, mode: Mode, request: Request, policy: Policy) -> Decision | None:
    """Return the decision on a pod that is exempt, or that cannot be judged; None: it is neither."""
    exempt = "ModeOff" if mode is Mode.OFF else _exemption(pod, request, policy)
    if exempt:
        return Decision(allowed=True, mode=mode, outcome="exempt", reason=exempt)
    found = problems(pod)
    if found:
        return _malformed(mode, f"left as written: {found[0]}")
    if _containers(pod["spec"]) > MOST_CONTAINERS:
        return _malformed(mode, f"left as written, not judged: more than {MOST_CONTAINERS} containers", "TooManyContainers")
    return None


def _on_essence(name: str, handler: _Handler, pod: dict[str, Any], mode: Mode, snapshot: Snapshot, read: Found) -> Decision:
    # A mutation starts from the author's pod: an affinity of ours must not hide the classes off which it keeps the pod.
    sight = dra.seen(record.undo(pod).pod if name == "mutate" else pod, read, mode, snapshot)
    if sight.claims is None and not asks(pod, snapshot.catalogue).accelerators:
        return Decision(allowed=True, mode=mode, outcome="not-ours", reason="NoAccelerator")
    decision = handler(pod, mode, sight)
    return with_claims(decision, pod, mode, read, sight) if name == "validate" and sight.claims is not None else decision


def _canonical(pod: Mapping[str, Any]) -> str:
    """Return the pod's essence as text, the same whatever the order of its keys."""
    return json.dumps(essence(pod), separators=(",", ":"), sort_keys=True)


def _malformed(mode: Mode, text: str, reason: str = "Malformed") -> Decision:
    """The API server judges the form of a pod itself, and says more about it than we could."""
    return Decision(allowed=True, mode=mode, outcome="malformed", reason=reason, warnings=shortened([text]))


def _may_be_ours(pod: Any, catalogue: Catalogue) -> bool:
    """Tell whether a container names an accelerator, or the pod is so odd that this cannot be told."""
    spec = pod.get("spec") if isinstance(pod, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("containers"), list):
        return True
    inits = spec.get("initContainers") or ()
    if not isinstance(inits, (list, tuple)):
        return True
    return any(_names_accelerator(raw, catalogue) for raw in (*spec["containers"], *inits))


def _containers(spec: Mapping[str, Any]) -> int:
    return len(spec["containers"]) + len(spec.get("initContainers") or ())


def _names_accelerator(raw: Any, catalogue: Catalogue) -> bool:
    if not isinstance(raw, dict):
        return True
    resources = raw.get("resources")
    if not resources:
        return False
    if not isinstance(resources, dict):
        return True
    for side in ("limits", "requests"):
        amounts = resources.get(side) or ()
        if amounts and not isinstance(amounts, dict):
            return True
        for name in amounts:
            entry = catalogue.find(name) if isinstance(name, str) else None
            if entry is not None and entry.is_accelerator:
                return True
    return False


def _mode(pod: Any, request: Request, policy: Policy) -> tuple[Mode, tuple[str, ...]]:
    return effective_mode(policy, request.label, _annotations(pod))


def _annotations(pod: Any) -> Mapping[str, Any]:
    metadata = pod.get("metadata") if isinstance(pod, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def _exemption(pod: Any, request: Request, policy: Policy) -> str:
    """Return the stable word for why a pod is left alone; empty: it is not."""
    if request.namespace in policy.exempt_namespaces:
        return "Namespace"
    if request.user in policy.exempt_users:
        return "User"
    spec = pod.get("spec") if isinstance(pod, dict) else None
    if not isinstance(spec, dict):
        return ""
    if _MIRROR in _annotations(pod):
        return "MirrorPod"
    runtime = spec.get("runtimeClassName")
    if isinstance(runtime, str) and runtime in policy.exempt_runtime_classes:
        return "RuntimeClass"
    return "Windows" if _is_windows(spec) else ""


def _is_windows(spec: Mapping[str, Any]) -> bool:
    system, selector = spec.get("os"), spec.get("nodeSelector")
    named = system.get("name") if isinstance(system, dict) else None
    return named == "windows" or (isinstance(selector, dict) and selector.get(_OS) == "windows")

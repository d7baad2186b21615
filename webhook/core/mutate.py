"""The mutating handler: from a plan to a patch, our annotations, and warnings about what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from webhook.core import judging, record, wording
from webhook.core.accelerators import Asks
from webhook.core.containers import Container, Path, Pod, visit
from webhook.core.decision import Decision
from webhook.core.dra.extended import backing_class
from webhook.core.dra.served import is_claimed
from webhook.core.edit import get, put
from webhook.core.judging import Verdicts
from webhook.core.kubelet.totals import pod_total
from webhook.core.patch import ANNOTATIONS, HAMI_ALIGNMENT, INJECTED, NODE_AFFINITY, VERDICT, changes, operations
from webhook.core.plan import Plan, plan
from webhook.core.policy import Mode
from webhook.core.quantities import NANO, parse, value
from webhook.core.resource_names import CPU, MEMORY
from webhook.core.snapshot import Snapshot
from webhook.core.verdict import Outcome

NO_CLASS_SERVES: Final = "NoClassServesClaims"

_MOST_WARNINGS = 8


def mutate_pod(pod: Pod, mode: Mode, snapshot: Snapshot) -> Decision:
    """Return the decision on a well-formed pod that asks for accelerators (its essence is enough)."""
    if mode is Mode.AUDIT:
        return Decision(allowed=True, mode=mode, outcome="unchanged", reason="Audit")
    undone = record.undo(pod)
    made = plan(undone.pod, mode, snapshot, pod if undone.recorded else None)
    warnings = [undone.warning] if undone.warning else []
    if not made.candidates:
        return unserved(mode, snapshot, warnings) or undescribed(mode, made.wanted, snapshot, warnings)
    if judging.is_invalid(made.verdicts):
        return invalid(mode, made.verdicts)
    final = pod if made.pod is pod else annotated(made)
    patch = operations(pod, final)
    warnings += [*made.notes, *_unknown_names(made.wanted), *(described(made.author, final) if patch else ())]
    return Decision(
        allowed=True,
        mode=mode,
        outcome="mutated" if patch else "unchanged",
        reason="" if patch else reason_unchanged(made),
        warnings=shortened(warnings),
        audit={"verdict": verdict_line(made.verdicts)},
        patch=patch,
        verdicts=made.verdicts,
        injected_cpu=_requested(final, CPU) / NANO - _requested(pod, CPU) / NANO,
        injected_memory=value(_requested(final, MEMORY)) - value(_requested(pod, MEMORY)),
    )


def annotated(made: Plan) -> Pod:
    """Return the planned pod with our annotations; none where nothing was injected."""
    text = record.write(made.author, made.pod, made.steering)
    if not text:
        return made.pod
    pod = put(made.pod, (*ANNOTATIONS, INJECTED), text)
    return put(pod, (*ANNOTATIONS, VERDICT), verdict_line(made.verdicts))


def undescribed(mode: Mode, wanted: Asks, snapshot: Snapshot, warnings: Iterable[str] = ()) -> Decision:
    """Return the decision on a pod that no described class can take: nothing is known, so nothing is done."""
    offered = frozenset[str]().union(*(each.offers for each in snapshot.candidates))
    missing = sorted({ask.resource for ask in wanted.accelerators} - offered)
    backing = {name: backing_class(name, snapshot.inventory) for name in missing}
    if missing and all(backing.values()):
        reason = "ServedByDra"
        text = f"{missing[0]} is served by DRA ({backing[missing[0]]}), which aligns nothing; a claim of its own can be aligned"
    elif missing:
        reason, text = "NoClassOffers", f"no node class offers {wording.some(missing, 2)}; left as written"
    else:
        reason, text = "NoClassMatches", "no node class matches the pod's devices, selectors and tolerations; left as written"
    return _undescribed(mode, reason, text, warnings)


def _undescribed(mode: Mode, reason: str, text: str, warnings: Iterable[str]) -> Decision:
    return Decision(
        allowed=True,
        mode=mode,
        outcome="undescribed",
        reason=reason,
        warnings=shortened([*warnings, text]),
        audit={"verdict": text},
    )


def unserved(mode: Mode, snapshot: Snapshot, warnings: Iterable[str] = ()) -> Decision | None:
    """Return the decision on a pod that asks for accelerators by claims alone, and that no class can take; None: another pod."""
    if snapshot.claims is None or not snapshot.claims.lone:
        return None
    if not snapshot.claims.unserved:
        # Without any class nothing is to be said; with some, the pod's selectors and tolerations leave none of them.
        lines = [] if not snapshot.classes else ["no node class matches the pod's devices, selectors and tolerations"]
        return Decision(
            allowed=True, mode=mode, outcome="undescribed", reason="NoClassMatches", warnings=shortened([*warnings, *lines])
        )
    name, why = next(iter(snapshot.claims.unserved.items()))
    return _undescribed(mode, NO_CLASS_SERVES, f"no node class has the devices of its claims; {name}: {why}", warnings)


def invalid(mode: Mode, verdicts: Verdicts) -> Decision:
    """Return the decision on a pod that the API server refuses: that is the API server's to say."""
    first = next(iter(verdicts.values()))
    lines = [f"left as written: {first.message}"]
    return Decision(allowed=True, mode=mode, outcome="malformed", reason="Invalid", warnings=shortened(lines), verdicts=verdicts)


def verdict_line(verdicts: Verdicts) -> str:
    """Return all verdicts in one short line: `aligned on a, b; not on c`."""
    words: dict[str, list[str]] = {"aligned on": [], "beside claimed devices on": [], "not on": []}
    for name, verdict in verdicts.items():
        aligned = verdict.outcome is Outcome.ALIGNED
        words["aligned on" if aligned else "beside claimed devices on" if is_claimed(verdict) else "not on"].append(name)
    parts = [f"{word} {wording.some(names)}" for word, names in words.items() if names]
    return wording.shortened("; ".join(parts))


def reason_unchanged(made: Plan) -> str:
    """Return the stable word for why nothing was changed."""
    if any(verdict.outcome is Outcome.ALIGNED for verdict in made.verdicts.values()):
        return "AlignedAsWritten"
    return "Claims" if any(map(is_claimed, made.verdicts.values())) else "NothingAligns"


def described(before: Pod, after: Pod) -> Iterator[str]:
    """Yield a line for each container that changes, with the values before and after, then one for each other change."""
    for container in visit(after):
        line = _amounts(before, after, container.path)
        if line:
            yield f"container {container.name}: {line}"
    pod_level = _amounts(before, after, ("spec",))
    if pod_level:
        yield f"pod: {pod_level}"
    for path, _, new in changes(before, after):
        if path[:3] == NODE_AFFINITY:
            yield "node affinity added, to keep the pod on the node classes that can align it"
        elif path[-1] == HAMI_ALIGNMENT:
            yield f"annotation {HAMI_ALIGNMENT}: {new}"


def _amounts(before: Pod, after: Pod, path: Path) -> str:
    """Return `cpu 3500m -> 4, memory limit unset -> 64Gi (requests = limits)`: an injection always makes both equal."""
    old, new = (get(pod, (*path, "resources")) or {} for pod in (before, after))
    parts = []
    for name, amount in sorted((new.get("limits") or {}).items()):
        had = {side: (old.get(side) or {}).get(name) for side in ("requests", "limits")}
        if any(value != (new.get(side) or {}).get(name) for side, value in had.items()):
            parts.append(f"{name} {_step(had['requests'], had['limits'], amount)}")
    return f"{', '.join(parts)} (requests = limits)" if parts else ""


def _step(request: str | None, limit: str | None, amount: str) -> str:
    """Return `3500m -> 4`; where one of both has the amount already, the other one is named: `limit unset -> 4`."""
    if request == amount:
        return f"limit {limit or 'unset'} -> {amount}"
    if limit == amount:
        return f"request {request or 'unset'} -> {amount}"
    was = request if request == limit or limit is None else f"{request or 'unset'} to {limit}"
    return f"{was or 'unset'} -> {amount}"


def shortened(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return warnings cut to their length, and not too many of them."""
    lines = [wording.shortened(f"numalign: {line}") for line in warnings]
    if len(lines) > _MOST_WARNINGS:
        lines = [*lines[: _MOST_WARNINGS - 1], f"numalign: and {len(lines) - _MOST_WARNINGS + 1} more changes"]
    return tuple(lines)


def _unknown_names(wanted: Asks) -> Iterator[str]:
    for name in wanted.unknown:
        yield f"{name} is no accelerator that the catalogue knows; it was not counted"


def _requested(pod: Pod, resource: str) -> int:
    """Return nano units that the scheduler counts for the pod."""
    pod_level = get(pod, ("spec", "resources", "requests", resource))
    if pod_level is not None:
        return parse(pod_level)
    return pod_total((c.kind, {resource: _request(c, resource)}) for c in visit(pod)).get(resource, 0)


def _request(container: Container, resource: str) -> int:
    written = container.quantities("requests").get(resource, container.quantities("limits").get(resource))
    return 0 if written is None else parse(written)

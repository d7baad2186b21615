"""The mutating handler: from a plan to a patch, our annotations, and warnings about what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from webhook.core import record, wording
from webhook.core.accelerators import Asks
from webhook.core.containers import Container, Path, Pod, visit
from webhook.core.decision import Decision
from webhook.core.edit import get, put
from webhook.core.kubelet.totals import pod_total
from webhook.core.patch import ANNOTATIONS, INJECTED, MISSING, VERDICT, changes, operations
from webhook.core.plan import Plan, plan
from webhook.core.policy import Mode
from webhook.core.quantities import NANO, parse, value
from webhook.core.resource_names import CPU, MEMORY
from webhook.core.snapshot import Snapshot
from webhook.core.verdict import Outcome, Verdict

_MOST_WARNINGS = 8


def mutate_pod(pod: Pod, mode: Mode, snapshot: Snapshot) -> Decision:
    """Return the decision on a well-formed pod that asks for accelerators (its essence is enough)."""
    if mode is Mode.AUDIT:
        return Decision(allowed=True, mode=mode, outcome="unchanged", reason="Audit")
    undone = record.undo(pod)
    made = plan(undone.pod, mode, snapshot, pod if undone.recorded else None)
    warnings = [undone.warning] if undone.warning else []
    if not made.candidates:
        return undescribed(mode, made.wanted, snapshot, warnings)
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
    if missing:
        reason, text = "NoClassOffers", f"no node class offers {wording.some(missing, 2)}; left as written"
    else:
        reason, text = "NoClassMatches", "no node class matches the pod's devices, selectors and tolerations; left as written"
    return Decision(
        allowed=True,
        mode=mode,
        outcome="undescribed",
        reason=reason,
        warnings=shortened([*warnings, text]),
        audit={"verdict": text},
    )


def verdict_line(verdicts: Mapping[str, Verdict]) -> str:
    """Return all verdicts in one short line: `aligned on a, b; not on c`."""
    aligned = [name for name, verdict in verdicts.items() if verdict.outcome is Outcome.ALIGNED]
    others = [name for name, verdict in verdicts.items() if verdict.outcome is not Outcome.ALIGNED]
    parts = [f"{word} {wording.some(names)}" for word, names in (("aligned on", aligned), ("not on", others)) if names]
    return wording.shortened("; ".join(parts))


def reason_unchanged(made: Plan) -> str:
    """Return the stable word for why nothing was changed."""
    aligned = any(verdict.outcome is Outcome.ALIGNED for verdict in made.verdicts.values())
    return "AlignedAsWritten" if aligned else "NothingAligns"


def described(before: Pod, after: Pod) -> Iterator[str]:
    """Yield a line for each container that changes, with the values before and after, and one for steering."""
    names = {container.path: container for container in visit(after)}
    changed: dict[Path, list[str]] = {}
    for path, old, new in changes(before, after):
        if path[0] == "spec" and "resources" in path:
            changed.setdefault(path[:3] if path[:3] in names else ("spec",), []).append(_one(path, old, new))
        elif path[0] == "spec":
            changed.setdefault(path, [])
        elif path[-1] not in {INJECTED, VERDICT}:
            changed.setdefault(path, []).append(f"{path[-1]}: {new}")
    for path, lines in changed.items():
        yield _line(path, names.get(path), lines)


def _line(path: Path, container: Container | None, lines: list[str]) -> str:
    if container is not None:
        return f"container {container.name}: " + ", ".join(dict.fromkeys(lines))
    if "affinity" in path:
        return "node affinity added, to keep the pod on the node classes that can align it"
    return ("pod: " if path == ("spec",) else "annotation ") + ", ".join(dict.fromkeys(lines))


def _one(path: Path, old: object, new: object) -> str:
    side = "limit" if path[-2] == "limits" else "request"
    return f"{path[-1]} {side} {'unset' if old is MISSING else old} -> {'unset' if new is MISSING else new}"


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

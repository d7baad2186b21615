"""Verdicts in words: what to tell the people whose pod was refused, warned about or judged (DESIGN section 7).

A refusal fits a terminal and reads top-down: what, then a line per class, then the nearest fix.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from webhook.core import fixes, wording
from webhook.core.accelerators import Catalogue
from webhook.core.change import Change
from webhook.core.containers import Pod, field_path
from webhook.core.decision import Cause
from webhook.core.dra.served import CLAIMED, is_claimed
from webhook.core.fixes import Created, Diagnosis, Fix, Judge
from webhook.core.kubelet import admit
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.reasons import UNALIGNED, Why, why, word
from webhook.core.verdict import Outcome, Verdict

HEADLINE: Final = (
    "no node class serves this pod from one NUMA node (a part of a machine with CPUs, memory and devices of its own)"
)
CLAIMED_HEADLINE: Final = "the kubelet of no node class admits this pod"
"""Of a pod whose accelerators DRA gives out: nobody aligns them, so admission is all that there is to reach."""

_MOST_GROUPS: Final = 8
_TERMINAL: Final = 110
_NO_FIX: Final = "Lowering what its containers ask for, or adding limits, does not align it on any of these classes."
_NONE_FOUND: Final = "No change that would align it was found."


@dataclass(frozen=True, slots=True)
class Account:
    """Everything there is to say about a pod that is not aligned.

    Attributes:
        whys: class -> why it does not align the pod, sorted by class.
        fixes: the nearest change, then others for classes that it does not serve.
        thorough: no search was cut short; without fixes, there are none of the kind that is looked for.
        claimed: admission is all that there is to reach, for DRA gives out the accelerators.
    """

    whys: Mapping[str, Why]
    fixes: tuple[Fix, ...]
    thorough: bool = True
    claimed: bool = False

    @property
    def aim(self) -> str:
        """Return what the pod should be."""
        return "admitted" if self.claimed else "aligned"


def account(
    pod: Pod,
    judged: Mapping[str, Verdict],
    nodes: Mapping[str, NodeKubelet],
    catalogue: Catalogue,
    judge: Judge = admit.judge,
    created: Created | None = None,
) -> Account:
    """Return why the classes that do not align the pod do not, and what would help.

    Args:
        pod: the pod that was judged.
        judged: candidate class -> verdict; aligned ones are passed over.
        nodes: class -> its kubelet, of at least these classes.
        catalogue: tells accelerators from NICs.
        judge: gives the verdict on a changed pod.
        created: what becomes of a changed pod that is created anew; what our mutation fills in is then not asked of the author.
    """
    open_questions = {name: verdict for name, verdict in sorted(judged.items()) if verdict.outcome is not Outcome.ALIGNED}
    diagnoses = {
        name: _undisputed(verdict) or fixes.diagnose(pod, nodes[name], catalogue, judge)
        for name, verdict in open_questions.items()
    }
    found = fixes.nearest(pod, diagnoses, nodes, judge, created)
    if created and found and not any(change.evens_out for fix in found for change in fix.changes):
        # What the mutation fills in by itself is nobody's fault.
        diagnoses = {name: replace(diagnosis, missing=()) for name, diagnosis in diagnoses.items()}
    whys = {name: why(pod, verdict, nodes[name], diagnoses[name]) for name, verdict in open_questions.items()}
    return Account(whys, found, not any(diagnosis.exhausted for diagnosis in diagnoses.values()))


def _undisputed(verdict: Verdict) -> Diagnosis | None:
    """Return an empty diagnosis where nothing that the author could change is at issue."""
    return Diagnosis() if verdict.outcome is Outcome.UNKNOWN or is_claimed(verdict) else None


def message(found: Account) -> str:
    """Return the refusal as people read it: what, a line per class, the nearest fix."""
    headline = CLAIMED_HEADLINE if found.claimed else HEADLINE
    return "\n".join([f"{headline}:", *(f"  {line}" for line in class_lines(found.whys)), *fix_lines(found)])


def class_lines(whys: Mapping[str, Why]) -> list[str]:
    """Return a line per class, classes with the same reason together, and how many more where they are too many.

    Several clauses that do not fit one line stand below each other.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, reason in whys.items():
        groups.setdefault(reason.clauses, []).append(name)
    shown = list(groups.items()) if len(groups) <= _MOST_GROUPS else list(groups.items())[: _MOST_GROUPS - 1]
    lines = [line for clauses, names in shown for line in _group(wording.some(names), clauses)]
    rest = sum(len(names) for names in list(groups.values())[len(shown) :])
    return [*lines, f"{rest} more node classes: reasons of the same kind"] if rest else lines


def _group(names: str, clauses: tuple[str, ...]) -> list[str]:
    line = f"{names}: {'; '.join(clauses)}"
    if len(clauses) == 1 or len(line) <= _TERMINAL:
        return [line]
    return [f"{names}:", *(f"  - {clause}" for clause in clauses)]


def fix_lines(found: Account) -> list[str]:
    """Return the nearest fix as container, field, present value and value that works; then the other ones, shorter."""
    if not found.fixes:
        return [_NO_FIX if found.thorough else _NONE_FOUND] if found.whys else []
    first, *others = found.fixes
    title = _title(first, found)
    lines = [f"{title} (on {wording.some(first.classes)}):", *(f"  {_field(change)}" for change in first.changes)]
    served = set(first.classes)
    for other in others:
        more = [name for name in other.classes if name not in served]
        also = " as well" if served.issubset(other.classes) else ""
        lines += [f"Or, for {wording.some(more)}{also}:", *(f"  {_field(change)}" for change in other.changes)]
        served.update(more)
    return lines


def _title(first: Fix, found: Account) -> str:
    if found.claimed:
        return "Nearest change after which it is admitted"
    return "Nearest change that aligns it" if len(first.changes) == 1 else "Nearest changes that align it together"


def _field(change: Change) -> str:
    return f"container {change.container}, {change.short_field}: {advice(change)}"


def advice(change: Change) -> str:
    """Return what to do with one field: `now 5, use 4`."""
    if not change.value:
        return f"now {change.present}, remove it"
    both = " (limits and requests)" if len(change.fields) > 1 else ""
    return f"now {change.present or 'missing'}, use {change.value}{both}"


def causes(found: Account) -> tuple[Cause, ...]:
    """Return one cause per field of the nearest fix; without a fix one that carries each reason."""
    reason = reason_of(found.whys.values())
    if found.fixes:
        first = found.fixes[0]
        on = f"then {found.aim} on {wording.some(first.classes)}"
        return tuple(Cause(field_path(c.path), reason, f"{c.container}: {advice(c)}; {on}") for c in first.changes)
    return tuple(Cause("spec", each.word, each.text) for each in dict.fromkeys(found.whys.values()))


def reason_of(whys: Iterable[Why]) -> str:
    """Return the word that most classes share; of equally common ones the first in the alphabet."""
    counted = Counter(each.word for each in whys if each.word)
    return min(counted, key=lambda each: (-counted[each], each), default="")


def warnings(found: Account) -> tuple[str, ...]:
    """Return the same in warnings of a line each: one per reason, one per field of the nearest fix."""
    groups: dict[str, list[str]] = {}
    for name, reason in found.whys.items():
        groups.setdefault(reason.text.removeprefix(UNALIGNED), []).append(name)
    lines = [f"not {found.aim} on {wording.some(names, 1)}: {text}" for text, names in list(groups.items())[:_MOST_GROUPS]]
    for fix in found.fixes[:1]:
        verb = "have it admitted" if found.claimed else "align it"
        lines += [f"{_field(change)}, to {verb} on {wording.some(fix.classes, 1)}" for change in fix.changes]
    return tuple(wording.shortened(line) for line in lines)


def summary(verdict: Verdict) -> str:
    """Return a verdict in a few words, from itself alone: for logs, tables and the annotation."""
    match verdict.outcome:
        case Outcome.ALIGNED:
            return _where(verdict)
        case Outcome.ADMITTED:
            if is_claimed(verdict):
                return f"admitted: {'; '.join(dict.fromkeys(gap.detail for gap in verdict.gaps if gap.reason == CLAIMED))}"
            gaps = dict.fromkeys(f"{gap.reason} ({gap.container})" if gap.container else gap.reason for gap in verdict.gaps)
            return f"admitted, not aligned: {wording.some(list(gaps), 2)}" if gaps else "admitted, not aligned"
        case Outcome.REFUSED:
            return f"refused: {word(verdict)}"
        case _:
            return f"unknown: {verdict.unknown or 'left to chance'}"


def _where(verdict: Verdict) -> str:
    """Return where an aligned pod is; container by container where they are apart."""
    masks = {name: mask for name, mask in verdict.masks.items() if mask is not None}
    if len(set(masks.values())) <= 1:
        return f"aligned on NUMA {wording.nodes(next(iter(masks.values()), (0,)))}"
    return "aligned: " + wording.some([f"{name} on NUMA {wording.nodes(mask)}" for name, mask in masks.items()])

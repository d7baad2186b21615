"""What `numalign explain` finds out about one claim, or the claims of a template."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jsonpatch

from webhook.cli.manifests import namespace_of
from webhook.cli.output import table, to_yaml
from webhook.config.documents import Document
from webhook.core.decision import Decision, Request
from webhook.core.dra import claims, decide
from webhook.core.dra.allocation import Fits
from webhook.core.dra.manifests import claim_of
from webhook.core.dra.plan import ClaimPlan
from webhook.core.dra.references import LookupFailedError, Reference
from webhook.core.snapshot import Snapshot

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLOURS = {Fits.YES: "green", Fits.NO: "red", Fits.UNKNOWN: "magenta"}


@dataclass(frozen=True, slots=True)
class ClaimExplanation:
    """What becomes of one claim.

    Attributes:
        plan: the attribute, and which nodes can satisfy it; None where the claim cannot be read or is none of our business.
        mutated: the mutating handler's decision.
        final: the validating handler's decision on the claim as mutated.
        devices: `spec.devices` as mutated.
    """

    document: Document
    plan: ClaimPlan | None
    mutated: Decision
    final: Decision
    devices: Any

    @property
    def allowed(self) -> bool:
        """Tell whether the claim would be created."""
        return self.final.allowed

    def data(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        value, plan = self.document.value, self.plan
        name = (value.get("metadata") or {}).get("name") or "-"
        return {
            "file": self.document.file,
            "line": self.document.line(()),
            "object": f"{value['kind']}/{name}",
            "mode": str(self.final.mode),
            "allowed": self.allowed,
            "outcome": self.final.outcome if not self.allowed else self.mutated.outcome,
            "message": self.final.message,
            "warnings": list(dict.fromkeys((*self.mutated.warnings, *self.final.warnings))),
            "attribute": (plan.attribute if plan else "") or None,
            "says": decide.summary(plan) if plan else None,
            "classes": [self._node(plan, node) for node in plan.plain] if plan else [],
            "patch": [dict(operation) for operation in self.mutated.patch],
        }

    @staticmethod
    def _node(plan: ClaimPlan, node: str) -> dict[str, Any]:
        aligned = plan.aligned.get(node)
        return {
            "class": node,
            "devices": str(plan.plain[node]),
            "aligned": str(aligned) if aligned else None,
            "says": plan.whys.get(node, ""),
        }

    def page(self) -> Iterator[RenderableType]:
        """Yield what people read."""
        from rich.markup import escape  # noqa: PLC0415

        data, plan = self.data(), self.plan
        word = f"[green]{data['outcome']}[/]" if self.allowed else "[red]refused[/]"
        yield f"\n[bold]{escape(data['file'])}:{data['line']}  {escape(data['object'])}[/]  {data['mode']}: {word}"
        if plan and plan.plain:
            rows = [
                (node, _word(plain), _word(plan.aligned.get(node)), plan.whys.get(node, "")) for node, plain in plan.plain.items()
            ]
            yield table(("class or node", "has the devices", "on one NUMA node", "why not"), rows)
        if plan:
            yield escape(data["says"])
        yield from (f"[yellow]warning[/] {escape(text)}" for text in data["warnings"])
        if self.mutated.patch:
            yield "[bold]What the webhook makes of spec.devices[/]"
            yield escape("".join(f"  {line}\n" for line in to_yaml(self.devices).splitlines()).rstrip())


def _word(answer: Fits | None) -> str:
    return f"[{_COLOURS[answer]}]{answer}[/]" if answer else "-"


@dataclass(frozen=True, slots=True)
class Documents:
    """The claims and templates of manifests, for the pods that stand in the same ones: a `references.Lookup`."""

    documents: tuple[Document, ...]

    def find(self, namespace: str, reference: Reference) -> Any:
        """Return the object that a pod refers to.

        Raises:
            LookupFailedError: it is not among them.
        """
        for document in self.documents:
            value = document.value
            metadata = value.get("metadata") if isinstance(value.get("metadata"), dict) else {}
            stands_in = namespace_of(document) or namespace
            if (value.get("kind"), metadata.get("name"), stands_in) != (reference.kind, reference.name, namespace):
                continue
            if claim_of(value):
                return value
        raise LookupFailedError("it is not in these files")


def examine(document: Document, snapshot: Snapshot, label: str | None) -> ClaimExplanation | None:
    """Send the claim of a document through both handlers; None: there is none in it."""
    claim = claim_of(document.value)
    if claim is None:
        return None
    request = Request(namespace=str(((claim["metadata"] or {}).get("namespace")) or ""), label=label)
    mutated = decide.mutate_claim(claim, request, snapshot)
    after = jsonpatch.apply_patch(claim, list(mutated.patch)) if mutated.patch else claim
    final = decide.validate_claim(after, request, snapshot)
    ours = mutated.outcome not in {"malformed", "exempt"}
    plan = decide.planned(claim, claims.devices(claim), mutated.mode, snapshot) if ours else None
    return ClaimExplanation(document, plan, mutated, final, claims.devices(after) if ours else None)

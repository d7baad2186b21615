"""`numalign explain`: what becomes of the pods in a manifest, class by class."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.inputs import Exit, config_options, fail, load_snapshot, output_option
from webhook.cli.output import coloured, emit, progress, table, to_yaml
from webhook.core.containers import Pod
from webhook.core.edit import get, put
from webhook.core.limitranges import limits_of
from webhook.core.patch import ANNOTATIONS, INJECTED

if TYPE_CHECKING:
    from rich.console import RenderableType

    from webhook.cli.claim_explanation import ClaimExplanation
    from webhook.cli.explanation import Explanation
    from webhook.core.snapshot import Snapshot

_MAPS: Final = 1
_DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


@click.command("explain")
@config_options
@output_option()
@click.option("-f", "--file", "files", multiple=True, required=True, metavar="FILE", help="Manifest, directory, or - for stdin.")
@click.option(
    "--mode", type=click.Choice(["strict", "best-effort", "audit"]), help="The namespace's mode. Default: the policy's."
)
@click.option("--class", "only", multiple=True, metavar="NAME", help="Show these node classes only; each with its map.")
def command(
    policy_file: Path | None,
    class_paths: tuple[Path, ...],
    fmt: str,
    files: tuple[str, ...],
    mode: str | None,
    only: tuple[str, ...],
) -> None:
    """Say what becomes of each pod in the manifests: per node class the verdict, the mutation, where it lands, what to change.

    Any kind with a pod template will do, and claims and their templates; LimitRanges among them count in their namespace.
    Exit code 1 if something would be refused.
    """
    snapshot = _restricted(load_snapshot(policy_file, class_paths), only)
    explained = list(_explain(files, snapshot, mode))
    maps = len(only) or _MAPS
    emit(
        [each.data() for each in explained], fmt, lambda: [part for each in explained for part in _any_page(each, snapshot, maps)]
    )
    raise SystemExit(Exit.FITS if all(each.allowed for each in explained) else Exit.REFUSED)


def _restricted(snapshot: Snapshot, only: tuple[str, ...]) -> Snapshot:
    names = [node.node_class.name for node in snapshot.classes]
    unknown = [name for name in only if name not in names]
    if unknown:
        fail([f"no class is called {unknown[0]!r}; there are {', '.join(names)}"])
    return replace(snapshot, classes=tuple(n for n in snapshot.classes if n.node_class.name in only)) if only else snapshot


def _explain(files: tuple[str, ...], snapshot: Snapshot, mode: str | None) -> Iterator[Explanation | ClaimExplanation]:
    from webhook.cli import claim_explanation, manifests  # noqa: PLC0415
    from webhook.cli.explanation import examine  # noqa: PLC0415

    names = manifests.expand(files)
    with progress(names, "manifests") as each:
        read = [manifests.read_objects([name]) for name in each]
    errors = [error for _, problems in read for error in problems]
    if errors:
        fail(errors)
    objects = [document for documents, _ in read for document in documents]
    found = [pod for document in objects for pod in manifests.pods(document)]
    ranges = manifests.limit_ranges(objects)
    snapshot = replace(snapshot, lookup=claim_explanation.Documents(tuple(objects)), limits=limits_of(chain(*ranges.values())))
    claims = [claim for document in objects if (claim := claim_explanation.examine(document, snapshot, mode)) is not None]
    if not found and not claims:
        fail([f"no pod, no pod template and no claim in {', '.join(files)}"])
    yield from claims
    with progress(found, "pods") as pods:
        yield from (examine(pod, snapshot, mode, ranges.get(pod.namespace, ())) for pod in pods)


def _any_page(explained: Explanation | ClaimExplanation, snapshot: Snapshot, maps: int) -> Iterator[RenderableType]:
    from webhook.cli.claim_explanation import ClaimExplanation  # noqa: PLC0415

    return explained.page() if isinstance(explained, ClaimExplanation) else _page(explained, snapshot, maps)


def _page(explained: Explanation, snapshot: Snapshot, maps: int) -> Iterator[RenderableType]:
    from rich.markup import escape  # noqa: PLC0415

    data = explained.data()
    word = f"[green]{data['outcome']}[/]" if data["allowed"] else "[red]refused[/]"
    yield f"\n[bold]{escape(data['file'])}:{data['line']}  {escape(data['object'])}[/]  {data['mode']}: {word}"
    if explained.final.verdicts:
        yield table(("class", "verdict", "why, or where"), _rows(explained))
    elif not data["allowed"]:
        yield escape(data["message"])
    yield from (f"[yellow]warning[/] {escape(text)}" for text in data["warnings"])
    yield from _fixes(data)
    yield from _diff(explained)
    yield from _maps(explained, snapshot, maps)


def _rows(explained: Explanation) -> list[tuple[str, str, str]]:
    """Return a row per verdict and reason, the classes that share them together."""
    from rich.markup import escape  # noqa: PLC0415

    groups: dict[tuple[str, str], list[str]] = {}
    for name, verdict in explained.final.verdicts.items():
        before = explained.before.get(name, verdict)
        changed = f" (was {coloured(before.outcome)})" if before.outcome is not verdict.outcome else ""
        groups.setdefault((coloured(verdict.outcome) + changed, escape(explained.says(name, verdict))), []).append(name)
    return [("\n".join(names), verdict, says) for (verdict, says), names in groups.items()]


def _fixes(data: dict[str, Any]) -> Iterator[RenderableType]:
    from rich.markup import escape  # noqa: PLC0415

    for index, fix in enumerate(data["fixes"]):
        lead = "Nearest change that aligns it" if index == 0 else "Or"
        yield f"[bold]{lead}[/] (on {', '.join(fix['classes'])}):"
        for change in fix["changes"]:
            where = f"{change['file']}:{change['line']}  container {change['container']}, {change['field']}"
            yield escape(f"  {where}: {change['advice']}")


def _diff(explained: Explanation) -> Iterator[RenderableType]:
    if not explained.mutated.patch:
        return
    from rich.text import Text  # noqa: PLC0415

    before, after = (to_yaml(_without_record(pod)).splitlines() for pod in (explained.stored, explained.after))
    yield "[bold]What the webhook changes[/]"
    for line in list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]:
        yield Text(f"  {line}", style=_DIFF_COLOURS.get(line[:1], ""))


def _without_record(pod: Pod) -> Pod:
    """Our record repeats what the diff shows."""
    if not get(pod, (*ANNOTATIONS, INJECTED)):
        return pod
    return put(pod, (*ANNOTATIONS, INJECTED), "(the record of these changes)")


def _maps(explained: Explanation, snapshot: Snapshot, most: int) -> Iterator[RenderableType]:
    from webhook.cli.numamap import draw  # noqa: PLC0415

    nodes = {node.node_class.name: node for node in snapshot.classes}
    landed = [(name, verdict) for name, verdict in explained.final.verdicts.items() if verdict.placements]
    landed.sort(key=lambda pair: not pair[1].aligned)
    for name, verdict in landed[:most]:
        yield f"[bold]Where it lands on {name}[/]"
        yield draw(nodes[name], verdict)
    if len(landed) > most:
        yield f"[dim]{len(landed) - most} more, not drawn: choose with --class NAME[/]"

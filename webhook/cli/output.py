"""How results are printed: data as JSON or YAML, tables by rich."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from webhook.core.verdict import Outcome

Item = TypeVar("Item")

PLAIN_WIDTH: Final = 130
"""Columns where the output is no terminal: a file or a pipe wraps nothing."""

COLOURS: Final = {"aligned": "green", "admitted": "yellow", "refused": "red", "unknown": "magenta"}


def emit(data: Any, fmt: str, render: Callable[[], Iterable[RenderableType]]) -> None:
    """Print data as JSON or YAML, or what `render` makes of it."""
    if fmt == "json":
        click.echo(json.dumps(data, indent=2))
    elif fmt == "yaml":
        click.echo(to_yaml(data), nl=False)
    else:
        show(render())


def to_yaml(data: Any) -> str:
    """Return data as YAML, keys in their own order, no aliases; a list becomes one document an item."""
    import yaml  # noqa: PLC0415

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, _data: Any) -> bool:
            return True

    dump = yaml.dump_all if isinstance(data, list) else yaml.dump
    return str(dump(data, Dumper=Dumper, sort_keys=False, width=PLAIN_WIDTH, allow_unicode=True))


def show(parts: Iterable[RenderableType]) -> None:
    """Print by rich: as wide as the terminal, or wide enough and without trailing blanks where there is none."""
    from rich.console import Console  # noqa: PLC0415

    if sys.stdout.isatty():
        console = Console(highlight=False)
        for part in parts:
            console.print(part)
        return
    plain = Console(highlight=False, width=PLAIN_WIDTH, color_system=None, file=io.StringIO())
    with plain.capture() as captured:
        for part in parts:
            plain.print(part)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def table(headings: Sequence[str], rows: Iterable[Sequence[RenderableType]], title: str | None = None) -> Table:
    """Return a plain table. Its first column holds names, which stay whole to be copied; nothing is cut off in the others."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    made = Table(*headings, box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for index, column in enumerate(made.columns):
        column.no_wrap, column.overflow = index == 0, "fold"
    for row in rows:
        made.add_row(*row)
    return made


def coloured(outcome: Outcome) -> str:
    """Return a verdict's word in its colour, as rich markup."""
    return f"[{COLOURS[outcome]}]{outcome}[/]"


@contextmanager
def progress(items: Sequence[Item], label: str) -> Iterator[Iterable[Item]]:
    """Show a bar on stderr while many items are worked through; none for a single one, nor where nobody looks."""
    if len(items) < 2 or not sys.stderr.isatty():
        yield items
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import track  # noqa: PLC0415

    yield track(items, description=label, console=Console(stderr=True), transient=True)

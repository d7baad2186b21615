"""`python -m tests.bench`: a table of what is promised and what was measured. Nothing here is a test; machines differ."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench import claims, decisions, serving


def main() -> None:
    console = Console()
    table = Table("what", "target", "measured", "", "besides")
    with tempfile.TemporaryDirectory() as directory, console.status("measuring"):
        found = [row for part in (decisions, claims, serving) for row in part.rows(Path(directory))]
        for row in found:
            table.add_row(row.name, row.target, row.measured, "[green]met[/]" if row.met else "[red]missed[/]", row.besides)
    console.print(table)


if __name__ == "__main__":
    main()

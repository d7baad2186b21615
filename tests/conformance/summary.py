"""One table of several runs of `tests.conformance.run --record`: cases by policy, scope and minor, and how many differ.

python -m tests.conformance.summary FILE...
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.compare import Agreement

Cell = tuple[str, str]
Counts = dict[int, dict[Cell, Counter[str]]]

COMPARED = (Agreement.SAME, Agreement.DIFFERENT)


def read(files: Iterable[Path]) -> Counts:
    """Return minor -> (policy, scope) -> agreement -> cases, over all files."""
    found: Counts = {}
    for file in files:
        record: dict[str, Any] = json.loads(file.read_text())
        cells = found.setdefault(record["minor"], {})
        for cell in record["cells"]:
            key = (cell.pop("policy"), cell.pop("scope"))
            cells.setdefault(key, Counter()).update(cell)
    return found


def table(counts: Counts) -> str:
    """Return a Markdown table. A cell says on how many cases both gave a verdict, and, if any, on how many those differ.

    Policies and scopes that no kubelet knows have no row: none starts with them.
    """
    minors = sorted(counts, reverse=True)
    keys = sorted({key for cells in counts.values() for key, cell in cells.items() if any(cell[each] for each in COMPARED)})
    rows = [(f"{policy}, {scope}", [counts[minor].get((policy, scope), Counter()) for minor in minors]) for policy, scope in keys]
    rows.append(("all", [sum(counts[minor].values(), Counter()) for minor in minors]))
    lines = ["| policy, scope | " + " | ".join(f"1.{minor}" for minor in minors) + " |", "|---" * (len(minors) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(map(_cell, cells)) + " |" for name, cells in rows]
    return "\n".join(lines)


def _cell(counts: Counter[str]) -> str:
    compared, differing = sum(counts[each] for each in COMPARED), counts[Agreement.DIFFERENT]
    return f"{compared:,}" + (f", {differing} differ" if differing else "")


def main(given: Sequence[str]) -> int:
    """Print the table, and what became of the cases that are not in it."""
    counts = read(map(Path, given))
    print(table(counts))
    for minor, cells in sorted(counts.items(), reverse=True):
        left = sum(cells.values(), Counter())
        print(f"1.{minor}: {left.total():,} cases; " + ", ".join(f"{left[each]:,} {each}" for each in Agreement if left[each]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

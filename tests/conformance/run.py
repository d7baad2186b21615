"""Run random cases through the model and through the kubelet's own managers, and count where they agree.

    python -m tests.conformance.run --minor 37 --cases 20000 --seed 1

Exits with 1 on a disagreement, with 2 where there is no oracle (unless --optional is given: then it says so and exits with 0).
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from tests.conformance import generator
from tests.conformance.compare import Agreement, Answer, ask_model, ask_oracle, compare, describe, difference, oracle_path
from tests.conformance.shrink import shrink

JSON = dict[str, Any]
NONE = "none"

Cell = tuple[str, str]

NO_ORACLE = """\
NO ORACLE: {binary} is missing; build it with `make -C tests/conformance/kubelet MINOR={minor}`.
The verdict was NOT compared with the kubelet's own code."""


class Report:
    """Agreements by policy and scope, and the cases on which the two differ."""

    def __init__(self, minor: int) -> None:
        self.minor = minor
        self.cells: dict[Cell, Counter[Agreement]] = {}
        self.admitted = 0
        self.judged = 0
        self.differing: list[tuple[int, JSON]] = []

    def add(self, number: int, case: JSON, ours: Answer, theirs: JSON) -> None:
        """Count one case."""
        agreement = compare(ours, theirs)
        config = case["nodeClass"]["spec"]["kubelet"]
        cell = (config["topologyManagerPolicy"] or NONE, config.get("topologyManagerScope", "container"))
        self.cells.setdefault(cell, Counter())[agreement] += 1
        if agreement in (Agreement.SAME, Agreement.DIFFERENT):
            self.judged += 1
            self.admitted += theirs["admitted"]
        if agreement is Agreement.DIFFERENT:
            self.differing.append((number, case))

    def counts(self, seed: int) -> JSON:
        """Return the counts as `tests.conformance.summary` reads them."""
        cells = [{"policy": policy, "scope": scope, **self.cells[policy, scope]} for policy, scope in sorted(self.cells)]
        return {"minor": self.minor, "seed": seed, "admitted": self.admitted, "judged": self.judged, "cells": cells}

    def table(self) -> str:
        """Return the counts as a Markdown table."""
        columns = list(Agreement)
        lines = [f"| 1.{self.minor} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
        rows = {" / ".join(cell): self.cells[cell] for cell in sorted(self.cells)}
        rows["all"] = sum(self.cells.values(), Counter())
        lines += [f"| {name} | " + " | ".join(str(counts[column]) for column in columns) + " |" for name, counts in rows.items()]
        return "\n".join(lines)


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, default=37, choices=(34, 35, 36, 37))
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--workers", type=int, default=2, help="oracle processes")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each case by the oracle, to see chance at work")
    parser.add_argument("--timeout", default="30s", help="time that the kubelet has for a case")
    parser.add_argument("--shrink", type=int, default=3, help="disagreements to reduce to their smallest form")
    parser.add_argument("--save", type=Path, help="file for the differing cases, JSON lines")
    parser.add_argument("--record", type=Path, help="file for the counts, to be read by tests.conformance.summary")
    parser.add_argument("--optional", action="store_true", help="without an oracle: say so, and succeed")
    return parser.parse_args(given)


def compare_all(options: argparse.Namespace, binary: Path) -> Report:
    """Judge every case twice."""
    report = Report(options.minor)
    make = partial(generator.cases, options.seed, options.cases, options.minor, options.first)
    answers = ask_oracle(binary, make(), workers=options.workers, repeat=options.repeat, timeout=options.timeout)
    for number, (case, theirs) in enumerate(zip(make(), answers, strict=True), start=options.first):
        report.add(number, case, _answer(case), theirs)
    return report


def _answer(case: JSON) -> Answer:
    """A model that falls over is one that disagrees."""
    try:
        return ask_model(case)
    except Exception as error:  # noqa: BLE001
        return Answer({}, unknown=f"{type(error).__name__}: {error}")


def differences(binary: Path, cases: list[JSON]) -> list[str]:
    """Return for each case in what model and oracle differ."""
    answers = ask_oracle(binary, cases, repeat=3, timeout="10s")
    return [_difference(_answer(case), theirs) for case, theirs in zip(cases, answers, strict=True)]


def _difference(ours: Answer, theirs: JSON) -> str:
    return difference(ours, theirs) if compare(ours, theirs) is Agreement.DIFFERENT else ""


def show(report: Report, binary: Path, most: int) -> None:
    """Print the first disagreements in their smallest form."""
    for number, case in islice(report.differing, most):
        small = shrink(case, partial(differences, binary))
        (theirs,) = ask_oracle(binary, [small])
        print(f"\ncase {number}, reduced:\n{json.dumps(small)}\n{describe(_answer(small), theirs)}")


def main(given: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    options = arguments(given)
    binary = oracle_path(options.minor)
    if not binary.exists():
        print(NO_ORACLE.format(binary=binary, minor=options.minor), file=sys.stderr)
        return 0 if options.optional else 2
    begun = time.monotonic()
    report = compare_all(options, binary)
    spent = time.monotonic() - begun
    print(report.table())
    print(f"\n{options.cases} cases, seed {options.seed}, {spent:.0f} s: {report.judged} compared, {report.admitted} admitted,")
    print(f"{len(report.differing)} differ")
    if options.save:
        options.save.write_text("".join(json.dumps({"number": number, **case}) + "\n" for number, case in report.differing))
    if options.record:
        options.record.write_text(json.dumps(report.counts(options.seed)))
    if report.differing:
        print(f"numbers: {[number for number, _ in report.differing[:50]]}")
        show(report, binary, options.shrink)
    return 1 if report.differing else 0


if __name__ == "__main__":
    sys.exit(main())

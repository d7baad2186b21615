"""Run random claims through the webhook's encodings and the scheduler's own allocator, and count what was promised and kept.

    python -m tests.conformance.dra.run --minor 37 --cases 20000 --seed 1

Exits with 1 on a fault, with 2 where there is no allocator (unless --optional is given: then it says so and exits with 0).
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from tests.conformance.dra import check, generator

JSON = dict[str, Any]

BATCH = 500
NO_ALLOCATOR = """\
NO ALLOCATOR: {binary} is missing; build it with `make -C tests/conformance/dra MINOR={minor}`.
The encodings were NOT tried on the scheduler's own code."""


def judged(cases: Iterator[JSON], minor: int, counts: Counter[str]) -> Iterator[tuple[JSON, list[JSON], list[str]]]:
    """Yield each case with the allocator's answers and what is wrong."""
    while batch := [check.subject(case) for case in islice(cases, BATCH)]:
        asked = [list(check.questions(each)) for each in batch]
        answers = iter(check.ask(check.allocator_path(minor), [question for each in asked for question in each]))
        for each, mine in zip(batch, asked, strict=True):
            found = list(islice(answers, len(mine)))
            yield each.case, found, list(check.faults(each, found, counts))
            counts["cases"] += 1
            counts["cases with required"] += bool(each.strict.encoding and each.strict.encoding.required)
            counts["cases with preferred"] += bool(each.best_effort.encoding)


def main(given: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, default=37, choices=tuple(check.VERSIONS))
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--show", type=int, default=3, help="faults to print")
    parser.add_argument("--optional", action="store_true", help="without an allocator: say so, and succeed")
    options = parser.parse_args(given)
    binary = check.allocator_path(options.minor)
    if not binary.exists():
        print(NO_ALLOCATOR.format(binary=binary, minor=options.minor), file=sys.stderr)
        return 0 if options.optional else 2
    counts, wrong, begun = Counter[str](), [], time.monotonic()
    cases = generator.cases(options.seed, options.cases, options.first)
    for number, (case, _, faults) in enumerate(judged(cases, options.minor, counts), start=options.first):
        if faults:
            wrong.append(number)
            if len(wrong) <= options.show:
                print(f"case {number}: {faults}\n{json.dumps(case)}\n")
    print("\n".join(f"{name:<32} {count}" for name, count in sorted(counts.items())))
    print(
        f"\n1.{options.minor}, seed {options.seed}, {time.monotonic() - begun:.0f} s: {len(wrong)} cases with faults {wrong[:50]}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

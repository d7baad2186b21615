"""Run random claims through the webhook's encodings and the scheduler's own allocator, and count what was promised and kept.

    python -m tests.conformance.dra.run --minor 37 --cases 20000 --seed 1
    python -m tests.conformance.dra.run --minor 37 --per-encoding 20000

The second goes on until each encoding had that many claims to prove itself. Claims near the API's limits come first.
Exits with 1 on a fault, with 2 where there is no allocator (unless --optional is given: then it says so and exits with 0).
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Any

from tests.conformance.dra import check, generator, limits

JSON = dict[str, Any]

BATCH = 500
WORDS = ("required", "preferred")
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


def _enough(cases: Iterator[JSON], counts: Counter[str], wanted: int) -> Iterator[JSON]:
    """Yield cases until each encoding had `wanted` of them."""
    return takewhile(lambda _: min(counts[f"{word}: cases"] for word in WORDS) < wanted, cases)


def _table(counts: Counter[str]) -> Iterator[str]:
    titles = ("cases", "created", "asked", "could be aligned", "could not", "fits as written")
    yield f"{'':<12}" + "".join(f"{title:>18}" for title in titles)
    for word in WORDS:
        yield f"{word:<12}" + "".join(f"{counts[f'{word}: {title}'] or '':>18}" for title in titles)
    yield ""
    yield from (f"{name:<20}{count}" for name, count in sorted(counts.items()) if name.partition(":")[0] not in WORDS)


def main(given: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    options = _options(given)
    binary = check.allocator_path(options.minor)
    if not binary.exists():
        print(NO_ALLOCATOR.format(binary=binary, minor=options.minor), file=sys.stderr)
        return 0 if options.optional else 2
    counts, begun = Counter[str](), time.monotonic()
    wrong = _run("limit", iter(limits.CASES), options, counts)
    if options.per_encoding:
        numbered = generator.cases(options.seed, sys.maxsize, options.first)
        wrong += _run("case", _enough(numbered, counts, options.per_encoding), options, counts)
    else:
        wrong += _run("case", generator.cases(options.seed, options.cases, options.first), options, counts)
    print("\n".join(_table(counts)))
    print(f"\n1.{options.minor}, seed {options.seed}, {time.monotonic() - begun:.0f} s: {len(wrong)} with faults {wrong[:50]}")
    return 1 if wrong else 0


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, default=37, choices=tuple(check.VERSIONS))
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--per-encoding", type=int, default=0, help="go on until each encoding had that many cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--show", type=int, default=3, help="faults to print")
    parser.add_argument("--optional", action="store_true", help="without an allocator: say so, and succeed")
    return parser.parse_args(given)


def _run(kind: str, cases: Iterator[JSON], options: argparse.Namespace, counts: Counter[str]) -> list[str]:
    """Return the names of the cases with faults; print the first ones."""
    wrong = []
    for number, (case, _, faults) in enumerate(judged(cases, options.minor, counts), start=options.first):
        if faults:
            wrong.append(f"{kind} {number}")
            if len(wrong) <= options.show:
                print(f"{wrong[-1]}: {faults}\n{json.dumps(case)[:4000]}\n")
    return wrong


if __name__ == "__main__":
    sys.exit(main())

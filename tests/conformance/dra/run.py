"""Run random claims through the webhook's encodings and the scheduler's own allocator, and count what was promised and kept.

    python -m tests.conformance.dra.run --minor 37 --cases 20000 --seed 1
    python -m tests.conformance.dra.run --minor 34 --minor 37 --per-encoding 20000

The second goes on until each encoding had that many claims to prove itself, and passes over claims that stay as written. Claims
near the API's limits come first. Ctrl-C ends a run with what is known so far. Exits with 1 on a fault, with 2 where there is no
allocator (unless --optional is given: then it says so and exits with 0).
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any

from tests.conformance.dra import check, generator, limits

JSON = dict[str, Any]

BATCH = 200
WORDS = ("required", "preferred")
NO_ALLOCATOR = """\
NO ALLOCATOR: {binary} is missing; build it with `make -C tests/conformance/dra MINOR={minor}`.
The encodings were NOT tried on the scheduler's own code."""


Named = tuple[str, check.Subject]


def answered(subjects: Iterator[Named], minors: Sequence[int]) -> Iterator[tuple[str, check.Subject, dict[int, list[JSON]]]]:
    """Yield each subject with the answers of each minor's allocator."""
    while batch := list(islice(subjects, BATCH)):
        asked = (question for _, each in batch for question in each.questions)
        found = zip(minors, check.ask_all(map(check.allocator_path, minors), asked), strict=True)
        answers = {minor: iter(mine) for minor, mine in found}
        for name, each in batch:
            yield name, each, {minor: list(islice(found, len(each.questions))) for minor, found in answers.items()}


def _enough(subjects: Iterator[Named], counts: Counter[str], wanted: int) -> Iterator[Named]:
    """Yield what is changed, until each encoding had `wanted` of it."""
    some = takewhile(lambda _: min(counts[f"{word}: cases"] for word in WORDS) < wanted, subjects)
    return (named for named in some if named[1].changed)


def _table(name: str, counts: Counter[str]) -> Iterator[str]:
    titles = ("cases", "created", "asked", "could be aligned", "could not", "fits as written")
    yield f"{name:<12}" + "".join(f"{title:>18}" for title in titles)
    for word in WORDS:
        yield f"{word:<12}" + "".join(f"{counts[f'{word}: {title}'] or '':>18}" for title in titles)
    yield ""
    yield from (f"{name:<20}{count}" for name, count in sorted(counts.items()) if name.partition(":")[0] not in WORDS)


def main(given: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    options = _options(given)
    if missing := [minor for minor in options.minors if not check.allocator_path(minor).exists()]:
        print(NO_ALLOCATOR.format(binary=check.allocator_path(missing[0]), minor=missing[0]), file=sys.stderr)
        return 0 if options.optional else 2
    counts: dict[int, Counter[str]] = {minor: Counter() for minor in options.minors}
    wrong: list[str] = []
    begun = time.monotonic()
    try:
        wrong.extend(_faulty(_subjects(options, counts[options.minors[0]]), counts, options.show))
    except KeyboardInterrupt:
        print("ended early")
    for minor, counted in counts.items():
        print("\n".join(_table(f"1.{minor}", counted)), end="\n\n")
    print(f"seed {options.seed}, {time.monotonic() - begun:.0f} s: {len(wrong)} with faults {wrong[:50]}")
    return 1 if wrong else 0


def _subjects(options: argparse.Namespace, counts: Counter[str]) -> Iterator[Named]:
    yield from ((f"limit {number}", check.subject(case)) for number, case in enumerate(limits.CASES))
    count = sys.maxsize if options.per_encoding else options.cases
    numbers = range(options.first, options.first + count)
    cases = ((f"case {number}", generator.case(options.seed, number)) for number in numbers)
    if not options.per_encoding:
        yield from ((name, check.subject(case)) for name, case in cases)
    else:
        promising = ((name, check.subject(case)) for name, case in cases if generator.has_devices(case))
        yield from _enough(promising, counts, options.per_encoding)


def _faulty(subjects: Iterator[Named], counts: Mapping[int, Counter[str]], show: int) -> Iterator[str]:
    """Yield the names of the subjects with faults; print the first ones."""
    for name, each, answers in answered(subjects, counts):
        for minor, found in answers.items():
            if faults := list(check.faults(each, found, counts[minor])):
                if show > 0:
                    print(f"{name}, 1.{minor}: {faults}\n{json.dumps(each.case)[:4000]}\n")
                show -= 1
                yield f"{name} 1.{minor}"


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", dest="minors", type=int, action="append", choices=tuple(check.VERSIONS), help="by default 37")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--per-encoding", type=int, default=0, help="go on until each encoding had that many cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--show", type=int, default=3, help="faults to print")
    parser.add_argument("--optional", action="store_true", help="without an allocator: say so, and succeed")
    options = parser.parse_args(given)
    options.minors = options.minors or [37]
    return options


if __name__ == "__main__":
    sys.exit(main())

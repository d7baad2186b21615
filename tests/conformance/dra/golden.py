"""Golden cases with the allocator's answers, kept in the repository so that the encodings are held to them without Go.

    python -m tests.conformance.dra.golden

writes golden/1.37.jsonl.xz anew: random cases, chosen so that each kind of outcome is there. What is asked of the allocator
depends on our encodings, so the questions are kept, too: where they are no longer the same, the cases have to be made anew.
"""

import argparse
import hashlib
import json
import lzma
import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.dra import check, generator
from tests.conformance.dra.run import answered
from webhook.core.policy import Mode

JSON = dict[str, Any]

FOLDER = Path(__file__).parent / "golden"
MINOR = 37
PER_SIGNATURE = 1


def vectors() -> Iterator[JSON]:
    """Yield the committed cases: `case`, `asked` (a digest) and `answers`."""
    with lzma.open(FOLDER / f"1.{MINOR}.jsonl.xz", "rt") as lines:
        yield from map(json.loads, lines)


def digest(asked: Sequence[JSON]) -> str:
    """Return what tells questions apart."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _signature(each: check.Subject) -> Hashable:
    counts = sorted(request["exactly"]["count"] > 1 for request in each.case["claim"]["spec"]["devices"]["requests"])
    modes = [
        (made.reason, made.attribute, made.encoding and made.encoding.required, made.impossible) for made in each.plans.values()
    ]
    return (*counts, *modes, tuple(sorted(each.plans[Mode.STRICT].aligned.values())))


def main(given: Sequence[str] | None = None) -> int:
    """Write the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--search", type=int, default=3000, help="random cases to choose from")
    options = parser.parse_args(given)
    FOLDER.mkdir(exist_ok=True)
    seen: Counter[Hashable] = Counter()
    lines = []
    subjects = (("", check.subject(case)) for case in generator.cases(options.seed, options.search))
    for _, each, answers in answered(subjects, [MINOR]):
        kind = _signature(each)
        seen[kind] += 1
        if seen[kind] <= PER_SIGNATURE:
            vector = {"case": each.case, "asked": digest(each.questions), "answers": answers[MINOR]}
            lines.append(json.dumps(vector, separators=(",", ":")) + "\n")
    with lzma.open(FOLDER / f"1.{MINOR}.jsonl.xz", "wt", preset=9) as out:
        out.writelines(lines)
    print(f"{len(lines)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())

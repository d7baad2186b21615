"""All claims of a pod at once, and which devices an idle node gives out first: what we foresee, and what the allocator does.

    python -m tests.conformance.dra.joint --minor 37 --cases 5000
    python -m tests.conformance.dra.joint --write

The second writes golden/joint-1.37.jsonl.xz anew, cases with the allocator's answers that are replayed without Go. Exits with 1
on a fault, with 2 where there is no allocator.
"""

import argparse
import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tests.conformance.dra import check, generator
from webhook.core.dra import claims
from webhook.core.dra.allocation import Fits
from webhook.core.dra.demand import Demand, demand, together
from webhook.core.dra.devices import Inventory
from webhook.core.dra.search import joint_fits
from webhook.core.dra.served import first_allocation

JSON = dict[str, Any]

GOLDEN = Path(__file__).parent / "golden" / "joint-1.37.jsonl.xz"
GOLDEN_MINOR = 37
_GOLDEN_CASES = 120
_BATCH = 200


def pods(case: JSON) -> dict[str, list[JSON]]:
    """Return the claims of some pods: the case's claim as written and as changed, alone, twice, and with others."""
    each = check.subject(case)
    several = [case["claim"], *generator.others(case)]
    alone = {"written": case["claim"]} | {str(mode): claim for mode, claim in each.changed.items()}
    return {
        **{name: [claim] for name, claim in alone.items()},
        **{f"{name} twice": [claim, _named(claim, "again")] for name, claim in alone.items()},
        **({"both": [alone["strict"], _named(case["claim"], "again")]} if "strict" in alone else {}),
        "others": several,
        **{f"{mode} others": [check.mutated(claim, each.inventory, mode) for claim in several] for mode in check.MODES},
    }


def _named(claim: JSON, name: str) -> JSON:
    return claim | {"metadata": claim["metadata"] | {"name": name}}


def questions(case: JSON) -> Iterator[JSON]:
    """Yield a question for each idle node."""
    for node in case["nodes"]:
        yield {"node": node, "classes": case["classes"], "slices": case["slices"], "allocated": [], "claims": pods(case)}


def faults(case: JSON, answers: Sequence[JSON], minor: int, counts: Counter[str]) -> Iterator[str]:
    """Yield what is wrong; `counts` learns how often each thing was put to the test."""
    inventory = check.inventory(case)
    for question, answer in zip(questions(case), answers, strict=True):
        for name, found in answer["allocations"].items():
            if found.get("error"):
                counts["allocator errors"] += 1
                continue
            wanted = _demand(question["claims"][name], inventory)
            yield from (
                f"{question['node']}, {name}: {text}" for text in _compared(question["node"], wanted, found, minor, counts)
            )
        yield from (f"{question['node']}: {text}" for text in _lost(answer["allocations"], counts))


def _lost(found: JSON, counts: Counter[str]) -> Iterator[str]:
    """A pod of several claims is placed as without us; with required constraints not where it was not."""
    written, preferred, required = (found[name] for name in ("others", "best-effort others", "strict others"))
    if any(each.get("error") for each in (written, preferred, required)):
        return
    counts["others: placed as written" if written["fits"] else "others: not placed as written"] += 1
    if preferred["fits"] != written["fits"]:
        yield f"as written the pod fits: {written['fits']}, with preferences: {preferred['fits']}"
    if required["fits"] and not written["fits"]:
        yield "as written the pod does not fit, with constraints it does"


def _demand(pod: Sequence[JSON], inventory: Inventory) -> Demand:
    return together(demand(f"claim {index}", claims.devices(claim), inventory) for index, claim in enumerate(pod))


def _compared(node: str, wanted: Demand, found: JSON, minor: int, counts: Counter[str]) -> Iterator[str]:
    fits = joint_fits(node, wanted)
    counts[f"fits: {fits}"] += 1
    if fits is not Fits.UNKNOWN and (fits is Fits.YES) != found["fits"]:
        yield f"we say {fits}, the allocator {found['fits']}"
    ours, doubt = first_allocation(node, wanted, minor)
    counts["first devices: not foreseen" if doubt else "first devices: foreseen"] += 1
    if doubt:
        return
    if ours is None or not found["fits"]:
        if found["fits"] is not (ours is not None):
            yield f"we foresee {ours and 'devices'}, the allocator {found['fits']}"
        return
    mine = sorted((request, *device.key) for (_, request), devices in ours.items() for device in devices)
    theirs = sorted((result[0].partition("/")[0], *result[1:]) for result in found.get("results") or ())
    if mine != theirs:
        yield f"we foresee {mine}, the allocator gives {theirs}"


def answered(cases: Iterator[JSON], minor: int) -> Iterator[tuple[JSON, list[JSON]]]:
    """Yield each case with the allocator's answers."""
    while batch := list(islice(cases, _BATCH)):
        asked = [list(questions(case)) for case in batch]
        answers = iter(check.ask(check.allocator_path(minor), [question for each in asked for question in each]))
        yield from ((case, list(islice(answers, len(mine)))) for case, mine in zip(batch, asked, strict=True))


def vectors() -> Iterator[JSON]:
    """Yield the committed cases: `case` and `answers`."""
    with lzma.open(GOLDEN, "rt") as lines:
        yield from map(json.loads, lines)


def main(given: Sequence[str] | None = None) -> int:
    """Run the comparison, or write the golden cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, default=GOLDEN_MINOR, choices=tuple(check.VERSIONS))
    parser.add_argument("--cases", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(given)
    if not check.allocator_path(options.minor).exists():
        print("NO ALLOCATOR: build it with `make -C tests/conformance/dra`.", file=sys.stderr)
        return 2
    if options.write:
        return _write(options.seed)
    counts, wrong = Counter[str](), 0
    for case, answers in answered(generator.cases(options.seed, options.cases), options.minor):
        found = list(faults(case, answers, options.minor, counts))
        wrong += bool(found)
        if found and wrong <= 3:
            print(found, json.dumps(case)[:4000], sep="\n")
    print("\n".join(f"{name:<30}{count}" for name, count in sorted(counts.items())))
    print(f"1.{options.minor}, seed {options.seed}: {wrong} with faults")
    return 1 if wrong else 0


def _write(seed: int) -> int:
    made = answered(generator.cases(seed, _GOLDEN_CASES), GOLDEN_MINOR)
    lines = [json.dumps({"case": case, "answers": answers}, separators=(",", ":")) + "\n" for case, answers in made]
    with lzma.open(GOLDEN, "wt", preset=9) as out:
        out.writelines(lines)
    print(f"{len(lines)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())

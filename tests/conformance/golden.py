"""Golden vectors: cases with the oracle's answers, kept in the repository so that the model is held to them without Go.

    python -m tests.conformance.golden --minor 37

writes golden/1.37.jsonl.xz anew: the tables, and random cases chosen so that each kind of outcome on each kind of case is there.
"""

import argparse
import json
import lzma
import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.conformance import generator, tables
from tests.conformance.compare import COMPARED, ask_oracle, oracle_path

JSON = dict[str, Any]

FOLDER = Path(__file__).parent / "golden"
KEPT = ("start", *COMPARED, "certain")
PER_SIGNATURE = 3


def vectors(minor: int) -> Iterator[JSON]:
    """Yield the committed vectors of a minor: `nodeClass`, `pod` and the oracle's `verdict`."""
    with lzma.open(_file(minor), "rt") as lines:
        yield from map(json.loads, lines)


def _file(minor: int) -> Path:
    return FOLDER / f"1.{minor}.jsonl.xz"


def signature(case: JSON, verdict: JSON) -> Hashable:
    """What kind of case this is, and how it ends."""
    config, spec = case["nodeClass"]["spec"]["kubelet"], case["pod"]["spec"]
    widths = sorted({0 if mask is None else min(len(mask), 2) for mask in verdict["masks"].values()})
    return (
        config["topologyManagerPolicy"],
        config.get("topologyManagerScope"),
        config.get("cpuManagerPolicy"),
        config.get("memoryManagerPolicy"),
        tuple(sorted(config.get("cpuManagerPolicyOptions", {}))),
        "resources" in spec,
        "initContainers" in spec,
        len(spec["containers"]) > 1,
        verdict["start"] is None,
        verdict["reason"],
        verdict["aligned"],
        tuple(widths),
    )


def choose(minor: int, seed: int, searched: int, workers: int) -> Iterator[JSON]:
    """Yield the tables' cases and some random ones of each signature, with the oracle's answers."""
    binary = oracle_path(minor)
    listed = [{"nodeClass": case.node_class, "pod": case.pod} for case in tables.cases() if "NPS4" not in case.name]
    for case in listed:
        case["nodeClass"]["spec"]["kubernetes"] = f"1.{minor}"
    cases = [*listed[::4], *generator.cases(seed, searched, minor)]
    seen: Counter[Hashable] = Counter()
    for case, verdict in zip(cases, ask_oracle(binary, cases, workers=workers, timeout="20s"), strict=True):
        if verdict["reason"] == "OracleError" or verdict.get("timedOut") or not verdict["certain"]:
            continue
        kind = signature(case, verdict)
        seen[kind] += 1
        if seen[kind] <= PER_SIGNATURE:
            yield {**case, "verdict": {key: verdict[key] for key in KEPT}}


def main(given: Sequence[str] | None = None) -> int:
    """Write the vectors of a minor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, default=37)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--search", type=int, default=3000, help="random cases to choose from")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(given)
    FOLDER.mkdir(exist_ok=True)
    chosen = [
        json.dumps(vector, separators=(",", ":"))
        for vector in choose(options.minor, options.seed, options.search, options.workers)
    ]
    with lzma.open(_file(options.minor), "wt", preset=9) as out:
        out.writelines(line + "\n" for line in chosen)
    print(f"{len(chosen)} vectors in {_file(options.minor)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

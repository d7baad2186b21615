"""The model's verdict beside the oracle's: running both, and judging whether they agree."""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import IO, Any

from webhook.config.load import parse_class
from webhook.core import wellformed
from webhook.core.kubelet.admit import judge, verdict_json
from webhook.core.kubelet.node import NodeKubelet, compile_class
from webhook.core.kubelet.view import INVALID

JSON = dict[str, Any]

VERSIONS = {34: "v1.34.4", 35: "v1.35.4", 36: "v1.36.3", 37: "v1.37.2"}
COMPARED = ("admitted", "reason", "masks", "aligned")


class Agreement(StrEnum):
    """How two verdicts on one case relate."""

    SAME = "same"
    DIFFERENT = "DIFFERENT"
    NO_CLASS = "class refused"
    INVALID = "invalid pod"
    NO_START = "no start"
    CHANCE = "chance"
    MAYBE = "chance unseen"  # ours says that chance decides, and the oracle's few runs all ended alike
    SLOW = "kubelet too slow"


def oracle_path(minor: int) -> Path:
    """Where `make -C tests/conformance/kubelet MINOR=..` puts the oracle."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "numalign" / "oracle" / VERSIONS[minor] / "oracle"


def ask_oracle(binary: Path, cases: Iterable[JSON], *, workers: int = 2, repeat: int = 5, timeout: str = "30s") -> Iterator[JSON]:
    """Yield the oracle's verdict on each case, in order."""
    command = ["nice", str(binary), f"-workers={workers}", f"-repeat={repeat}", f"-timeout={timeout}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        feeder = Thread(target=_feed, args=(process.stdin, cases), daemon=True)
        feeder.start()
        for line in process.stdout:
            yield json.loads(line)
        feeder.join()


def _feed(pipe: IO[str], cases: Iterable[JSON]) -> None:
    with pipe:
        for case in cases:
            pipe.write(json.dumps(case) + "\n")


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's answer: a verdict in the oracle's form, or why there is none."""

    verdict: JSON
    no_class: str = ""
    unknown: str = ""


@lru_cache(8)
def _compiled(document: str) -> NodeKubelet | str:
    node_class, errors = parse_class(json.loads(document))
    return "; ".join(map(str, errors)) if node_class is None else compile_class(node_class)


def ask_model(case: JSON) -> Answer:
    """Return the model's verdict, as `numalign verdict` gives it."""
    node = _compiled(json.dumps(case["nodeClass"]))
    if isinstance(node, str):
        return Answer({}, no_class=node)
    problems = wellformed.problems(case["pod"])
    if problems and node.start is None:
        return Answer({"start": None, "admitted": False, "reason": INVALID, "masks": {}, "aligned": False, "certain": True})
    verdict = judge(node, case["pod"])
    return Answer(verdict_json(verdict), unknown=verdict.unknown)


def compare(ours: Answer, theirs: JSON) -> Agreement:
    """Judge one case; the kubelet is right."""
    if ours.no_class or theirs["reason"] == "OracleError":
        return Agreement.NO_CLASS
    if difference(ours, theirs):
        return Agreement.DIFFERENT
    if theirs["start"] is not None:
        return Agreement.NO_START
    if theirs.get("timedOut"):
        return Agreement.SAME if ours.verdict["reason"] == "KubeletPanic" else Agreement.SLOW
    if not ours.verdict["certain"]:
        return Agreement.MAYBE if theirs["certain"] else Agreement.CHANCE
    return Agreement.INVALID if theirs["reason"] == "Invalid" else Agreement.SAME


def difference(ours: Answer, theirs: JSON) -> str:
    """Return in a word what the model has wrong; empty: nothing that a few runs of the oracle can show."""
    mine = ours.verdict
    if not mine:
        return "crash"
    if (mine["start"] is None) != (theirs["start"] is None):
        return "start"
    if theirs["start"] is not None or theirs.get("timedOut"):
        return ""
    if ours.unknown:
        return "unknown"
    if not mine["certain"]:
        return ""
    if not theirs["certain"]:
        return "certain"
    return next((key for key in COMPARED if mine[key] != theirs[key]), "")


def describe(ours: Answer, theirs: JSON) -> str:
    """Return both answers, a line each, without the oracle's extras."""
    keys = ("start", *COMPARED, "certain", "message")
    lines = [f"ours:   {ours.no_class or ours.unknown or {key: ours.verdict.get(key) for key in keys}}"]
    lines.append(f"oracle: { ({key: str(theirs.get(key))[:200] if key == 'message' else theirs.get(key) for key in keys}) }")
    return "\n".join(lines)

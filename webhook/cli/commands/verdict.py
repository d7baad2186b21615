"""`numalign verdict`: JSON lines in, verdicts out (DESIGN section 6)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from webhook.cli.inputs import Exit, config_options, fail, load_policy, read_classes
from webhook.config.load import parse_class
from webhook.core import wellformed
from webhook.core.kubelet import admit
from webhook.core.kubelet.node import NodeKubelet, compile_class
from webhook.core.kubelet.view import INVALID
from webhook.core.verdict import Verdict

_FLUSH_EVERY: Final = 64
_REMEMBERED: Final = 256


class _BadLineError(ValueError):
    """Why a line cannot be judged; `args[0]` is for people."""


@click.command("verdict")
@config_options
@click.argument("file", default="-", type=click.File("rb"))
def command(policy_file: Path | None, class_paths: tuple[Path, ...], file: BinaryIO) -> None:
    """Judge pods on node classes: one object {"nodeClass": ..., "pod": ...} a line in, one verdict a line out.

    The node class is a whole NodeClass, or the name of one that --classes or the built-in ones define. A line that cannot be
    judged becomes {"error": ...}, with exit code 2 at the end. Node selectors, affinity and taints are not judged here.
    """
    names = partial(_by_name, policy_file, class_paths)
    raise SystemExit(_run(file, _Classes(names)))


def _by_name(policy_file: Path | None, class_paths: tuple[Path, ...]) -> dict[str, NodeKubelet]:
    loaded = read_classes(class_paths, load_policy(policy_file))
    if loaded.errors:
        fail(loaded.errors)
    return {kubelet.node_class.name: kubelet for kubelet in loaded.classes}


def _run(lines: Iterable[bytes], classes: _Classes) -> Exit:
    out = sys.stdout.buffer
    worst = Exit.FITS
    for count, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            answer = _judge(line, classes)
            worst = max(worst, Exit.FITS if answer["admitted"] else Exit.REFUSED)
        except _BadLineError as error:
            answer, worst = {"error": f"line {count}: {error}"}, Exit.BAD_INPUT
        out.write(json.dumps(answer).encode() + b"\n")
        if count % _FLUSH_EVERY == 0:
            out.flush()
    out.flush()
    return worst


def _judge(line: bytes, classes: _Classes) -> dict[str, Any]:
    case = _decoded(line)
    node, pod = classes.find(case.get("nodeClass")), case.get("pod")
    if not isinstance(pod, dict):
        raise _BadLineError("pod: expected a Pod")
    return admit.verdict_json(_verdict(node, pod))


def _verdict(node: NodeKubelet, pod: dict[str, Any]) -> Verdict:
    """What the model cannot even read, the API server refuses as well."""
    problems = wellformed.problems(pod)
    if problems and node.start is None:
        return Verdict(reason=INVALID, message="; ".join(map(str, problems)))
    return admit.judge(node, pod)


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        case = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _BadLineError(f"no JSON: {error}") from error
    if not isinstance(case, dict):
        raise _BadLineError('expected an object {"nodeClass": ..., "pod": ...}')
    return case


class _Classes:
    """Node classes by name or as they stand in a line, each compiled once as long as it keeps coming back."""

    def __init__(self, names: Callable[[], dict[str, NodeKubelet]]) -> None:
        self._names = names
        self._compiled: Callable[[str], NodeKubelet] = lru_cache(_REMEMBERED)(_compiled)
        self._known: dict[str, NodeKubelet] | None = None

    def find(self, wanted: Any) -> NodeKubelet:
        """Return the class. One whose kubelet does not start is found, too: that is its verdict."""
        if isinstance(wanted, str):
            if self._known is None:
                self._known = self._names()
            if wanted not in self._known:
                raise _BadLineError(f"nodeClass: no class is called {wanted!r}; there are {', '.join(self._known)}")
            return self._known[wanted]
        return self._compiled(json.dumps(wanted))


def _compiled(text: str) -> NodeKubelet:
    node_class, errors = parse_class(json.loads(text))
    if node_class is None:
        raise _BadLineError("nodeClass: " + "; ".join(str(error) for error in errors))
    return compile_class(node_class)

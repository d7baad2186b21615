"""Feature gates of a kubelet (`component-base/featuregate/feature_gate.go`).

Which are on, and which settings keep it from starting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from webhook.core.kubelet.feature_gates import TABLE
from webhook.core.model import MINORS

_GROUPS = {"AllAlpha": "a", "AllBeta": "b"}
_DEPENDENCIES_SINCE = 35


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate in one minor: stage (a, b, g or d), default, whether it is locked to that, and the gates it depends on."""

    stage: str
    default: bool
    locked: bool
    needs: tuple[str, ...]


@lru_cache(maxsize=len(MINORS))
def known_gates(minor: int) -> Mapping[str, Gate]:
    """Return every gate of a minor by name."""
    column = MINORS.index(minor) + 1
    rows = [line.split() for line in TABLE.splitlines()]
    present = {row[0]: row for row in rows if row[column] != "."}
    return {name: _gate(row, column, minor, present) for name, row in present.items()}


def _gate(row: list[str], column: int, minor: int, present: Mapping[str, list[str]]) -> Gate:
    state = row[column]
    needs = []
    for entry in row[len(MINORS) + 1 :]:
        name, _, since = entry.partition("@")
        if name in present and minor >= max(int(since or 0), _DEPENDENCIES_SINCE):
            needs.append(name)
    return Gate(stage=state[0], default=state[1] == "+", locked=state.endswith("!"), needs=tuple(needs))


def enabled_gates(minor: int, given: Mapping[str, bool]) -> frozenset[str]:
    """Return the gates that are on. A gate that is given counts as given, whatever AllAlpha or AllBeta say."""
    return _enabled_gates(minor, tuple(given.items()))


@lru_cache(maxsize=256)
def _enabled_gates(minor: int, given: tuple[tuple[str, bool], ...]) -> frozenset[str]:
    settings = dict(given)
    return frozenset(name for name, gate in known_gates(minor).items() if _is_on(name, gate, settings))


def _is_on(name: str, gate: Gate, given: Mapping[str, bool]) -> bool:
    if name in given:
        return given[name]
    for group, stage in _GROUPS.items():
        if group in given and gate.stage == stage and name not in _GROUPS:
            return given[group]
    return gate.default


def gate_errors(minor: int, given: Mapping[str, bool]) -> Iterator[tuple[str, str]]:
    """Yield (gate, the kubelet's own words) for settings with which it does not start."""
    known = known_gates(minor)
    wrong = False
    for name, wanted in given.items():
        gate = known.get(name)
        if gate is None:
            wrong = True
            yield name, f"unrecognized feature gate: {name}"
        elif gate.locked and gate.default != wanted:
            wrong = True
            yield name, f"cannot set feature gate {name} to {_text(wanted)}, feature is locked to {_text(gate.default)}"
    if not wrong:
        yield from _broken_dependencies(known, enabled_gates(minor, given))


def _broken_dependencies(known: Mapping[str, Gate], enabled: frozenset[str]) -> Iterator[tuple[str, str]]:
    for name in sorted(enabled):
        off = [need for need in known[name].needs if need not in enabled]
        if off:
            yield name, f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"


def _text(value: bool) -> str:  # noqa: FBT001  - it is the value itself
    return "true" if value else "false"

"""One line of the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """What was promised, and what was measured."""

    name: str
    target: str
    measured: str
    met: bool
    besides: str = ""


def seconds(value: float) -> str:
    """Return a time with a unit in which it has one to four digits before the point."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if value * factor >= 1:
            return f"{value * factor:.2f} {unit}"
    return f"{value * 1e6:.1f} µs"

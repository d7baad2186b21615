"""Kubernetes quantities as exact integers.

A quantity is held in *nano units* (10**-9), the finest scale the API server stores; finer input is rounded up as
`apimachinery/pkg/api/resource/quantity.go` does. Kubernetes rounds *up* wherever it turns a quantity into a whole number.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

NANO: Final = 10**9
MILLI_IN_NANO: Final = 10**6
KI: Final = 1024
MI: Final = 1024**2
GI: Final = 1024**3

_NUMBER: Final = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d{1,3})?")
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_INT64: Final = 2**63 - 1
_MAX: Final = _INT64 * NANO
_MOST_DIGITS: Final = 18


class InvalidQuantityError(ValueError):
    """The text is no quantity; `args[0]` says what was found and what was expected."""


def parse(value: Any) -> int:
    """Return the quantity in nano units.

    `value` is what JSON may carry for a quantity: a string or a number.

    Raises:
        InvalidQuantityError: if the API server would not decode it.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InvalidQuantityError(f"expected a quantity such as 500m, 2 or 64Gi, got {value!r:.40}")
    return _parse_text(str(value).strip())


@lru_cache(maxsize=4096)
def _parse_text(text: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > 64:
        raise InvalidQuantityError(f"expected a quantity such as 500m, 2 or 64Gi, got {text!r:.40}")
    sign, digits, suffix = match.group(1), match.group(2), match.group(3) or ""
    exact = Fraction(digits if not digits.startswith(".") else "0" + digits) * _scale(suffix) * NANO
    nano = -(-exact.numerator // exact.denominator)
    if suffix in _BINARY:
        nano = min(nano, _MAX)
    return -nano if sign == "-" else nano


def _scale(suffix: str) -> Fraction:
    if suffix in _BINARY:
        return Fraction(_BINARY[suffix])
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return Fraction(10) ** exponent


def value(nano: int) -> int:
    """Return whole units, rounded up, as an int64 holds them (`Quantity.Value`, see `_as_int64`)."""
    return _as_int64(-(-nano // NANO), nano)


def milli(nano: int) -> int:
    """Return thousandths, rounded up, as an int64 holds them (`Quantity.MilliValue`, see `_as_int64`)."""
    return _as_int64(-(-nano // MILLI_IN_NANO), nano)


def _as_int64(found: int, nano: int) -> int:
    """Return a number that an int64 holds; of a larger one what Kubernetes makes of it.

    A quantity is an int64 and a power of ten while its canonical form has up to 18 digits; what then is too large reads as 0.
    With more digits it is a big integer, whose lowest 64 bits count (`apimachinery/pkg/api/resource/{amount,math}.go`).
    """
    if abs(found) <= _INT64:
        return found
    digits = nano
    while digits % 1000 == 0:
        digits //= 1000
    if len(str(abs(digits))) <= _MOST_DIGITS:
        return 0
    return (found + _INT64 + 1) % 2**64 - _INT64 - 1


def is_whole(nano: int) -> bool:
    """Tell whether the quantity is a whole number of units."""
    return nano % NANO == 0


def fits_int64(nano: int) -> bool:
    """Tell whether the quantity is a whole number of units that an int64 can hold (`Quantity.AsInt64`).

    The largest int64 is what larger binary amounts are cut to; it has more digits than are read into an int64.
    """
    return is_whole(nano) and nano < _MAX


def round_to_milli(nano: int) -> int:
    """Return the quantity rounded up to thousandths, in nano units (`Quantity.RoundUp`)."""
    return -(-nano // MILLI_IN_NANO) * MILLI_IN_NANO


def format_cpu(milli_cpu: int) -> str:
    """Return CPU in the API server's canonical form: `8`, `7500m`."""
    whole, rest = divmod(milli_cpu, 1000)
    return f"{milli_cpu}m" if rest else str(whole)


def format_bytes(size: int) -> str:
    """Return bytes in the largest binary unit that divides them: `64Gi`, `1536Mi`, `1000`."""
    if size == 0:
        return "0"
    for suffix, factor in reversed(_BINARY.items()):
        if size % factor == 0:
            return f"{size // factor}{suffix}"
    return str(size)


def human_bytes(size: int) -> str:
    """Return bytes for people to read, at most two decimals: `249.95Gi`."""
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        factor = _BINARY[suffix]
        if size >= factor:
            return f"{size / factor:.2f}".rstrip("0").rstrip(".") + suffix
    return str(size)

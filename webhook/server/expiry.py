"""How long the serving certificate is still good."""

from __future__ import annotations

import time
from pathlib import Path

_UNKNOWN = float("nan")


class Expiry:
    """Seconds until the certificate in a file expires; NaN where it cannot be read. Parsed once per change of the file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stamp = -1
        self._until = _UNKNOWN

    def __call__(self) -> float:
        """Return the seconds left."""
        try:
            stamp = self._file.stat().st_mtime_ns
            if stamp != self._stamp:
                self._until, self._stamp = _not_after(self._file), stamp
        except (OSError, ValueError):
            return _UNKNOWN
        return self._until - time.time()


def _not_after(file: Path) -> float:
    from tls.certificates import read_certificate  # noqa: PLC0415  not before the first scrape

    return read_certificate(file.read_bytes()).not_valid_after_utc.timestamp()

"""Whether the cluster's webhook configurations are those of the policy: the sidecar, which may read them, leaves a file."""

from __future__ import annotations

import time
from pathlib import Path

STALE_SECONDS = 300.0
"""The sidecar writes the file every minute; what is much older says nothing about now."""

_UNKNOWN = float("nan")


class Drift:
    """1: the file names differences; 0: it is empty; NaN: there is none, or it is stale."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self) -> float:
        """Return what the file says."""
        try:
            stat = self._file.stat()
        except OSError:
            return _UNKNOWN
        if time.time() - stat.st_mtime > STALE_SECONDS:
            return _UNKNOWN
        return float(stat.st_size > 0)

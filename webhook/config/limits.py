"""The cluster's LimitRanges as a file: a List in JSON, as `kubectl get limitranges -A -o json` prints it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from webhook.config.documents import ConfigWarning
from webhook.core.limitranges import Limits, limits_of

MAX_BYTES: Final = 32 * 1024**2
"""Some hundred thousand LimitRanges, as the sidecar writes them."""


def load_limits(file: Path) -> tuple[Limits | None, tuple[ConfigWarning, ...]]:
    """Return namespace -> bounds, empty where there is no such file; None and why where it cannot be read.

    Nothing here keeps the webhook from serving: without LimitRanges pods are shaped as if there were none.
    """
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
        items = json.loads(text)["items"] if len(text) <= MAX_BYTES else None
    except FileNotFoundError:
        return {}, ()
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        return None, (ConfigWarning(str(file), 0, "", f"LimitRanges stay as they were: {error!r}"[:200]),)
    if not isinstance(items, list):
        return None, (ConfigWarning(str(file), 0, "", f"LimitRanges stay as they were: no List of at most {MAX_BYTES} bytes"),)
    return limits_of(items), ()

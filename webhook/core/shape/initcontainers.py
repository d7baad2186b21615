"""Ordinary init containers: they must be Guaranteed too, and must not cost anything, for they run before the app containers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from webhook.core.policy import Policy


class InitMemory(Enum):
    """Where an init container's memory comes from if its author set no limit, in the order in which they are tried.

    The app containers' total costs nothing at all, but may be more than a NUMA node has, or than the Memory Manager takes from
    one that it has reserved before.
    """

    APP_TOTAL = "app total"
    LARGEST_APP = "largest app"
    DEFAULT = "default"


def memory_floor(source: InitMemory, apps: Sequence[int], policy: Policy) -> int:
    """Return bytes, given the memory of the app containers."""
    match source:
        case InitMemory.APP_TOTAL:
            return sum(apps)
        case InitMemory.LARGEST_APP:
            return max(apps, default=policy.memory.default)
        case _:
            return policy.memory.default

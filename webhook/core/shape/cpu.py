"""CPU numbers, in milli-CPUs: a container with devices gets CPUs of its own, every other one stays in the shared pool.

Exclusive CPUs go to a Guaranteed container with a whole number of CPUs (`cpumanager/policy_static.go`), so an integer is what
device containers need, and what all others must avoid: it would take CPUs from the devices' NUMA node.
"""

from __future__ import annotations

from webhook.core.policy import CpuRules
from webhook.core.shape.scene import Declared

_CPU = 1000


def of_device_container(declared: Declared, share: int | None, width: int, rules: CpuRules) -> int:
    """Return requests = limits of a device container: whole CPUs, a multiple of `width`.

    The share, but not under the author's request nor over the author's limit; the policy may put the author's own number in the
    share's place. A share is rounded down, for others need the rest; only an author's own number is rounded up.

    Args:
        declared: what the author wrote.
        share: milli-CPUs; None: no accelerators, a NIC alone.
        width: CPUs that must stay together.
        rules: the policy's.
    """
    step = width * _CPU
    lowest = max(_up(declared.request or 0, step), step)
    own = _own(declared, rules)
    if own is None and share is None:
        own = rules.default if declared.request is None else declared.request
    wanted = max(_down(share or 0, step) if own is None else _up(own, step), lowest)
    return wanted if declared.limit is None else min(wanted, max(_down(declared.limit, step), lowest))


def _own(declared: Declared, rules: CpuRules) -> int | None:
    """Return the author's number where the policy wants it in the share's place."""
    if rules.source == "request":
        return declared.request
    return declared.limit if rules.source == "limit" else None


def of_other_container(declared: Declared, default: int, width: int = 1) -> int:
    """Return requests = limits of a container without devices: never whole, unless the author wants CPUs of its own.

    That is the author's limit, else request, else the policy's default; whole numbers lose a thousandth. What the author fixed
    stays, a whole number rounded up to a multiple of `width`.
    """
    if declared.is_fixed and declared.request:
        return _fixed(declared.request, width)
    wanted = declared.limit if declared.limit is not None else declared.request
    return not_whole(default if wanted is None else max(wanted, 1))


def of_init_container(declared: Declared, app_total: int, width: int = 1) -> int:
    """Return requests = limits of an ordinary init container: as much as costs nothing beside the app containers, never whole.

    CPUs of its own would nail the app containers to its NUMA node (`cpumanager/policy_static.go`, reuse), whether it has devices
    or not. An author's own values stay, as in other containers; a limit that the author left out becomes as high as is free.
    """
    if declared.is_fixed and declared.request:
        return _fixed(declared.request, width)
    if declared.limit is not None:
        return not_whole(declared.limit)
    return not_whole(max(app_total - 1, declared.request or 0, 1))


def not_whole(milli: int) -> int:
    """Return the largest number of milli-CPUs up to `milli` that is not a whole number of CPUs."""
    return milli if milli % _CPU else milli - 1


def _fixed(milli: int, width: int) -> int:
    """Return the author's own requests = limits; CPUs of its own come in multiples of `width`."""
    return milli if milli % _CPU else _up(milli, width * _CPU)


def _up(milli: int, step: int) -> int:
    return -(-milli // step) * step


def _down(milli: int, step: int) -> int:
    return milli // step * step

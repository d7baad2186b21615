"""What a kubelet keeps back for the system: kubeReserved, systemReserved and the hard eviction threshold.

Sources: `cmd/kubelet/app/server.go` (parsing, defaults, reservedSystemCPUs), `pkg/kubelet/eviction/helpers.go` (thresholds),
`pkg/kubelet/cm/node_container_manager_linux.go` (Node Allocatable). Amounts are nano units.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook.core.kubelet.excerpt import StartError
from webhook.core.quantities import NANO, InvalidQuantityError, parse

RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")

_MEMORY_AVAILABLE: Final = "memory.available"
_DEFAULT_EVICTION_HARD: Final = {
    _MEMORY_AVAILABLE: "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
_SIGNALS: Final = frozenset(
    {
        *_DEFAULT_EVICTION_HARD,
        "allocatableMemory.available",
        "containerfs.available",
        "containerfs.inodesFree",
        "pid.available",
    }
)
_IGNORED_PERCENTAGES: Final = ("0%", "100%")
_DIGITS: Final = r"\d(?:_?\d)*"
_PERCENTAGE: Final = re.compile(rf"[+-]?({_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?%+")
_MICRO_IN_NANO: Final = 10**3
_CPU_ROUNDED_SINCE: Final = 37


def reserved(excerpt: Mapping[str, Any], resource: str, minor: int, cpu_set: int | None) -> int:
    """Return kubeReserved + systemReserved of one resource; a CPU set replaces what is reserved by number.

    The values must have passed `reservation_errors`.
    """
    if cpu_set and resource == "cpu":
        return cpu_set.bit_count() * NANO
    amounts = [parse((excerpt.get(field) or {}).get(resource) or "0") for field in ("kubeReserved", "systemReserved")]
    return sum(_rounded_cpu(amount, minor) if resource == "cpu" else amount for amount in amounts)


def _rounded_cpu(amount: int, minor: int) -> int:
    """Return CPU to the nearest milli-CPU, as from 1.37 on."""
    if minor < _CPU_ROUNDED_SINCE:
        return amount
    micro = -(-amount // _MICRO_IN_NANO)
    return (micro + 500) // 1000 * 1000 * _MICRO_IN_NANO


def reservation_errors(excerpt: Mapping[str, Any], field: str, cpu_set: int | None) -> Iterator[StartError]:
    """Yield what is wrong with kubeReserved or systemReserved; their CPUs are not even read where a CPU set replaces them."""
    flag = {"kubeReserved": "--kube-reserved", "systemReserved": "--system-reserved"}[field]
    for resource, text in (excerpt.get(field) or {}).items():
        path, failed = f"{field}[{resource}]", f"{flag} value failed to parse: "
        if resource == "cpu" and cpu_set:
            continue
        if resource not in RESERVABLE:
            yield StartError(path, f'{failed}cannot reserve "{resource}" resource', f"{field} takes {', '.join(RESERVABLE)}")
            continue
        try:
            amount = _quantity(text)
        except InvalidQuantityError as error:
            yield StartError(path, f'{failed}failed to parse quantity "{text}" for "{resource}" resource: {error}')
            continue
        if amount < 0:
            yield StartError(path, f'{failed}resource quantity for "{resource}" cannot be negative: {text}')


def eviction_hard(excerpt: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the hard eviction thresholds: the defaults only where the field is absent, or merged in on demand."""
    given = excerpt.get("evictionHard")
    if given is None:
        return _DEFAULT_EVICTION_HARD
    return {**_DEFAULT_EVICTION_HARD, **given} if excerpt.get("mergeDefaultEvictionSettings") else given


def eviction_memory(excerpt: Mapping[str, Any], capacity: int) -> int:
    """Return the hard eviction threshold for memory on a machine with so many bytes, which a percentage is taken of.

    The kubelet computes percentages in 32-bit floats; their error is part of the answer.
    """
    threshold = eviction_hard(excerpt).get(_MEMORY_AVAILABLE)
    if threshold is None or threshold in _IGNORED_PERCENTAGES:
        return 0
    if threshold.endswith("%"):
        return int(float(capacity) * _fraction(threshold)) * NANO
    return parse(threshold)


def eviction_errors(excerpt: Mapping[str, Any]) -> Iterator[StartError]:
    """Yield what is wrong with the eviction thresholds."""
    yield from _threshold_errors("evictionHard", eviction_hard(excerpt))
    soft = excerpt.get("evictionSoft") or {}
    yield from _threshold_errors("evictionSoft", soft)
    for signal in soft:
        if signal not in (excerpt.get("evictionSoftGracePeriod") or {}) and soft[signal] not in _IGNORED_PERCENTAGES:
            yield StartError(
                "evictionSoftGracePeriod", f"grace period must be specified for the soft eviction threshold {signal}"
            )


def _threshold_errors(field: str, thresholds: Mapping[str, str]) -> Iterator[StartError]:
    for signal, text in thresholds.items():
        path = f"{field}[{signal}]"
        if signal not in _SIGNALS:
            yield StartError(path, f"unsupported eviction signal {signal}")
        elif text.endswith("%"):
            yield from _percentage_errors(path, signal, text)
        else:
            yield from _amount_errors(path, signal, text)


def _percentage_errors(path: str, signal: str, text: str) -> Iterator[StartError]:
    if not _PERCENTAGE.fullmatch(text):
        yield StartError(path, f'strconv.ParseFloat: parsing "{text.rstrip("%")}": invalid syntax')
    elif _fraction(text) < 0:
        yield StartError(path, f"eviction percentage threshold {signal} must be >= 0%: {text}")
    elif _fraction(text) > 1:
        yield StartError(path, f"eviction percentage threshold {signal} must be <= 100%: {text}")


def _amount_errors(path: str, signal: str, text: str) -> Iterator[StartError]:
    try:
        amount = _quantity(text)
    except InvalidQuantityError as error:
        yield StartError(path, str(error))
        return
    if amount <= 0:
        yield StartError(path, f"eviction threshold {signal} must be positive: {text}", "0% turns the threshold off")


def _quantity(text: str) -> int:
    """Return a quantity in a string field; unlike in a pod, spaces around it are not trimmed."""
    if text != text.strip():
        raise InvalidQuantityError(f"expected a quantity without spaces around it, got {text!r:.40}")
    return parse(text)


def _fraction(percentage: str) -> float:
    return _float32(_float32(float(percentage.rstrip("%"))) / 100)


def _float32(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")

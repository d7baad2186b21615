"""The shape of a KubeletConfiguration v1beta1 excerpt: what the kubelet's decoder takes for the fields that concern admission.

A YAML number where a string belongs (`cpu: 4` under systemReserved) is an easy mistake on which no kubelet starts. Fields that
are not listed here are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.core.kubelet.machine import Machine
from webhook.core.quantities import InvalidQuantityError, parse

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"

_STRINGS = (
    "cpuManagerPolicy",
    "memoryManagerPolicy",
    "topologyManagerPolicy",
    "topologyManagerScope",
    "reservedSystemCPUs",
    "systemReservedCgroup",
    "kubeReservedCgroup",
)
_STRING_MAPS = (
    "cpuManagerPolicyOptions",
    "topologyManagerPolicyOptions",
    "systemReserved",
    "kubeReserved",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMinimumReclaim",
)
COUNTS: Mapping[str, str] = {
    "eventBurst": "--event-burst",
    "eventRecordQPS": "--event-qps",
    "kubeAPIBurst": "--kube-api-burst",
    "kubeAPIQPS": "--kube-api-qps",
    "maxOpenFiles": "--max-open-files",
    "maxPods": "--max-pods",
    "podsPerCore": "--pods-per-core",
    "registryBurst": "--registry-burst",
    "registryPullQPS": "--registry-qps",
}
"""Numbers that may not be negative -> the kubelet's flag of the same meaning."""

_BOOLS = ("mergeDefaultEvictionSettings", "cgroupsPerQOS")
_BOOL_MAPS = ("featureGates",)


@dataclass(frozen=True, slots=True)
class StartError:
    """Why a kubelet would not start.

    Attributes:
        path: the field within the KubeletConfiguration, `reservedMemory` or `featureGates[Name]`; empty: the machine.
        message: the kubelet's own reason.
        fix: what to write instead, where that can be said; empty otherwise.
    """

    path: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        """Return the reason, then the fix."""
        return f"{self.message} ({self.fix})" if self.fix else self.message


class Case(NamedTuple):
    """What the start rules look at: an excerpt whose types have been checked, the machine, and the feature gates that are on."""

    excerpt: Mapping[str, Any]
    minor: int
    machine: Machine
    gates: frozenset[str]


def decode_errors(excerpt: Mapping[str, Any]) -> Iterator[StartError]:
    """Yield what the decoder would not take."""
    version, kind = excerpt.get("apiVersion", API_VERSION), excerpt.get("kind", KIND)
    if (version, kind) != (API_VERSION, KIND):
        path, fix = ("kind", f"kind: {KIND}") if version == API_VERSION else ("apiVersion", f"apiVersion: {API_VERSION}")
        yield StartError(path, f'failed to decode: no kind "{kind}" is registered for version "{version}"', fix)
    for name in _STRINGS:
        yield from _scalar(name, excerpt.get(name), str)
    for name in COUNTS:
        yield from _integer(name, excerpt.get(name))
    for name in _BOOLS:
        yield from _scalar(name, excerpt.get(name), bool)
    for name in _STRING_MAPS:
        yield from _mapping(name, excerpt.get(name), str)
    for name in _BOOL_MAPS:
        yield from _mapping(name, excerpt.get(name), bool)
    yield from _strings("enforceNodeAllocatable", excerpt.get("enforceNodeAllocatable"))
    yield from _reserved_memory(excerpt.get("reservedMemory"))


def _scalar(path: str, found: Any, wanted: type) -> Iterator[StartError]:
    if found is not None and not isinstance(found, wanted):
        yield _mistyped(path, found, wanted)


def _integer(path: str, found: Any) -> Iterator[StartError]:
    if isinstance(found, bool) or not isinstance(found, int | None):
        yield _mistyped(path, found, int)


def _mapping(path: str, found: Any, wanted: type) -> Iterator[StartError]:
    if found is None:
        return
    if not isinstance(found, Mapping):
        yield _mistyped(path, found, dict)
        return
    for key, entry in found.items():
        yield from _scalar(f"{path}[{key}]", entry, wanted)


def _strings(path: str, found: Any) -> Iterator[StartError]:
    if found is None:
        return
    if not isinstance(found, list | tuple):
        yield _mistyped(path, found, list)
        return
    for index, entry in enumerate(found):
        yield from _scalar(f"{path}[{index}]", entry, str)


def _reserved_memory(found: Any) -> Iterator[StartError]:
    if found is None:
        return
    if not isinstance(found, list | tuple):
        yield _mistyped("reservedMemory", found, list)
        return
    for index, entry in enumerate(found):
        path = f"reservedMemory[{index}]"
        if not isinstance(entry, Mapping):
            yield _mistyped(path, entry, dict)
            continue
        yield from _integer(f"{path}.numaNode", entry.get("numaNode"))
        yield from _limits(f"{path}.limits", entry.get("limits"))


def _limits(path: str, found: Any) -> Iterator[StartError]:
    if found is None:
        return
    if not isinstance(found, Mapping):
        yield _mistyped(path, found, dict)
        return
    for key, entry in found.items():
        try:
            parse(entry)
        except InvalidQuantityError as error:
            yield StartError(f"{path}[{key}]", f"failed to decode: {error}")


_JSON_NAMES: Mapping[type, str] = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}
_GO_NAMES: Mapping[type, str] = {str: "string", bool: "bool", int: "int32", dict: "map", list: "slice"}


def _mistyped(path: str, found: Any, wanted: type) -> StartError:
    """Return the decoder's words, which name the field but not the entry within it."""
    kind = _JSON_NAMES.get(type(found), type(found).__name__)
    field, _, inner = path.partition("[")
    name = (
        f"MemoryReservation.{field}{inner[inner.index(']') + 1 :]}" if field == "reservedMemory" and inner else f"{KIND}.{field}"
    )
    fix = ""
    if wanted is str and isinstance(found, bool | int | float):
        fix = f'quote it: "{str(found).lower() if isinstance(found, bool) else found}"'
    message = f"failed to decode: json: cannot unmarshal {kind} into Go struct field {name} of type {_GO_NAMES[wanted]}"
    return StartError(path, message, fix)

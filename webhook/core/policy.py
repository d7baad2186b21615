"""The operator's policy and the mode of one request (DESIGN section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from webhook.core.accelerators import Entry

MODE_KEY = "numalign.io/mode"


class Mode(StrEnum):
    """How far we go; `STRICTNESS` orders them."""

    STRICT = "strict"
    BEST_EFFORT = "best-effort"
    AUDIT = "audit"
    OFF = "off"


STRICTNESS: Mapping[Mode, int] = {Mode.OFF: 0, Mode.AUDIT: 1, Mode.BEST_EFFORT: 2, Mode.STRICT: 3}


@dataclass(frozen=True, slots=True)
class CpuRules:
    """CPU of device containers (`source`: share, request or limit; `per_accelerator`: milli-CPUs, fixes the share) and of others.

    `default`: milli-CPUs of a container without devices that names neither request nor limit.
    """

    source: str = "share"
    per_accelerator: int | None = None
    default: int = 500


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """Memory. `inject`: always or never; `default`: bytes for a container without devices that names none."""

    inject: str = "always"
    default: int = 1024**3


@dataclass(frozen=True, slots=True)
class HugepageRules:
    """Hugepages for device containers: page size in bytes, and bytes per accelerator (0: none)."""

    size: int = 1024**3
    per_accelerator: int = 0


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """Claims.

    `shape_pods`: give pods CPUs of their own where they land beside claimed devices; `prioritized_list`: the cluster knows
    `firstAvailable` (gate DRAPrioritizedList), which a preference takes.
    """

    shape_pods: bool = True
    prioritized_list: bool = True


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy document, defaults applied.

    Attributes:
        mode: where neither namespace nor pod says otherwise.
        require_enforcement: strict also refuses where no candidate's Topology Manager enforces anything.
        complete: coverage; True: the classes describe every node that offers the resources they name.
        builtin_classes: names of built-in classes that count.
        annotation_may_relax: a pod annotation may name a mode that is less strict than its namespace's.
        exempt_namespaces: left out by the namespaceSelector, and by us.
        exempt_users: user names whose pods are left alone.
        exempt_runtime_classes: runtimeClassNames whose pods are left alone.
        accelerators: catalogue entries that extend or override the shipped ones.
        shape_shared: shape pods that ask for shared tokens and declare nothing.
        steer: inject node affinity.
        hami: inject `hami.io/numa-alignment`.
    """

    mode: Mode = Mode.STRICT
    require_enforcement: bool = False
    complete: bool = True
    builtin_classes: tuple[str, ...] = ()
    annotation_may_relax: bool = False
    exempt_namespaces: frozenset[str] = frozenset()
    exempt_users: frozenset[str] = frozenset()
    exempt_runtime_classes: frozenset[str] = frozenset()
    accelerators: tuple[Entry, ...] = ()
    cpu: CpuRules = field(default_factory=CpuRules)
    memory: MemoryRules = field(default_factory=MemoryRules)
    hugepages: HugepageRules = field(default_factory=HugepageRules)
    claims: ClaimRules = field(default_factory=ClaimRules)
    shape_shared: bool = False
    steer: bool = True
    hami: bool = True


def effective_mode(policy: Policy, label: str | None, annotations: Mapping[str, Any]) -> tuple[Mode, tuple[str, ...]]:
    """Return the mode for one pod, and warnings about values that are no modes.

    `label` is the namespace's mode as the request path carries it, None for `default`. `off` on the namespace is final; the
    pod's annotation moves only towards stricter unless the policy allows relaxing. An invalid value counts as the default.
    """
    warnings: list[str] = []
    base = _mode(label, policy.mode, "the namespace's label", warnings)
    if base is Mode.OFF and label is not None:
        return base, tuple(warnings)
    wanted = _mode(annotations.get(MODE_KEY), base, "the pod's annotation", warnings)
    if STRICTNESS[wanted] < STRICTNESS[base] and not policy.annotation_may_relax:
        warnings.append(f"{MODE_KEY}: {wanted} is less strict than the namespace's {base}; {base} applies")
        return base, tuple(warnings)
    return wanted, tuple(warnings)


def _mode(value: Any, default: Mode, where: str, warnings: list[str]) -> Mode:
    if value is None:
        return default
    try:
        return Mode(value)
    except ValueError:
        warnings.append(f"{where} {MODE_KEY} must be strict, best-effort, audit or off; {default} applies")
        return default

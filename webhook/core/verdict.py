"""The verdict: what the kubelet of an idle node of one class does with one pod (DESIGN sections 2 and 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """A verdict in one word."""

    ALIGNED = "aligned"
    ADMITTED = "admitted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one container lands on the idle node.

    Attributes:
        cpus: ids of its own CPUs (exclusive, or its pod's pool); empty: the node's shared pool.
        memory: NUMA node -> bytes pinned there; empty: not pinned.
        devices: resource -> NUMA node (-1: no topology) -> devices. Devices on several nodes count at their lowest one.
    """

    cpus: tuple[int, ...] = ()
    memory: Mapping[int, int] = field(default_factory=dict)
    devices: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that keeps an admitted pod from being aligned.

    Attributes:
        container: the container concerned; empty: the pod.
        reason: a short stable word, e.g. `SharedCPUs`, `DeviceWithoutTopology`, `CPUsElsewhere`, `MemoryElsewhere`,
            `DevicesApart`, `WiderThanNeeded`, `NotPreferred`, `NoDeviceContainer`.
        detail: one clause with numbers and units.
    """

    container: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the kubelet of an idle node of one class does with one pod.

    Attributes:
        start: why the class's kubelet would not start, else None; if set, the rest is empty.
        admitted: by the managers and by the fit check, on a node with no other pod.
        reason: the word that the kubelet puts on a refused pod; empty when admitted.
        message: the kubelet's message, in its form.
        masks: container -> NUMA nodes of the stored hint, ascending; None where it has none. Empty when not admitted.
        aligned: DESIGN section 2.
        certain: False where any of these depends on the kubelet's chance; then none of them counts.
        possible: what chance may bring where it is not certain; empty where it is.
        unknown: why there is no verdict (the class's kubelet would never finish, say); empty: there is one.
        container: the container at which a refusal struck; empty: the pod as a whole, or admitted.
        placements: container -> where it lands; empty when not admitted.
        gaps: why an admitted pod is not aligned.
    """

    start: str | None = None
    admitted: bool = False
    reason: str = ""
    message: str = ""
    masks: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    aligned: bool = False
    certain: bool = True
    possible: frozenset[Outcome] = frozenset()
    unknown: str = ""
    container: str = ""
    placements: Mapping[str, Placement] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Return the verdict in one word; a kubelet that does not start refuses, what is left to chance is unknown."""
        if self.unknown:
            return Outcome.UNKNOWN
        if self.certain:
            return self.one_outcome
        # Refused it is, whichever reason comes first.
        return Outcome.REFUSED if self.possible == {Outcome.REFUSED} else Outcome.UNKNOWN

    @property
    def one_outcome(self) -> Outcome:
        """Return what becomes of the pod by one sequence of chances, the one that the other fields tell of."""
        if not self.admitted:
            return Outcome.REFUSED
        return Outcome.ALIGNED if self.aligned else Outcome.ADMITTED

    @property
    def surely_admitted(self) -> bool:
        """Tell whether the pod is admitted whatever chance brings, even if its alignment hangs on it."""
        if self.unknown:
            return False
        return self.admitted if self.certain else bool(self.possible) and Outcome.REFUSED not in self.possible

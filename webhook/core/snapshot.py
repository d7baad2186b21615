"""Everything that a decision depends on besides the request: the set in force."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from webhook.core.accelerators import Catalogue
from webhook.core.decision import Decision
from webhook.core.dra.devices import Inventory
from webhook.core.dra.podclaims import PodClaims
from webhook.core.dra.references import Lookup
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.limitranges import Bounds, Limits
from webhook.core.memo import Memo
from webhook.core.policy import Policy
from webhook.core.shape.candidate import Candidate, candidate

_REMEMBERED = 512
"""Decisions; each takes some 20 KiB against a dozen classes."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One set in force; a new one replaces it as a whole.

    Attributes:
        catalogue: the shipped accelerators, extended by the policy's.
        classes: sorted by name.
        generation: counts the sets that were in force, from 1; what is remembered about one set is void for the next.
        inventory: DRA devices and their classes.
        lookup: reads the claims that pods refer to; None: they are not looked up.
        limits: what the cluster's LimitRanges say, as far as it is known.
        bounds: those of the namespace that a decision is about, see `within`.
        candidates: the classes whose kubelets start, prepared for decisions, sorted by name.
        remembered: decisions on pods seen before.
        claims: what the pod at hand gets by DRA; None: nothing that matters, or no pod is at hand. See `seen_by`.
    """

    policy: Policy = field(default_factory=Policy)
    catalogue: Catalogue = field(default_factory=lambda: Catalogue(()))
    classes: tuple[NodeKubelet, ...] = ()
    generation: int = 1
    inventory: Inventory = field(default_factory=Inventory)
    lookup: Lookup | None = field(default=None, compare=False, repr=False)
    limits: Limits = field(default_factory=dict, compare=False, repr=False)
    bounds: Bounds = ()
    candidates: tuple[Candidate, ...] = field(init=False, compare=False, repr=False)
    remembered: Memo[Decision] = field(default_factory=lambda: Memo(_REMEMBERED), init=False, compare=False, repr=False)
    claims: PodClaims | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        made = [candidate(node, self.catalogue) for node in self.classes if node.start is None]
        # The dataclass is frozen for its readers, not for itself.
        object.__setattr__(self, "candidates", tuple(sorted(made, key=lambda each: each.name)))

    def within(self, namespace: str) -> Snapshot:
        """Return the same set for decisions in one namespace: what was prepared and what is remembered is shared."""
        bounds = self.limits.get(namespace, ())
        return self if bounds == self.bounds else self._with(bounds=bounds)

    def knowing(self, limits: Limits) -> Snapshot:
        """Return the same set with other LimitRanges; what was prepared and what is remembered is shared."""
        return self._with(limits=limits)

    def seen_by(self, claims: PodClaims, candidates: Iterable[Candidate]) -> Snapshot:
        """Return the set as one pod sees it: the classes that its claims leave to it, and what they get it there."""
        return self._with(candidates=tuple(candidates), claims=claims)

    def _with(self, **changes: object) -> Snapshot:
        made = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(made, name, value)
        return made

    @property
    def nodes(self) -> Mapping[str, NodeKubelet]:
        """Return class -> its kubelet."""
        return {each.name: each.node for each in self.candidates}

"""Everything that a decision depends on besides the request: the set in force."""

from __future__ import annotations

from dataclasses import dataclass, field

from webhook.core.accelerators import Catalogue
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.policy import Policy


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One set in force; a new one replaces it as a whole.

    Attributes:
        catalogue: the shipped accelerators, extended by the policy's.
        classes: sorted by name.
        generation: counts the sets that were in force, from 1; what is remembered about one set is void for the next.
    """

    policy: Policy = field(default_factory=Policy)
    catalogue: Catalogue = field(default_factory=lambda: Catalogue(()))
    classes: tuple[NodeKubelet, ...] = ()
    generation: int = 1

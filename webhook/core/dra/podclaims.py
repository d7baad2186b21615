"""What one pod gets by DRA, as data: the set in force carries it while this one pod is decided on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from webhook.core.accelerators import Ask


@dataclass(frozen=True, slots=True)
class PodClaims:
    """What one pod gets by DRA.

    Attributes:
        asks: what each container that keeps running gets of accelerators; the resource is the pod's name for the claim and
            the request's (`gpus/gpu`), or the extended resource that DRA serves.
        lone: by nothing but claims it is our business.
        cpu: containers whose CPUs come from a claim.
        pinned: those of the asks' containers whose author wants CPUs of their own: whole ones, requests = limits.
        unserved: class -> why it does not have the devices, of those that the pod could land on.
        tied: constraints are among the reasons.
        elsewhere: nodes that no class describes, or of which too little is known, may have them.
    """

    asks: tuple[Ask, ...] = ()
    lone: bool = False
    cpu: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    unserved: Mapping[str, str] = field(default_factory=dict)
    tied: bool = False
    elsewhere: bool = False

"""What a claim must not be to be touched: forms in which a constraint would do harm, or in which the author has spoken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhook.core.dra import claims
from webhook.core.dra.claims import DeviceRequest
from webhook.core.dra.devices import Json

_CHANNELS: Final = ("compute-domain-default-channel.nvidia.com", "compute-domain-daemon.nvidia.com")
"""Classes of NVIDIA's ComputeDomain, whose controller makes the templates and whose devices have no NUMA node."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Why a claim is left alone: a stable word, and a sentence where people would expect otherwise (else empty)."""

    reason: str
    text: str = ""


def skip(claim: Json, devices: Json) -> Skip | None:
    """Return why a well-formed claim is left as written, else None; `devices`: its `spec.devices`."""
    if claims.EXTENDED_RESOURCE in claims.annotations_of(claim):
        return Skip("ExtendedResource")  # the scheduler makes it, allocated already
    requests = claims.visit(devices)
    found = next((why for request in requests if (why := _form(request)) is not None), None)
    if found is not None:
        return found
    if sum(request.count for request in requests) < 2:
        return Skip("OneDevice")
    if len(requests) > claims.MOST_REQUESTS:
        return Skip("TooMany", f"it has more than {claims.MOST_REQUESTS} requests")
    if sum(request.count for request in requests) > claims.MOST_RESULTS:
        return Skip("TooMany", f"no claim gets more than {claims.MOST_RESULTS} devices")
    constraints = claims.constraints(devices)
    if any(constraint.touches(request) for constraint in constraints for request in requests):
        return Skip("Constrained")
    return None


def _form(request: DeviceRequest) -> Skip | None:
    if request.alternatives:
        return Skip("FirstAvailable", f"{request.name} is a prioritized list already")
    if request.class_name in _CHANNELS:
        return Skip("ComputeDomain")
    if request.admin:
        return Skip("AdminAccess")
    if request.all:
        # A constraint that does not hold for all devices of a node is an error there, not a mismatch: no node would be tried.
        return Skip("AllDevices", f"{request.name} asks for all devices of a node, which no constraint may narrow")
    return None

"""Why a node does not have the devices of a pod's claims, in a clause with numbers."""

from __future__ import annotations

from webhook.core import wording
from webhook.core.dra.allocation import all_matched
from webhook.core.dra.demand import Demand, Need
from webhook.core.dra.search import slots


def shortage(node: str, demand: Demand) -> str:
    """Return why an idle node certainly cannot give all the devices."""
    for need in demand.needs:
        there = len({candidate.device.key for candidate in need.candidates(node)})
        least = min(way.request.count for way in need.ways)
        if there < least:
            return f"{_name(need)} asks for {_devices(least)}; {there or 'none'} there"
    claimed = wording.some(list(dict.fromkeys(_name(need) for need in demand.needs)))
    if all_matched(slots(node, demand)):
        attributes = wording.some(list(dict.fromkeys(tie.attribute for tie in demand.ties)), 1)
        return f"it cannot give {claimed} devices with one {attributes} each"
    return f"it has too few devices for {claimed} together"


def _name(need: Need) -> str:
    return f"{need.claim}/{need.name}"


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"

"""Which devices of each node a request could get: those for which every selector of its class and its own holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from webhook.core.dra.claims import DeviceRequest
from webhook.core.dra.devices import Device, Inventory
from webhook.core.quantities import InvalidQuantityError, parse


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that a request could get.

    Attributes:
        sure: it matches, and on an idle node nothing else is asked.
        fails: a selector fails on it, which ends the scheduler's search once it gets there.
    """

    device: Device
    sure: bool
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request with its candidates.

    Attributes:
        nodes: node -> its candidates; every node of the inventory is there.
    """

    request: DeviceRequest
    nodes: Mapping[str, tuple[Candidate, ...]]

    def devices(self) -> Iterator[Device]:
        """Yield the candidates of all nodes."""
        for candidates in self.nodes.values():
            yield from (candidate.device for candidate in candidates)

    @property
    def exists(self) -> bool:
        """Tell whether there is a candidate anywhere."""
        return any(self.nodes.values())

    @property
    def fails(self) -> bool:
        """Tell whether a selector fails on some device."""
        return any(candidate.fails for candidates in self.nodes.values() for candidate in candidates)


def wanted(request: DeviceRequest, inventory: Inventory) -> Wanted:
    """Return a request with its candidates; none where its DeviceClass is not known."""
    known = inventory.classes.get(request.class_name)
    if known is None:
        return Wanted(request, dict.fromkeys(inventory.nodes, ()))
    expressions = (*known.selectors, *request.selectors)

    def nodes() -> dict[str, tuple[Candidate, ...]]:
        return {node: tuple(_candidates(request, expressions, devices, inventory)) for node, devices in inventory.nodes.items()}

    key = (expressions, tuple(sorted(request.capacity.items())))
    return Wanted(request, inventory.remembered.get(key, nodes))


def _candidates(
    request: DeviceRequest, expressions: tuple[str, ...], devices: tuple[Device, ...], inventory: Inventory
) -> Iterator[Candidate]:
    for device in devices:
        answers = [_has_capacity(request, device)]
        for expression in expressions:
            if False in answers:
                break
            answers.append(inventory.matches(expression, device))
        if False not in answers:
            fails = None in answers and any(inventory.fails(expression, device) for expression in expressions)
            yield Candidate(device, device.certain and None not in answers, fails)


def _has_capacity(request: DeviceRequest, device: Device) -> bool | None:
    """Tell whether a device has what a request asks of its capacities; None: it does not, or under another name.

    Where the gate DRAConsumableCapacity is off (the default up to 1.35) the API server drops what is asked: any device will do.
    """
    return all(_is_enough(device.capacity.get(name), quantity) for name, quantity in request.capacity.items()) or None


def _is_enough(has: str | None, wanted_: str) -> bool:
    try:
        return has is not None and parse(has) >= parse(wanted_)
    except InvalidQuantityError:
        return False

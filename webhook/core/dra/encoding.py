"""How a claim says that its devices should share a value of an attribute.

*Required*: one constraint over all of them. *Preferred*: there is no such word in the API, but the allocator tries the
alternatives of a request in order, and those of the first request outermost. So one request, the hub, comes first and gets two
alternatives, `aligned` and `any`; a constraint between `hub/aligned` and each other request binds in the first alternative only
(`structured/internal/incubating/allocator_incubating.go`, `constraint.go`). Every device of the others must publish the
attribute, because a constraint asks for it in both, and each of them may be one device only, because two of one request would
have to match each other in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.core.dra.attributes import Shared, is_accelerator
from webhook.core.dra.candidates import Wanted
from webhook.core.dra.claims import MOST_CONSTRAINTS, MOST_REFERENCES
from webhook.core.dra.devices import Json

ALIGNED: Final = "aligned"
ANY: Final = "any"


@dataclass(frozen=True, slots=True)
class Encoding:
    """What becomes of `spec.devices`.

    Attributes:
        devices: the new object.
        names: of the requests that are aligned.
        attribute: by which.
        required: nothing else will do.
    """

    devices: Json
    names: tuple[str, ...]
    attribute: str
    required: bool


@dataclass(frozen=True, slots=True)
class NoEncoding:
    """Why a claim cannot say it."""

    why: str


def required(devices: Json, shared: Shared) -> Encoding | NoEncoding:
    """Return the claim with one constraint over all requests whose candidates publish the attribute."""
    if not shared.is_complete:
        return NoEncoding(f"not every device publishes {shared.name}")
    names = [each.request.name for each in shared.covered]
    constraint = {"matchAttribute": shared.name, "requests": names}
    before = list(devices.get("constraints") or ())
    if len(before) >= MOST_CONSTRAINTS:
        return NoEncoding(f"the claim has {MOST_CONSTRAINTS} constraints already")
    return Encoding({**devices, "constraints": [*before, constraint]}, tuple(names), shared.name, required=True)


def preferred(devices: Json, shared: Shared) -> Encoding | NoEncoding:
    """Return the claim with a hub of two alternatives and a constraint to each other request, where that is exact."""
    hub = _hub(shared)
    if isinstance(hub, NoEncoding):
        return hub
    others = [each.request.name for each in shared.covered if each is not hub]
    before = list(devices.get("constraints") or ())
    added = _star(shared.name, hub.request.name, others)
    if len(before) + len(added) > MOST_CONSTRAINTS:
        return NoEncoding(f"it would take more than {MOST_CONSTRAINTS} constraints")
    config = _configuration(devices.get("config") or (), hub.request.name)
    if isinstance(config, NoEncoding):
        return config
    requests = [_alternatives(hub), *(entry for entry in devices["requests"] if entry["name"] != hub.request.name)]
    changed = {**devices, "requests": requests, "constraints": [*before, *added]}
    if config:
        changed["config"] = config
    return Encoding(changed, (hub.request.name, *others), shared.name, required=False)


def _hub(shared: Shared) -> Wanted | NoEncoding:
    """Return the request that gets the alternatives: the one of several devices, the one not fully covered, an accelerator."""
    several = [each for each in shared.both if each.request.count > 1]
    if len(several) > 1:
        names = " and ".join(each.request.name for each in several[:2])
        return NoEncoding(f"{names} both ask for several devices, and a preference between such requests cannot be written")
    hub = next(iter(several or shared.partly), None) or next(filter(is_accelerator, shared.both), shared.both[0])
    others = [each for each in shared.covered if each is not hub]
    if not others and hub.request.count < 2:
        return NoEncoding(f"not every device publishes {shared.name}")
    if not others and hub.request.name in shared.doubted:
        return NoEncoding(f"devices of {hub.request.name} that do not know their NUMA node would match each other")
    return hub


def _star(attribute: str, hub: str, others: Sequence[str]) -> list[dict[str, Any]]:
    spokes = [[f"{hub}/{ALIGNED}", other] for other in others] or [[f"{hub}/{ALIGNED}"]]
    return [{"matchAttribute": attribute, "requests": names} for names in spokes]


def _alternatives(hub: Wanted) -> dict[str, Any]:
    exact = {**hub.request.raw, "allocationMode": "ExactCount", "count": hub.request.count}
    exact.pop("adminAccess", None)  # only ever false here, and alternatives do not have the field
    return {"name": hub.request.name, "firstAvailable": [{"name": ALIGNED, **exact}, {"name": ANY, **exact}]}


def _configuration(entries: Iterable[Json], hub: str) -> list[dict[str, Any]] | NoEncoding:
    """Drivers look for the name under which a device was allocated, which is now the alternative's: name these as well."""
    changed = []
    for entry in entries:
        names = list(entry.get("requests") or ())
        if hub not in names:
            changed.append(dict(entry))
            continue
        names += [name for name in (f"{hub}/{ALIGNED}", f"{hub}/{ANY}") if name not in names]
        if len(names) > MOST_REFERENCES:
            return NoEncoding(f"a configuration would name more than {MOST_REFERENCES} requests")
        changed.append({**entry, "requests": names})
    return changed

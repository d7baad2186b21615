"""From a claim's devices to what should become of it: the attribute, required or preferred, and which nodes can satisfy it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from webhook.core import wording
from webhook.core.dra import claims
from webhook.core.dra.allocation import Fits, fits
from webhook.core.dra.attributes import ORDER, PCIE_ROOT, Shared, shared_attributes
from webhook.core.dra.candidates import Wanted, wanted
from webhook.core.dra.checklist import skip
from webhook.core.dra.devices import Inventory, Json
from webhook.core.dra.effort import MOST_COMBINATIONS, most_combinations
from webhook.core.dra.encoding import Encoding, NoEncoding, preferred, required

_NUMA: Final = frozenset(ORDER) - {PCIE_ROOT}


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """What should become of one claim.

    Attributes:
        encoding: the change; None: it stays as written.
        reason: a stable word why it stays.
        text: the same for people; empty where nobody would expect a change.
        attribute: the one that was chosen; empty: none.
        names: of the requests whose devices publish it, the ones that are judged together.
        impossible: no described node that could give the claim its devices has them with one value of the attribute.
        plain: node -> whether it can give the claim its devices.
        aligned: the same with the attribute in common.
        whys: node -> why it cannot, of those that could do without.
        notes: sentences about requests that are left out.
    """

    encoding: Encoding | None = None
    reason: str = ""
    text: str = ""
    attribute: str = ""
    names: tuple[str, ...] = ()
    impossible: bool = False
    plain: Mapping[str, Fits] = field(default_factory=dict)
    aligned: Mapping[str, Fits] = field(default_factory=dict)
    whys: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def is_refusal(self) -> bool:
        """Tell whether nothing but what is known speaks against the claim: no request was left out for not being known."""
        return self.impossible and not self.notes


def plan(
    claim: Json, devices: Json, inventory: Inventory, *, strict: bool, rewritable: bool, prioritized: bool = True
) -> ClaimPlan:
    """Return what should become of a well-formed claim.

    Args:
        claim: for its metadata.
        devices: its `spec.devices`, or those of a template.
        inventory: the devices and classes that are known.
        strict: required where that is possible; else preferred.
        rewritable: its requests may change, not only its constraints.
        prioritized: the cluster knows prioritized lists.
    """
    skipped = skip(claim, devices)
    if skipped is not None:
        return ClaimPlan(reason=skipped.reason, text=skipped.text)
    if inventory.is_empty:
        return ClaimPlan(reason="NoDevicesDescribed")
    everything = [wanted(request, inventory) for request in claims.visit(devices)]
    known = [each for each in everything if each.exists]
    notes = tuple(_left_out(each, inventory) for each in everything if not each.exists)
    plain = {node: fits(node, known) for node in inventory.nodes} if known else {}
    if all(answer is Fits.NO for answer in plain.values()):
        return ClaimPlan(reason="NoNodeOffers", text="no described node has the devices", notes=notes, plain=plain)
    if failing := [each.request.name for each in known if each.fails]:
        # As written, the scheduler may find devices before it comes to the one on which a selector fails.
        text = f"a selector of {wording.joined(failing)} fails on some devices"
        return ClaimPlan(reason="SelectorFails", text=text, notes=notes, plain=plain)
    chosen = _choose(known, plain)
    if chosen is None:
        return ClaimPlan(reason="NoAttribute", text="its devices publish no NUMA node under one name", notes=notes, plain=plain)
    shared, aligned = chosen
    if _impossible(plain, aligned):
        return _unsatisfiable(shared, plain, aligned, notes)
    made = _encode(devices, shared, strict=strict, rewritable=rewritable, prioritized=prioritized)
    judged = ClaimPlan(attribute=shared.name, names=shared.names, plain=plain, aligned=aligned, notes=notes)
    if isinstance(made, NoEncoding):
        return replace(judged, reason="NoEncoding", text=made.why)
    if most_combinations(made, known, _without(Fits.NO, plain)) > MOST_COMBINATIONS:
        return replace(judged, reason="TooManyCombinations", text="the scheduler would have too many combinations to try")
    return replace(judged, encoding=made)


def _without(answer: Fits, plain: Mapping[str, Fits]) -> list[str]:
    return [node for node, found in plain.items() if found is not answer]


def _left_out(each: Wanted, inventory: Inventory) -> str:
    request = each.request
    if request.class_name not in inventory.classes:
        return f"request {request.name}: DeviceClass {request.class_name} is not known; left out"
    return f"request {request.name}: no described node has such a device; left out"


def _choose(known: Sequence[Wanted], plain: Mapping[str, Fits]) -> tuple[Shared, dict[str, Fits]] | None:
    """Return the best attribute with its answers.

    Devices below one PCIe root are on one NUMA node, but most on one node have different roots: where roots cannot be had in
    common, that says nothing.
    """
    for shared in shared_attributes(known):
        aligned = {node: fits(node, known, frozenset(shared.names), shared.name) for node in plain}
        if shared.name in _NUMA or not _impossible(plain, aligned):
            return shared, aligned
    return None


def _impossible(plain: Mapping[str, Fits], aligned: Mapping[str, Fits]) -> bool:
    return all(answer is Fits.NO for node, answer in aligned.items() if plain[node] is not Fits.NO)


def _encode(devices: Json, shared: Shared, *, strict: bool, rewritable: bool, prioritized: bool) -> Encoding | NoEncoding:
    if strict and shared.is_complete:
        return required(devices, shared)
    if not rewritable:
        return NoEncoding("a preference takes other requests, and those of a claim written by hand are its author's")
    if not prioritized:
        return NoEncoding("a preference takes a prioritized list, and the policy says that the cluster knows none")
    return preferred(devices, shared)


def _unsatisfiable(shared: Shared, plain: Mapping[str, Fits], aligned: Mapping[str, Fits], notes: tuple[str, ...]) -> ClaimPlan:
    both = shared.both
    return ClaimPlan(
        reason="NotOnOneNode",
        text=f"no node has {_asked(both)} with one {shared.name}",
        attribute=shared.name,
        names=shared.names,
        impossible=True,
        plain=plain,
        aligned=aligned,
        whys={node: _why(node, both, shared.name) for node, answer in plain.items() if answer is not Fits.NO},
        notes=notes,
    )


def _asked(everything: Iterable[Wanted]) -> str:
    return wording.joined([f"{each.request.count} {each.request.name}" for each in everything])


def _why(node: str, everything: Sequence[Wanted], attribute: str) -> str:
    """Return why a node cannot: the first request that has too few with any one value, else that no value serves all."""
    for each in everything:
        counts: dict[object, int] = {}
        for candidate in each.nodes.get(node, ()):
            value = candidate.device.published(attribute)
            if value is not None:
                counts[value.value] = counts.get(value.value, 0) + 1
        most = max(counts.values(), default=0)
        if most < each.request.count:
            has = f"at most {most} share one" if most else "none publishes one"
            return f"{each.request.name} asks for {each.request.count} devices with one {attribute}; {has}"
    names = wording.joined([each.request.name for each in everything])
    return f"no {attribute} has devices for all of {names}"

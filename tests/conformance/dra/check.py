"""What a mutated claim must do in the hands of the allocator, and whether it does."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webhook.config.selectors import Selectors
from webhook.core.dra import claims
from webhook.core.dra.allocation import Fits
from webhook.core.dra.devices import Attribute, Inventory, device_class
from webhook.core.dra.plan import ClaimPlan, plan
from webhook.core.dra.slices import devices_by_node

JSON = dict[str, Any]

SELECTORS = Selectors()
VERSIONS = {34: "v1.34.4", 35: "v1.35.4", 36: "v1.36.3", 37: "v1.37.2"}


def allocator_path(minor: int) -> Path:
    """Return where the Makefile puts the allocator of a minor."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "numalign" / "allocator" / VERSIONS[minor] / "allocator"


@dataclass(frozen=True)
class Subject:
    """A case with what we make of it, in both modes."""

    case: JSON
    inventory: Inventory
    strict: ClaimPlan
    best_effort: ClaimPlan

    def mutated(self, made: ClaimPlan) -> JSON | None:
        """Return the claim as changed; None where it is not."""
        return self.case["claim"] | {"spec": {"devices": made.encoding.devices}} if made.encoding else None


def subject(case: JSON) -> Subject:
    """Return a case with our plans for it."""
    nodes = devices_by_node([each["spec"] for each in case["slices"]])
    known = {node: nodes.get(node, ()) for node in case["nodes"]}
    classes = {each["metadata"]["name"]: device_class(each) for each in case["classes"]}
    inventory = Inventory(known, classes, matches=SELECTORS, fails=SELECTORS.fails)
    claim = case["claim"]
    plans = (plan(claim, claims.devices(claim), inventory, strict=strict, rewritable=True) for strict in (True, False))
    return Subject(case, inventory, *plans)


def questions(each: Subject) -> Iterator[JSON]:
    """Yield two questions a node, idle and with devices in use."""
    for node in each.case["nodes"]:
        for allocated in ([], each.case["allocated"]):
            yield {
                "node": node,
                "classes": each.case["classes"],
                "slices": each.case["slices"],
                "allocated": allocated,
                "claims": {name: [claim] for name, claim in _claims(each, node).items()},
                "validate": {name: made for name, made in _changed(each).items() if not allocated},
            }


def _changed(each: Subject) -> dict[str, JSON]:
    found = {"required": each.mutated(each.strict), "preferred": each.mutated(each.best_effort)}
    return {name: claim for name, claim in found.items() if claim is not None}


def _claims(each: Subject, node: str) -> dict[str, JSON]:
    """Return the claim as written, as changed, and once for each value with its devices restricted to that value.

    The restricted ones have selectors and no constraint, so what they say about alignment does not depend on constraints.
    """
    found = {"written": each.case["claim"]} | _changed(each)
    for made in (each.strict, each.best_effort):
        for names in {made.names, made.encoding.names if made.encoding else ()} - {()}:
            for index, value in enumerate(_values(each, node, made.attribute)):
                name = f"{_group(names, made.attribute)} {index}"
                if name not in found:
                    found[name] = _restricted(each.case["claim"], names, made.attribute, value)
    return found


def _group(names: Iterable[str], attribute: str) -> str:
    return f"{'+'.join(sorted(names))} on {attribute}"


def _values(each: Subject, node: str, attribute: str) -> list[Attribute]:
    if not attribute:
        return []
    return sorted({v for device in each.inventory.nodes[node] if (v := device.published(attribute)) is not None}, key=repr)


def _restricted(claim: JSON, names: Iterable[str], attribute: str, value: Attribute) -> JSON:
    domain, _, identifier = attribute.partition("/")
    there = f"device.attributes['{domain}']"
    selector = {"cel": {"expression": f"has({there}.{identifier}) && {there}.{identifier} == {json.dumps(value.value)}"}}
    requests = [
        each | {"exactly": each["exactly"] | {"selectors": [*each["exactly"].get("selectors", ()), selector]}}
        if each["name"] in names
        else each
        for each in claim["spec"]["devices"]["requests"]
    ]
    return claim | {"spec": {"devices": claim["spec"]["devices"] | {"requests": requests}}}


def ask(binary: Path, asked: list[JSON]) -> list[JSON]:
    """Return the allocator's answers."""
    lines = "".join(json.dumps(each) + "\n" for each in asked)
    done = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def faults(each: Subject, answers: Iterable[JSON], counts: Counter[str]) -> Iterator[str]:
    """Yield what is wrong; `counts` learns how often each promise was put to the test."""
    asked = list(questions(each))
    for question, answer in zip(asked, answers, strict=True):
        yield from (f"{name} claim is invalid: {text}" for name, text in answer.get("invalid", {}).items() if text)
        counts["valid"] += len(answer.get("invalid", {}))
        node, idle, found = question["node"], not question["allocated"], answer["allocations"]
        if any(allocation.get("error") for allocation in found.values()):
            counts["allocator errors"] += 1
            if not found["written"].get("error"):
                yield f"{node}: the claim as written does not fail, a changed one does: {found}"
            continue
        for made in (each.strict, each.best_effort):
            if made.encoding is not None:
                yield from _encoded(each, made, node, found, counts)
        if idle:
            yield from _satisfiable(each, node, found, counts)


def _possible(found: JSON, names: Iterable[str], attribute: str) -> bool:
    """Tell whether the requests can have one value of the attribute, by the claims that are restricted to one."""
    group = _group(names, attribute)
    return any(allocation["fits"] for name, allocation in found.items() if name.startswith(f"{group} "))


def _encoded(each: Subject, made: ClaimPlan, node: str, found: JSON, counts: Counter[str]) -> Iterator[str]:
    assert made.encoding is not None
    name = "required" if made is each.strict else "preferred"
    result, possible = found[name], _possible(found, made.encoding.names, made.encoding.attribute)
    word = "required" if made.encoding.required else "preferred"
    counts[f"{word}: could be aligned"] += possible
    counts[f"{word}: could not"] += not possible
    if made.encoding.required:
        if result["fits"] != possible:
            yield f"{node}: required fits: {result['fits']}, possible: {possible}"
    else:
        counts["preferred: fits as written"] += found["written"]["fits"]
        if result["fits"] != found["written"]["fits"]:
            yield f"{node}: preferred fits: {result['fits']}, as written: {found['written']['fits']}"
    if possible and result["fits"] and len(_used(each, node, made, result)) != 1:
        yield f"{node}: {word} is not aligned where it could be: {result['results']}"


def _used(each: Subject, node: str, made: ClaimPlan, result: JSON) -> set[Attribute | None]:
    assert made.encoding is not None
    devices = {(d.driver, d.pool, d.name): d for d in each.inventory.nodes[node]}
    return {
        devices[driver, pool, device].published(made.encoding.attribute)
        for request, driver, pool, device in result["results"]
        if request.partition("/")[0] in made.encoding.names
    }


def _satisfiable(each: Subject, node: str, found: JSON, counts: Counter[str]) -> Iterator[str]:
    made = each.strict
    pairs = [("plain", made.plain.get(node), found["written"]["fits"])]
    if made.attribute:
        pairs.append(("aligned", made.aligned.get(node), _possible(found, made.names, made.attribute)))
    for what, ours, theirs in pairs:
        if ours is None or (ours is Fits.YES and made.notes):
            continue  # requests without any candidate are left out of a yes
        counts[f"{what}: {ours}"] += 1
        if ours is not Fits.UNKNOWN and (ours is Fits.YES) != theirs:
            yield f"{node}: {what} satisfiable: we say {ours}, the allocator {theirs}"

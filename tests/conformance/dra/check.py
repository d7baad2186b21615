"""What a mutated claim must do in the hands of the allocator, and whether it does."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import jsonpatch

from webhook.config.selectors import Selectors
from webhook.core.decision import Request
from webhook.core.dra import claims, decide
from webhook.core.dra.allocation import Fits
from webhook.core.dra.devices import Attribute, Inventory, device_class
from webhook.core.dra.encoding import Encoding
from webhook.core.dra.plan import ClaimPlan, plan
from webhook.core.dra.slices import devices_by_node
from webhook.core.policy import Mode
from webhook.core.snapshot import Snapshot

JSON = dict[str, Any]

SELECTORS = Selectors()
MODES = (Mode.STRICT, Mode.BEST_EFFORT)
VERSIONS = {34: "v1.34.4", 35: "v1.35.4", 36: "v1.36.3", 37: "v1.37.2"}


def allocator_path(minor: int) -> Path:
    """Return where the Makefile puts the allocator of a minor."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "numalign" / "allocator" / VERSIONS[minor] / "allocator"


@dataclass(frozen=True)
class Subject:
    """A case with what we make of it.

    Attributes:
        plans: by mode.
        changed: by mode, the claim as the API server has it after the mutating handler; what both modes make is there once.
    """

    case: JSON
    inventory: Inventory
    plans: Mapping[Mode, ClaimPlan]
    changed: Mapping[Mode, JSON]

    @cached_property
    def questions(self) -> tuple[JSON, ...]:
        """Return two questions a node, idle and with devices in use; the first also asks to create the claims."""
        return tuple(_questions(self))

    def encodings(self) -> Iterator[tuple[Mode, Encoding]]:
        """Yield what is put to the test."""
        for mode in self.changed:
            made = self.plans[mode].encoding
            assert made is not None
            yield mode, made


def subject(case: JSON) -> Subject:
    """Return a case with our plans for it."""
    known, claim = inventory(case), case["claim"]
    plans = {
        mode: plan(claim, claims.devices(claim), known, strict=mode is Mode.STRICT, rewritable=claims.is_generated(claim))
        for mode in MODES
    }
    changed: dict[Mode, JSON] = {}
    for mode, made in plans.items():
        after = mutated(claim, known, mode) if made.encoding else claim
        if after != claim and after not in changed.values():
            changed[mode] = after
    return Subject(case, known, plans, changed)


def inventory(case: JSON) -> Inventory:
    """Return the devices of a case; a node without any is there, too."""
    nodes = devices_by_node([each["spec"] for each in case["slices"]])
    known = {node: nodes.get(node, ()) for node in case["nodes"]}
    classes = {each["metadata"]["name"]: device_class(each) for each in case["classes"]}
    return Inventory(known, classes, matches=SELECTORS, fails=SELECTORS.fails)


def mutated(claim: JSON, known: Inventory, mode: Mode) -> JSON:
    """Return the claim after the patch that the API server gets."""
    decision = decide.mutate_claim(claim, Request(label=mode), Snapshot(inventory=known))
    changed: JSON = jsonpatch.apply_patch(claim, list(decision.patch))
    return changed


def _questions(each: Subject) -> Iterator[JSON]:
    create = {"written": each.case["claim"]} | each.changed
    for node in each.case["nodes"]:
        asked = {name: [claim] for name, claim in _claims(each, node).items()}
        for allocated in ([], each.case["allocated"]):
            yield {
                "node": node,
                "classes": each.case["classes"],
                "slices": each.case["slices"],
                "allocated": allocated,
                "claims": asked,
                "create": create,
            }
            create = {}


def _claims(each: Subject, node: str) -> dict[str, JSON]:
    """Return the claim as written, as changed, and once for each value with its devices restricted to that value.

    The restricted ones have selectors and no constraint, so what they say about alignment does not depend on constraints.
    """
    found = {"written": each.case["claim"]} | each.changed
    for made in each.plans.values():
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


def ask(binary: Path, asked: Iterable[JSON]) -> list[JSON]:
    """Return the allocator's answers."""
    return next(ask_all([binary], asked))


def ask_all(binaries: Iterable[Path], asked: Iterable[JSON]) -> Iterator[list[JSON]]:
    """Yield the answers of each allocator to the same questions. They are many megabytes, for which pipes are slow."""
    with TemporaryFile("w+") as lines:
        lines.writelines(json.dumps(each) + "\n" for each in asked)
        for binary in binaries:
            lines.seek(0)
            done = subprocess.run([binary], stdin=lines, capture_output=True, text=True, check=True)
            yield [json.loads(line) for line in done.stdout.splitlines()]


def faults(each: Subject, answers: Iterable[JSON], counts: Counter[str]) -> Iterator[str]:
    """Yield what is wrong; `counts` learns how often each promise was put to the test."""
    _count_cases(each, counts)
    for question, answer in zip(each.questions, answers, strict=True):
        yield from _created(each, answer.get("created", {}), counts)
        node, idle, found = question["node"], not question["allocated"], answer["allocations"]
        if any(allocation.get("error") for allocation in found.values()):
            counts["allocator errors"] += 1
            if not found["written"].get("error"):
                yield f"{node}: the claim as written does not fail, a changed one does: {found}"
            continue
        for mode, made in each.encodings():
            yield from _encoded(each, mode, made, node, found, counts)
        if idle:
            yield from _satisfiable(each, node, found, counts)


def _word(made: Encoding) -> str:
    return "required" if made.required else "preferred"


def _count_cases(each: Subject, counts: Counter[str]) -> None:
    counts["cases"] += 1
    for word in {_word(made) for _, made in each.encodings()}:
        counts[f"{word}: cases"] += 1


def _created(each: Subject, created: Mapping[str, JSON], counts: Counter[str]) -> Iterator[str]:
    """The API server takes a changed claim as it takes the one as written, and stores all of what we added."""
    words: dict[str, str] = {mode: _word(made) for mode, made in each.encodings()}
    for name, answer in created.items():
        if answer.get("invalid"):
            yield f"{name} claim is invalid: {answer['invalid']}"
        elif name in words:
            counts[f"{words[name]}: created"] += 1
            if answer.get("dropped") and not created["written"].get("dropped"):
                yield f"{name} claim is not stored as changed"


def _possible(found: JSON, names: Iterable[str], attribute: str) -> bool:
    """Tell whether the requests can have one value of the attribute, by the claims that are restricted to one."""
    group = _group(names, attribute)
    return any(allocation["fits"] for name, allocation in found.items() if name.startswith(f"{group} "))


def _encoded(each: Subject, mode: Mode, made: Encoding, node: str, found: JSON, counts: Counter[str]) -> Iterator[str]:
    result, possible, word = found[mode], _possible(found, made.names, made.attribute), _word(made)
    counts[f"{word}: asked"] += 1
    counts[f"{word}: could be aligned"] += possible
    counts[f"{word}: could not"] += not possible
    if made.required:
        if result["fits"] != possible:
            yield f"{node}: required fits: {result['fits']}, possible: {possible}"
    else:
        counts["preferred: fits as written"] += found["written"]["fits"]
        if result["fits"] != found["written"]["fits"]:
            yield f"{node}: preferred fits: {result['fits']}, as written: {found['written']['fits']}"
    if possible and result["fits"] and len(_used(each, node, made, result)) != 1:
        yield f"{node}: {word} is not aligned where it could be: {result['results']}"


def _used(each: Subject, node: str, made: Encoding, result: JSON) -> set[Attribute | None]:
    devices = {device.key: device for device in each.inventory.nodes[node]}
    return {
        devices[driver, pool, device].published(made.attribute)
        for request, driver, pool, device in result["results"]
        if request.partition("/")[0] in made.names
    }


def _satisfiable(each: Subject, node: str, found: JSON, counts: Counter[str]) -> Iterator[str]:
    made = each.plans[Mode.STRICT]
    pairs = [("plain", made.plain.get(node), found["written"]["fits"])]
    if made.attribute:
        pairs.append(("aligned", made.aligned.get(node), _possible(found, made.names, made.attribute)))
    for what, ours, theirs in pairs:
        if ours is None or (ours is Fits.YES and made.notes):
            continue  # requests without any candidate are left out of a yes
        counts[f"{what}: {ours}"] += 1
        if ours is not Fits.UNKNOWN and (ours is Fits.YES) != theirs:
            yield f"{node}: {what} satisfiable: we say {ours}, the allocator {theirs}"

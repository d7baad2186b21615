"""What decisions on claims cost: in this process, and over HTTPS next to the echo handler."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.bench import inputs, serving
from tests.bench.decisions import row
from tests.bench.row import Row, seconds
from tests.server.running import started
from tls import selfsigned
from webhook.config.load import load_classes, load_policy
from webhook.core.decision import Request
from webhook.core.dra import decide
from webhook.core.snapshot import Snapshot

CLASSES = 10
MAY_ADD = 1e-3
"""Seconds that the mutation may add to the echo handler at p50."""


def rows(directory: Path) -> Iterator[Row]:
    """Yield the rows about claims."""
    file = directory / "claims.yaml"
    file.write_text(yaml.safe_dump_all(inputs.classes_with_slices(CLASSES)))
    yield from _decisions(file)
    yield from _served(directory, file)


def _decisions(file: Path) -> Iterator[Row]:
    loaded = load_classes([file])
    assert not loaded.errors, loaded.errors
    policy, _ = load_policy(None)
    known = Snapshot(policy, inputs.catalogue(), loaded.classes, inventory=loaded.inventory)
    unseen = [inputs.claim(number) for number in range(1, 301)]
    one = [inputs.claim(count=1)] * 5000
    for mode, word in (("strict", "required"), ("best-effort", "preferred")):
        asked = Request(namespace="research", label=mode)
        seen = [inputs.claim()] * 5000
        yield row(f"claim, {word}, 10 classes, seen before", 100e-6, decide.mutate_claim, seen, known, "mutated", asked)
        yield row(f"claim, {word}, 10 classes, unseen", 5e-3, decide.mutate_claim, unseen, known, "mutated", asked)
    yield row("claim of one device", 100e-6, decide.mutate_claim, one, known, "unchanged")


def _served(directory: Path, classes: Path) -> Iterator[Row]:
    files = selfsigned.create(directory / "claims")
    policy = directory / "policy.yaml"
    policy.write_text("apiVersion: numalign.io/v1alpha1\nkind: Policy\nmetadata: {name: bench}\nspec: {}\n")
    claim = inputs.review(inputs.claim())
    paths = {"required": "/mutate/resourceclaims/strict", "preferred": "/mutate/resourceclaims/best-effort"}
    with started(files, "--policy", policy, "--classes", classes, "--echo", "--log-level", "info") as server:
        serving.wait_for_answer(server)
        for connections, text in ((1, "one connection"), (serving.CONNECTIONS, f"{serving.CONNECTIONS} connections")):
            times, _ = serving.alternating(server, {"/echo": claim, **dict.fromkeys(paths.values(), claim)}, connections)
            echo = statistics.median(times["/echo"])
            for word, path in paths.items():
                added = statistics.median(times[path]) - echo
                besides = f"{seconds(echo + added)} / {seconds(echo)}"
                yield Row(f"claim, {word}, HTTPS, {text}", "<= echo p50 + 1 ms", _signed(added), added <= MAY_ADD, besides)
        yield Row("resident memory with claims", "<= 160 MB", f"{(size := serving.resident(server)) / 1e6:.0f} MB", size <= 160e6)


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{seconds(abs(value))}"

"""How long decisions take, in this process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.bench import inputs
from tests.bench.row import Row, seconds
from webhook.core import decide
from webhook.core.decision import Decision, Request
from webhook.core.snapshot import Snapshot

_Handler = Callable[[Any, Request, Snapshot], Decision]
_REQUEST = Request(namespace="research", label="strict")


def rows(directory: Path) -> Iterator[Row]:
    """Yield the rows about decisions."""
    ten = inputs.snapshot(*inputs.TEN, directory=directory)
    assert len(ten.classes) == 10
    seen = inputs.pod()
    yield row("usual pod, 10 classes, seen before", 150e-6, decide.mutate, [seen] * 2000, ten, "mutated")
    yield row("usual pod, 10 classes, unseen", 5e-3, decide.mutate, _first(200), ten, "mutated")
    yield row("not our pod", 20e-6, decide.mutate, [inputs.plain_pod()] * 5000, ten, "not-ours")
    yield row("refusal with its nearest fix, 10 classes, unseen", 100e-3, decide.validate, _first(40, gpu=16), ten, "refused")
    devices = (inputs.GPU, inputs.NIC, inputs.OTHER)
    for policy, each in (("single-numa-node", 1), ("restricted", 7)):  # one of each under restricted would take the kubelet hours
        own = inputs.node_class("eight-nodes", 8, policy, devices, memory=True)
        pods, known = _first(40, gpu=each, nic=each, other=each), inputs.snapshot(own=own, directory=directory)
        yield row(f"8 NUMA nodes, 5 hinting resources, {policy}, unseen", 50e-3, decide.mutate, pods, known, "mutated")
    own = inputs.node_class("sixteen-nodes", 16, "single-numa-node", (inputs.GPU, inputs.NIC), memory=False)
    pods, known = _first(40, gpu=1, nic=1), inputs.snapshot(own=own, directory=directory)
    yield row("16 NUMA nodes, single-numa-node, unseen", 20e-3, decide.mutate, pods, known, "mutated")
    tray = inputs.snapshot("gb200-tray", directory=directory)
    yield row("GB200 tray, unseen", 20e-3, decide.mutate, _first(40, gpu=2), tray, "mutated")


def _first(count: int, **devices: int) -> list[dict[str, Any]]:
    pods = inputs.numbered(**devices)
    return [next(pods) for _ in range(count)]


def row(
    name: str, target: float, handler: _Handler, objects: list[Any], snapshot: Snapshot, outcome: str, request: Request = _REQUEST
) -> Row:
    """Return the row about a handler's decisions on the objects; each must have that outcome."""
    handler(_first_ever(objects[0]), request, snapshot)  # fills what is remembered about the classes
    times, busy = [], []
    for obj in objects:
        started, before = time.perf_counter(), time.thread_time()
        decision = handler(obj, request, snapshot)
        busy.append(time.thread_time() - before)
        times.append(time.perf_counter() - started)
        assert decision.outcome == outcome, (name, decision.outcome, decision.reason, decision.message)
    p50, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
    return Row(
        name,
        f"<= {seconds(target)} p50",
        seconds(p50),
        p50 <= target,
        f"p99 {seconds(p99)}; CPU p50 {seconds(statistics.median(busy))}",
    )


def _first_ever(like: Any) -> Any:
    return inputs.claim() if like["kind"] == "ResourceClaim" else inputs.pod()

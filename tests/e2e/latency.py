"""What a webhook adds to a pod create on a real API server: nothing, ours, a plain Go webhook, and our server without a decision.

`python -m tests.e2e.latency` prints a table. The variants take turns, create by create, on one kept-alive connection, so that
whatever else the machine does falls on all of them. Each has a mutating and a validating entry with the conditions of ours, and
is reached through the same proxy.
"""

from __future__ import annotations

import base64
import copy
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.e2e.controlplane import binaries
from tests.e2e.controlplane.plane import ControlPlane, until
from tests.e2e.controlplane.processes import Process, free_ports
from tests.e2e.rig.cluster import Cluster, pod
from tests.e2e.rig.load import Client

ROUNDS, WARM = 1000, 150
VARIANTS = ("none", "numalign", "go", "echo")
MAY_ADD = {"p50": 3.5, "p99": 12.0}
"""Milliseconds that both of our entries together may add, on a machine where a create without any webhook takes `QUIET`."""
QUIET = 1.4
MAY_COST = 1.5
"""Times what the plain Go webhook adds at p50."""

Times = dict[str, list[float]]


def main() -> int:
    """Measure, print, and fail where more is added than promised."""
    console = Console()
    with _installed() as (plane, _cluster):
        for variant in VARIANTS:
            plane.namespace(f"bench-{variant}", {"numalign.io/mode": "strict" if variant == "numalign" else "off"})
        until(lambda: _ready(plane), what="all variants")
        before = _own_view(plane)
        times = measure(plane)
        after = _own_view(plane)
    console.print(_table(times))
    for name in sorted(after):
        seconds, count = (after[name][i] - before.get(name, (0.0, 0.0))[i] for i in (0, 1))
        if count:
            console.print(f"the API server's own view, {name}: {seconds / count * 1000:.2f} ms on average of {count:.0f} calls")
    problems = judge(times)
    for problem in problems:
        console.print(f"[red]{problem}[/]")
    return 1 if problems else 0


def measure(plane: ControlPlane) -> Times:
    """Return seconds per create, by variant."""
    client, times = Client(plane), {variant: list[float]() for variant in VARIANTS}
    body = json.dumps(_pod()).encode()
    for turn in range(WARM + ROUNDS):
        for variant in VARIANTS:
            start = time.perf_counter()
            status, text = client.create(f"bench-{variant}", body)
            taken = time.perf_counter() - start
            if status != 201:
                raise SystemExit(f"{variant}: {status} {text.decode()[:400]}")
            if turn >= WARM:
                times[variant].append(taken)
    return times


def judge(times: Times) -> list[str]:
    """Return what is slower than promised. A slower machine gets more time, in proportion to a create without any webhook."""
    found = []
    slower = max(1.0, _quantile(times["none"], "p50") / QUIET)
    for name, most in MAY_ADD.items():
        added = _added(times, "numalign", name)
        if added > most * slower:
            found.append(f"numalign adds {added:.2f} ms at {name}; {most} ms were promised, x {slower:.1f} for this machine")
    ratio = _added(times, "numalign", "p50") / _added(times, "go", "p50")
    if ratio > MAY_COST:
        found.append(f"numalign adds {ratio:.2f} x what the Go webhook adds at p50; {MAY_COST} x were promised")
    return found


def _quantile(times: list[float], name: str) -> float:
    return statistics.quantiles(times, n=100)[int(name[1:]) - 1] * 1000


def _added(times: Times, variant: str, name: str) -> float:
    return _quantile(times[variant], name) - _quantile(times["none"], name)


def _table(times: Times) -> Table:
    table = Table("webhook", "p50 ms", "p90 ms", "p99 ms", "adds p50", "adds p99", title=f"{ROUNDS} pod creates each, dry runs")
    for variant, taken in times.items():
        quantiles = [f"{_quantile(taken, name):.2f}" for name in ("p50", "p90", "p99")]
        table.add_row(variant, *quantiles, *(f"{_added(times, variant, name):.2f}" for name in ("p50", "p99")))
    return table


def _pod() -> dict[str, Any]:
    made = pod("bench", memory="64Gi", cpu=8)
    sidecar = {"name": "logs", "image": "example.invalid/logs:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    made["spec"]["containers"].append(sidecar)
    return made


@contextmanager
def _installed() -> Iterator[tuple[ControlPlane, Cluster]]:
    """A control plane with all variants registered."""
    with tempfile.TemporaryDirectory() as directory:
        here, there = free_ports(2)
        baseline = binaries.build_baseline()
        with (
            ControlPlane(binaries.find(), Path(directory), audit=False) as plane,
            Cluster(plane, {"webhook": ("--echo",)}, {here: there}) as cluster,
        ):
            cert, key = plane.pki.server("baseline", "127.0.0.1")
            command = [baseline, "-address", f"127.0.0.1:{there}", "-cert", cert, "-key", key]
            process = Process("baseline", command, plane.logs)
            try:
                _register(plane, cluster, "go", _by_url(plane, here))
                _register(plane, cluster, "echo", _by_service())
                yield plane, cluster
            finally:
                process.stop()


def _by_url(plane: ControlPlane, port: int) -> Mapping[str, Any]:
    authority = base64.b64encode(plane.pki.ca.read_bytes()).decode()
    urls = {kind: f"https://127.0.0.1:{port}/{path}" for kind, path in (("Mutating", "mutate"), ("Validating", "validate"))}
    return {kind: {"url": url, "caBundle": authority} for kind, url in urls.items()}


def _by_service() -> Mapping[str, Any]:
    return {key: {"service": {"path": "/echo"}} for key in ("Mutating", "Validating")}


def _register(plane: ControlPlane, cluster: Cluster, variant: str, clients: Mapping[str, Any]) -> None:
    """Register a variant for its namespace with the entries of our strict mode."""
    for ours in cluster.configurations.registered():
        entry = copy.deepcopy(next(each for each in ours["webhooks"] if each["name"].startswith("strict.pods")))
        client = clients[ours["kind"].removesuffix("WebhookConfiguration")]
        if "url" in client:
            entry["clientConfig"] = client
        else:
            entry["clientConfig"]["service"] |= client["service"]
        entry["name"] = f"{variant}.bench.example.com"
        entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": f"bench-{variant}"}}
        made = {"kind": ours["kind"], "metadata": {"name": f"bench-{variant}"}, "webhooks": [entry]}
        plane.api.create(f"/apis/admissionregistration.k8s.io/v1/{ours['kind'].lower()}s", made)


def _ready(plane: ControlPlane) -> bool:
    """Tell whether the webhooks of all variants are called."""
    called = _own_view(plane)
    client, body = Client(plane), json.dumps(_pod()).encode()
    for variant in VARIANTS:
        client.create(f"bench-{variant}", body)
    after = _own_view(plane)
    names = ("go.bench.example.com", "echo.bench.example.com", "strict.pods.numalign.io")
    kinds = ("admit", "validating")
    return all(after.get(f"{n} {k}", (0, 0))[1] > called.get(f"{n} {k}", (0, 0))[1] for n in names for k in kinds)


def _own_view(plane: ControlPlane) -> dict[str, tuple[float, float]]:
    """Return seconds and count of `apiserver_admission_webhook_admission_duration_seconds`, by webhook and kind."""
    found: dict[str, list[float]] = {}
    prefix = "apiserver_admission_webhook_admission_duration_seconds_"
    for line in plane.must("get", "--raw", "/metrics").splitlines():
        if not line.startswith((f"{prefix}sum", f"{prefix}count")):
            continue
        labels = dict(part.split("=", 1) for part in line.partition("{")[2].partition("}")[0].split(","))
        name = f"{labels['name']} {labels['type']}".replace('"', "")
        found.setdefault(name, [0.0, 0.0])[line.startswith(f"{prefix}count")] += float(line.split()[-1])
    return {name: (seconds, count) for name, (seconds, count) in found.items()}


if __name__ == "__main__":
    sys.exit(main())

"""What a webhook adds to a create on a real API server: nothing, ours, a plain Go webhook, and our server without a decision.

`python -m tests.e2e.latency` prints a table for pods and one for claims. The variants take turns, create by create, on one
kept-alive connection, so that whatever else the machine does falls on all of them. Each has a mutating and a validating entry
with the conditions of ours, and is reached through the same proxy.
"""

from __future__ import annotations

import base64
import copy
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
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

CLAIM_VARIANTS = ("none", "numalign", "echo")
CLAIM_MAY_ADD = 1.0
"""Milliseconds at p50 that what we decide on a claim may add to our server without a decision."""

Times = dict[str, list[float]]


def main() -> int:
    """Measure, print, and fail where more is added than promised."""
    console = Console()
    with _installed() as (plane, _cluster):
        for variant in VARIANTS:
            plane.namespace(f"bench-{variant}", {"numalign.io/mode": "strict" if variant == "numalign" else "off"})
        until(lambda: _ready(plane), what="all variants")
        before = _own_view(plane)
        times = measure(plane, VARIANTS, json.dumps(_pod()).encode())
        claims = measure(plane, CLAIM_VARIANTS, json.dumps(_claim()).encode(), *CLAIMS)
        after = _own_view(plane)
    console.print(_table(times, "pod"))
    console.print(_table(claims, "claim"))
    for name in sorted(after):
        seconds, count = (after[name][i] - before.get(name, (0.0, 0.0))[i] for i in (0, 1))
        if count:
            console.print(f"the API server's own view, {name}: {seconds / count * 1000:.2f} ms on average of {count:.0f} calls")
    problems = [*judge(times), *judge_claims(claims)]
    for problem in problems:
        console.print(f"[red]{problem}[/]")
    return 1 if problems else 0


def measure(plane: ControlPlane, variants: Sequence[str], body: bytes, api: str = "api/v1", resource: str = "pods") -> Times:
    """Return seconds per create, by variant."""
    client, times = Client(plane), {variant: list[float]() for variant in variants}
    for turn in range(WARM + ROUNDS):
        for variant in variants:
            start = time.perf_counter()
            status, text = client.create(f"bench-{variant}", body, api, resource)
            taken = time.perf_counter() - start
            if status != 201:
                raise SystemExit(f"{variant}: {status} {text.decode()[:400]}")
            if turn >= WARM:
                times[variant].append(taken)
    return times


def judge(times: Times) -> list[str]:
    """Return what is slower than promised."""
    found, slower = [], _slower(times)
    for name, most in MAY_ADD.items():
        added = _added(times, "numalign", name)
        if added > most * slower:
            found.append(f"numalign adds {added:.2f} ms at {name}; {most} ms were promised, x {slower:.1f} for this machine")
    ratio = _added(times, "numalign", "p50") / _added(times, "go", "p50")
    if ratio > MAY_COST:
        found.append(f"numalign adds {ratio:.2f} x what the Go webhook adds at p50; {MAY_COST} x were promised")
    return found


def judge_claims(times: Times) -> list[str]:
    """Return what is slower than promised for claims."""
    slower = _slower(times)
    added = _quantile(times["numalign"], "p50") - _quantile(times["echo"], "p50")
    if added <= CLAIM_MAY_ADD * slower:
        return []
    return [f"a claim's decision adds {added:.2f} ms at p50; {CLAIM_MAY_ADD} ms were promised, x {slower:.1f} for this machine"]


def _slower(times: Times) -> float:
    """Return how much more time a slower machine gets: in proportion to a create without any webhook."""
    return max(1.0, _quantile(times["none"], "p50") / QUIET)


def _quantile(times: list[float], name: str) -> float:
    return statistics.quantiles(times, n=100)[int(name[1:]) - 1] * 1000


def _added(times: Times, variant: str, name: str) -> float:
    return _quantile(times[variant], name) - _quantile(times["none"], name)


def _table(times: Times, what: str) -> Table:
    table = Table(
        "webhook", "p50 ms", "p90 ms", "p99 ms", "adds p50", "adds p99", title=f"{ROUNDS} {what} creates each, dry runs"
    )
    for variant, taken in times.items():
        quantiles = [f"{_quantile(taken, name):.2f}" for name in ("p50", "p90", "p99")]
        table.add_row(variant, *quantiles, *(f"{_added(times, variant, name):.2f}" for name in ("p50", "p99")))
    return table


def _pod() -> dict[str, Any]:
    made = pod("bench", memory="64Gi", cpu=8)
    sidecar = {"name": "logs", "image": "example.invalid/logs:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    made["spec"]["containers"].append(sidecar)
    return made


CLAIMS = ("apis/resource.k8s.io/v1", "resourceclaims")


def _claim() -> dict[str, Any]:
    requests = [
        {"name": name, "exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}}
        for name, device_class, count in (("gpu", "gpu.nvidia.com", 2), ("nic", "dranet", 1))
    ]
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"generateName": "bench-"}}
    return {**kind, "spec": {"devices": {"requests": requests}}}


def _slices() -> Iterator[dict[str, Any]]:
    """Yield what a node with 8 GPUs and 8 NICs publishes."""
    for driver, attributes in (("gpu.nvidia.com", {"type": {"string": "gpu"}}), ("dra.net", {"rdma": {"bool": True}})):
        devices = [
            {"name": f"d{index}", "attributes": {**attributes, "resource.kubernetes.io/numaNode": {"int": index // 4}}}
            for index in range(8)
        ]
        spec = {"driver": driver, "nodeName": "bench", "pool": {"name": f"bench-{driver}"}, "devices": devices}
        yield {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"bench-{driver}"}, "spec": spec}


def _describe(plane: ControlPlane, cluster: Cluster) -> None:
    """Have the servers know the devices, and wait until claims are changed."""
    for replica in cluster.replicas:
        (replica.directory("classes") / "slices.yaml").write_text(yaml.safe_dump_all(_slices()))
    client, body = Client(plane), json.dumps(_claim()).encode()
    until(lambda: b"constraints" in client.create("strict", body, *CLAIMS)[1], what="the servers to know the devices")


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
                _register(plane, cluster, "echo", _by_service(), ("strict.pods", "strict.resourceclaims"))
                _describe(plane, cluster)
                yield plane, cluster
            finally:
                process.stop()


def _by_url(plane: ControlPlane, port: int) -> Mapping[str, Any]:
    authority = base64.b64encode(plane.pki.ca.read_bytes()).decode()
    urls = {kind: f"https://127.0.0.1:{port}/{path}" for kind, path in (("Mutating", "mutate"), ("Validating", "validate"))}
    return {kind: {"url": url, "caBundle": authority} for kind, url in urls.items()}


def _by_service() -> Mapping[str, Any]:
    return {key: {"service": {"path": "/echo"}} for key in ("Mutating", "Validating")}


def _register(
    plane: ControlPlane, cluster: Cluster, variant: str, clients: Mapping[str, Any], names: Sequence[str] = ("strict.pods",)
) -> None:
    """Register a variant for its namespace with entries of our strict mode."""
    for ours in cluster.configurations.registered():
        client = clients[ours["kind"].removesuffix("WebhookConfiguration")]
        entries = [_entry(each, variant, client) for each in ours["webhooks"] for name in names if each["name"].startswith(name)]
        made = {"kind": ours["kind"], "metadata": {"name": f"bench-{variant}"}, "webhooks": entries}
        plane.api.create(f"/apis/admissionregistration.k8s.io/v1/{ours['kind'].lower()}s", made)


def _entry(ours: Mapping[str, Any], variant: str, client: Mapping[str, Any]) -> dict[str, Any]:
    entry = copy.deepcopy(dict(ours))
    if "url" in client:
        entry["clientConfig"] = client
    else:
        entry["clientConfig"]["service"] |= client["service"]
    what = "" if ours["name"].startswith("strict.pods") else "-claims"
    entry["name"] = f"{variant}{what}.bench.example.com"
    entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": f"bench-{variant}"}}
    return entry


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

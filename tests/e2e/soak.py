"""Ten minutes of pod creates: none fails, and the replicas' memory does not grow. `python -m tests.e2e.soak [SECONDS [RATE]]`."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from tests.e2e.controlplane import binaries
from tests.e2e.controlplane.plane import ControlPlane
from tests.e2e.rig.cluster import Cluster, metric
from tests.e2e.rig.load import Load

SECONDS, RATE = 600.0, 100.0
"""A create is two calls: 100 a second are 200 requests a second for the replicas together."""
MAY_GROW = 0.05
WARM = 0.2
"""The part of the run that fills caches."""


def main() -> int:
    """Run, print, and fail where a create failed or memory grew."""
    seconds, rate = [float(word) for word in sys.argv[1:3]] + [SECONDS, RATE][len(sys.argv[1:3]) :]
    console = Console(highlight=False)
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane(binaries.find(), Path(directory), audit=False) as plane,
        Cluster(plane) as cluster,
    ):
        load = Load(plane, rate=rate, workers=16, kinds=5000)
        memory: list[list[float]] = []
        with load.running():
            start = time.monotonic()
            while time.monotonic() - start < seconds:
                time.sleep(seconds / 20)
                memory.append([metric(replica, "process_resident_memory_bytes", {}) for replica in cluster.replicas])
                console.print(f"{len(load.samples)} creates, {len(load.failures())} failed, {_mib(memory)}")
    return _judge(console, load, memory)


def _judge(console: Console, load: Load, memory: list[list[float]]) -> int:
    taken = [sample.seconds * 1000 for sample in load.samples]
    cuts = statistics.quantiles(taken, n=100)
    console.print(f"{len(taken)} creates: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, longest {max(taken):.0f} ms")
    for sample in load.failures()[:10]:
        console.print(f"failed: {sample.problem}")
    warm = memory[int(len(memory) * WARM) :]
    growth = max(last / first - 1 for first, last in zip(warm[0], warm[-1], strict=True))
    console.print(f"memory grew by {growth:.1%} after the first {WARM:.0%}")
    return 1 if load.failures() or growth > MAY_GROW else 0


def _mib(memory: list[list[float]]) -> str:
    return ", ".join(f"{each / 2**20:.1f} MiB" for each in memory[-1])


if __name__ == "__main__":
    sys.exit(main())

"""How fast are verdicts, ours and the kubelet's, and how do both grow with NUMA nodes and hinting resources?

    python -m tests.conformance.benchmark

CPU time of one admission, best of some runs; the kubelet's is that of its managers alone, without starting them.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from tests.conformance.compare import ask_oracle, oracle_path
from webhook.config.load import parse_class
from webhook.core.kubelet.admit import judge
from webhook.core.kubelet.node import compile_class

JSON = dict[str, Any]

WIDTHS, RESOURCES, POLICIES = (2, 4, 8), (3, 5), ("single-numa-node", "restricted")
DEVICES = ("nvidia.com/gpu", "nvidia.com/hostdev", "example.com/fpga")
ROUNDS = 5


def case(width: int, resources: int, policy: str) -> JSON:
    """Return a pod that asks for CPUs, memory and `resources` - 2 kinds of devices, and a class of `width` NUMA nodes."""
    devices = DEVICES[: resources - 2]
    nodes = [{"id": index, "cpus": 16, "memory": "64Gi", "devices": dict.fromkeys(devices, 2)} for index in range(width)]
    limits = {"cpu": "8", "memory": "8Gi", **dict.fromkeys(devices, 1)}
    config = {
        "cpuManagerPolicy": "static",
        "memoryManagerPolicy": "Static",
        "topologyManagerPolicy": policy,
        "kubeReserved": {"cpu": "2", "memory": "924Mi"},
        "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
    }
    spec = {
        "selector": {"class": "bench"},
        "topology": {"sockets": 2, "threadsPerCore": 2, "numaNodes": nodes},
        "kubelet": config,
    }
    container = {"name": "a", "image": "registry.example/work", "resources": {"limits": limits}}
    return {
        "nodeClass": {"apiVersion": "numalign.io/v1alpha1", "kind": "NodeClass", "metadata": {"name": "bench"}, "spec": spec},
        "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": [container]}},
    }


def ours(subject: JSON) -> str:
    """Return how many verdicts a second we give, the class being compiled."""
    node_class, errors = parse_class(subject["nodeClass"])
    if node_class is None:
        raise ValueError(errors)
    node, best = compile_class(node_class), float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        verdict = judge(node, subject["pod"])
        best = min(best, time.process_time() - begun)
    return f"{1 / best:,.0f}" + (" (unknown)" if verdict.unknown else "")


def kubelets(minor: int, subject: JSON, timeout: str) -> int | None:
    """Return the microseconds that the managers' admission takes; None: longer than the timeout."""
    binary = oracle_path(minor)
    best = None
    for _ in range(ROUNDS):
        (verdict,) = ask_oracle(binary, [subject], workers=1, repeat=1, timeout=timeout)
        if verdict.get("timedOut"):
            break
        spent = max(verdict.get("cpuMicros", 0), 1)
        best = spent if best is None else min(best, spent)
    return best


def rows(minor: int, timeout: str) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| policy | NUMA nodes | hinting resources | ours /s | kubelet /s |"
    yield "|---|---|---|---|---|"
    for policy in POLICIES:
        for width in WIDTHS:
            for resources in RESOURCES:
                subject = case(width, resources, policy)
                micros = kubelets(minor, subject, timeout)
                theirs = f"{1e6 / micros:,.2f}" if micros else f"none within {timeout}"
                yield f"| {policy} | {width} | {resources} | {ours(subject)} | {theirs} |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minor", type=int, default=37, choices=(34, 35, 36, 37))
    parser.add_argument("--timeout", default="60s")
    options = parser.parse_args()
    for row in rows(options.minor, options.timeout):
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

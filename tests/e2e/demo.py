"""A control plane with the webhook on this machine, a few pods before and after, and a kubeconfig to play with: `make demo`."""

from __future__ import annotations

import difflib
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.syntax import Syntax

from tests.e2e.controlplane import binaries
from tests.e2e.controlplane.plane import ControlPlane
from tests.e2e.rig.cluster import H100, Cluster, pod
from tests.e2e.rig.service import has_haproxy

console = Console(highlight=False, markup=False, soft_wrap=True)


def main() -> int:
    """Show, and stay up until interrupted; with --once leave at once."""
    if not has_haproxy():
        console.print("install haproxy (Debian's package of that name): it plays the Service")
        return 1
    try:
        found = binaries.find()
    except binaries.MissingError as error:
        console.print(str(error))
        return 1
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="numalign-demo-") as directory:
        console.print("starting etcd, Kubernetes and two replicas of the webhook...")
        with ControlPlane(found, Path(directory)) as plane, Cluster(plane):
            for title, manifest in _pods().items():
                _show(plane, title, manifest)
            if "--once" not in sys.argv:
                _stay(plane, stop)
    return 0


def _pods() -> dict[str, dict[str, Any]]:
    sidecar = {"name": "logs", "image": "example.invalid/logs:1", "resources": {"requests": {"cpu": "100m"}}}
    together = pod("with-a-sidecar", 2, cpu="3500m", memory="48Gi")
    together["spec"]["containers"].append(sidecar)
    return {
        "A pod that asks for nothing but a GPU": pod("just-a-gpu"),
        "Fractional CPUs, and a sidecar without limits": together,
        "More GPUs than one NUMA node has": pod("eight-gpus", 8, nodeSelector=H100),
        "A pod without accelerators never reaches the webhook": pod("no-gpu", 0, cpu=1),
    }


def _show(plane: ControlPlane, title: str, manifest: dict[str, Any]) -> None:
    console.rule(title)
    name = manifest["metadata"]["name"]
    console.print(f"$ kubectl create -n strict --dry-run=server -f {name}.yaml")
    done = plane.kubectl("create", "-n", "strict", "--dry-run=server", "-o", "yaml", "-f", "-", manifest=manifest)
    if done.err:
        console.print(done.err.strip(), style="red" if done.code else "yellow")
    if done.code:
        console.print(f"exit code {done.code}", style="red")
        return
    before, after = (_relevant(each) for each in (manifest, yaml.safe_load(done.out)))
    lines = list(difflib.unified_diff(before, after, "as written", "as admitted", lineterm="", n=2))
    console.print(Syntax("\n".join(lines) or "(unchanged)", "diff", background_color="default"))


def _relevant(obj: dict[str, Any]) -> list[str]:
    """Return what is ours to change, as YAML."""
    containers = [
        {"name": each["name"], "resources": {key: part for key, part in each["resources"].items() if part}}
        for each in obj["spec"]["containers"]
    ]
    spec = {"containers": containers, **{key: obj["spec"][key] for key in ("affinity",) if key in obj["spec"]}}
    annotations = obj["metadata"].get("annotations") or {}
    return yaml.safe_dump({"annotations": annotations, "spec": spec}, width=130).splitlines()


def _stay(plane: ControlPlane, stop: threading.Event) -> None:
    console.rule("Your turn")
    console.print(f"export KUBECONFIG={plane.kubeconfig}")
    console.print("namespaces: strict, best-effort, audit, off; nodes: kubectl get nodes -L nvidia.com/gpu.product")
    console.print("numalign certs show; numalign explain -f pod.yaml --classes deploy/overlays/example/classes")
    console.print("Ctrl-C ends it all.")
    stop.wait()


if __name__ == "__main__":
    sys.exit(main())

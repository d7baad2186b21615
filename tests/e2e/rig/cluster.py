"""The example overlay, installed as docs/operations.md says, with nodes of the classes that it describes."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.e2e.controlplane.plane import ControlPlane, until
from tests.e2e.rig.replica import Replica
from tests.e2e.rig.service import Service
from webhook.cluster.authority import AuthoritySecret
from webhook.cluster.bundles import Configurations, trusts

DEPLOY = Path(__file__).parents[3] / "deploy"
OVERLAY = DEPLOY / "overlays" / "example"
NAMESPACE = "numalign-system"
MODES = ("strict", "best-effort", "audit", "off")
CERTS = ("--every", "0.5", "--settle", "2")
"""The sidecar's pace in tests: its rounds and the wait before a new authority signs."""
SERVER = ("--reload-seconds", "1")

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.machine": "DGXH100"}
L40S = {"nvidia.com/gpu.product": "NVIDIA-L40S"}


class Cluster:
    """A control plane with our webhook installed; a context manager."""

    def __init__(
        self,
        plane: ControlPlane,
        extra: Mapping[str, Sequence[str]] | None = None,
        ports: Mapping[int, int] | None = None,
    ) -> None:
        self.plane, self._ports = plane, ports
        self._extra = {"certs": CERTS, "webhook": SERVER, **(extra or {})}
        self.replicas: list[Replica] = []
        self.service: Service | None = None

    def __enter__(self) -> Self:
        try:
            self.install()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def install(self) -> None:
        """Install the server, run its replicas, then register the webhooks and wait until they are trusted."""
        self._nodes()
        self.plane.must("apply", "-k", str(OVERLAY))
        self.start_replicas()
        self.service = Service(self.plane, self.replicas, self._ports)
        self.register()
        for mode in MODES:
            self.plane.namespace(mode, {"numalign.io/mode": mode})

    def register(self) -> None:
        """Apply the webhook configurations and wait until they trust the authority."""
        self.plane.must("apply", "-k", str(OVERLAY / "webhooks"))
        until(self.trusted, what="a caBundle on every webhook")

    def trusted(self) -> bool:
        """Tell whether both configurations are registered and trust what the Secret says."""
        registered = self.configurations.registered()
        stored = self.secret.read()
        return len(registered) == 2 and stored is not None and trusts(registered, stored.authority.trusted)

    @property
    def secret(self) -> AuthoritySecret:
        """The authority's Secret, as the administrator sees it."""
        return AuthoritySecret(self.plane.api)

    @property
    def configurations(self) -> Configurations:
        """Our webhook configurations."""
        return Configurations(self.plane.api)

    def start_replicas(self) -> None:
        """Run the pods of the Deployment."""
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/numalign"
        deployment = self.plane.api.get(path)
        for number in range(1, deployment["spec"]["replicas"] + 1):
            replica = Replica(self.plane, deployment["spec"]["template"], number, self._extra)
            self.replicas.append(replica)
            replica.start()

    def stop(self) -> None:
        """End everything but the control plane."""
        if self.service is not None:
            self.service.stop()
        for replica in self.replicas:
            replica.stop()

    def calls(self, **labels: str) -> float:
        """Return how many decisions the replicas took, of those with `labels`."""
        return sum(metric(replica, "numalign_decisions_total", labels) for replica in self.replicas)

    def _nodes(self) -> None:
        self.plane.node("dgx-1", {"cpu": "224", "memory": "2014Gi", "nvidia.com/gpu": "8"}, H100)
        self.plane.node("l40s-1", {"cpu": "128", "memory": "502Gi", "nvidia.com/gpu": "4"}, L40S)
        self.plane.node("plain-1", {"cpu": "64", "memory": "251Gi"}, {})


def metric(replica: Replica, name: str, labels: Mapping[str, str]) -> float:
    """Return the sum of a replica's metric over all series with `labels`."""
    with urllib.request.urlopen(f"{replica.metrics_url}/metrics", timeout=5) as response:  # noqa: S310  URL is ours
        lines = response.read().decode().splitlines()
    total = 0.0
    for line in lines:
        match = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
        if match and all(f'{key}="{value}"' in (match[1] or "") for key, value in labels.items()):
            total += float(match[2])
    return total


def pod(name: str, gpus: int = 1, *, cpu: Any = None, memory: Any = None, limits: Any = None, **spec: Any) -> dict[str, Any]:
    """Return a pod of one container that asks for GPUs; cpu and memory are requests."""
    requests = {key: str(value) for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
    most = {"nvidia.com/gpu": str(gpus), **(limits or {})} if gpus else dict(limits or {})
    container = {"name": "main", "image": "example.invalid/train:1", "resources": {"requests": requests, "limits": most}}
    named = {"generateName": name} if name.endswith("-") else {"name": name}
    metadata = {**named, "labels": {"app": name.rstrip("-")}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}

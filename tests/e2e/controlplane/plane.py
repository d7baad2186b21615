"""etcd, API server, controller manager and scheduler on loopback, with TLS, RBAC and the usual admission plugins.

There are no kubelets: nodes are objects that a test makes, their pods get scheduled and stay Pending. So what notices that a
node is silent is off (the node lifecycle controller, and the plugin that taints new nodes). Services have addresses in
127.96.0.0/16, which this machine answers itself: what plays a Service listens on its clusterIP.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from tests.e2e.controlplane.binaries import Binaries
from tests.e2e.controlplane.pki import ADMIN, CONTROLLER_MANAGER, SCHEDULER, WEBHOOK_CLIENT, Pki
from tests.e2e.controlplane.processes import DiedError, Process, answers, free_ports
from webhook.cluster.api import Api, connect
from webhook.cluster.errors import ClusterError

SERVICES = "127.96.0.0/16"
_CONTROLLERS = "*,-node-lifecycle-controller,-taint-eviction-controller"

_SHOWS_ITSELF = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: &configuration
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: {kubeconfig}
- name: ValidatingAdmissionWebhook
  configuration: *configuration
"""
AUDIT_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, resources: [{group: "", resources: [pods, pods/resize]}]}
- {level: None}
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What a kubectl command did."""

    code: int
    out: str
    err: str


class ControlPlane:
    """A control plane, all of whose files are under one directory; a context manager."""

    def __init__(self, binaries: Binaries, directory: Path, *, audit: bool = True) -> None:
        self._binaries, self.directory, self._audit = binaries, directory, audit
        self.logs, self.pki = directory / "logs", Pki(directory / "pki")
        self._etcd_port, peer, self.port = free_ports(3)
        self._peer = f"http://127.0.0.1:{peer}"
        self.url = f"https://127.0.0.1:{self.port}"
        self.kubeconfig = self.pki.kubeconfig(ADMIN, self.url)
        self._verifying_cert, self._signing_key = self.pki.signing_pair()
        self._processes: list[Process] = []

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and wait until namespaces get their service accounts."""
        etcd = Process("etcd", self._etcd(), self.logs)
        self._processes.append(etcd)
        etcd.wait_until(lambda: answers(f"http://127.0.0.1:{self._etcd_port}/health"))
        self.apiserver = Process("kube-apiserver", self._apiserver(), self.logs)
        self._processes.append(self.apiserver)
        self.await_apiserver()
        self.api: Api = connect(self.kubeconfig)
        self._processes += [
            Process("kube-controller-manager", self._controller_manager(), self.logs),
            Process("kube-scheduler", self._scheduler(), self.logs),
        ]
        self._processes[-2].wait_until(lambda: self._exists("/api/v1/namespaces/default/serviceaccounts/default"))

    def stop(self) -> None:
        """End everything, the last started first."""
        while self._processes:
            self._processes.pop().stop()

    def restart_apiserver(self) -> None:
        """End the API server and start it anew on the same port."""
        popped = self.apiserver
        popped.stop(signal.SIGTERM, seconds=10.0)  # it would wait a minute for watches to end
        popped.start()
        self.await_apiserver()

    def await_apiserver(self) -> None:
        """Wait until the API server says that it is ready."""
        self.apiserver.wait_until(lambda: answers(f"{self.url}/readyz", self.pki.ca))

    def kubectl(self, *args: str, manifest: Any = None, kubeconfig: Path | None = None) -> Done:
        """Run kubectl as the administrator, or as whom `kubeconfig` says; `manifest` (object or list) goes to its stdin."""
        documents = manifest if isinstance(manifest, list) else [manifest]
        text = None if manifest is None else yaml.safe_dump_all(documents)
        command = [str(self._binaries.kubectl), "--kubeconfig", str(kubeconfig or self.kubeconfig), *args]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=120)
        return Done(done.returncode, done.stdout, done.stderr)

    def must(self, *args: str, manifest: Any = None) -> str:
        """Run kubectl and return its output; it must succeed."""
        done = self.kubectl(*args, manifest=manifest)
        assert done.code == 0, f"kubectl {' '.join(args)}: {done.err}{done.out}"
        return done.out

    def namespace(self, name: str, labels: Mapping[str, str] | None = None) -> str:
        """Create a namespace and wait for its service account, without which no pod can be created."""
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": dict(labels or {})}})
        until(lambda: self._exists(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
        return name

    def node(self, name: str, capacity: Mapping[str, str], labels: Mapping[str, str], taints: Sequence[Any] = ()) -> None:
        """Create a node that is ready."""
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **labels}
        self.api.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(taints)}})
        sizes = {"pods": "110", "ephemeral-storage": "1Ti", **capacity}
        status = {"capacity": sizes, "allocatable": sizes, "conditions": [{"type": "Ready", "status": "True"}]}
        merge = "application/merge-patch+json"
        self.api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, content_type=merge)

    def _exists(self, path: str) -> bool:
        try:
            self.api.get(path)
        except ClusterError as error:
            if not error.is_missing:
                raise
            return False
        return True

    def _etcd(self) -> list[str | Path]:
        client = f"http://127.0.0.1:{self._etcd_port}"
        return [
            self._binaries.etcd,
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={self._peer}",
            f"--initial-advertise-peer-urls={self._peer}",
            f"--initial-cluster=default={self._peer}",
            "--unsafe-no-fsync",  # nothing here outlives the test
            "--log-level=warn",
        ]

    def _apiserver(self) -> list[str | Path]:
        cert, key = self.pki.server("kube-apiserver", "127.0.0.1", "localhost", "127.96.0.1", "kubernetes.default.svc")
        return [
            self._binaries.apiserver,
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={cert}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.pki.ca}",
            "--authorization-mode=RBAC",
            f"--service-cluster-ip-range={SERVICES}",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={self._verifying_cert}",
            f"--service-account-signing-key-file={self._signing_key}",
            "--endpoint-reconciler-type=none",  # loopback addresses are no valid endpoints
            "--disable-admission-plugins=TaintNodesByCondition",
            "--allow-privileged",
            f"--admission-control-config-file={self._admission()}",
            *(self._audit_flags() if self._audit else ()),
        ]

    def _admission(self) -> Path:
        """Have webhooks that ask for a client certificate be shown one."""
        kubeconfig = self.pki.webhook_clients(WEBHOOK_CLIENT)
        path = self.directory / "admission.yaml"
        path.write_text(_SHOWS_ITSELF.format(kubeconfig=kubeconfig))
        return path

    def _audit_flags(self) -> list[str]:
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(AUDIT_POLICY)
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.directory / 'audit.log'}"]

    def _controller_manager(self) -> list[str | Path]:
        return [
            self._binaries.controller_manager,
            f"--kubeconfig={self.pki.kubeconfig(CONTROLLER_MANAGER, self.url)}",
            f"--service-account-private-key-file={self._signing_key}",
            f"--root-ca-file={self.pki.ca}",
            "--use-service-account-credentials",
            f"--controllers={_CONTROLLERS}",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _scheduler(self) -> list[str | Path]:
        kubeconfig = self.pki.kubeconfig(SCHEDULER, self.url)
        return [self._binaries.scheduler, f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0"]


def until(ready: Callable[[], Any], seconds: float = 30.0, what: str = "it") -> Any:
    """Return the first true answer of `ready`.

    Raises:
        DiedError: time is up.
    """
    deadline = time.monotonic() + seconds
    while not (answer := ready()):
        if time.monotonic() > deadline:
            raise DiedError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.05)
    return answer

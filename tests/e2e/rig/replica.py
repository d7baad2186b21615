"""One pod of our Deployment as local processes: the containers' own arguments, files and hooks, on its own loopback address."""

from __future__ import annotations

import base64
import http.client
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.e2e.controlplane.plane import ControlPlane
from tests.e2e.controlplane.processes import Process, answers

NUMALIGN = Path(sys.executable).parent / "numalign"


class Replica:
    """The `certs` sidecar and the `webhook` container of one pod.

    What differs from a real pod: mount paths are directories here, the sidecar has the service account's token in a kubeconfig,
    and `extra` arguments of a container come last, so that they win.
    """

    def __init__(
        self, plane: ControlPlane, template: Mapping[str, Any], number: int, extra: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._plane, self._spec, self._extra = plane, template["spec"], dict(extra or {})
        self.name, self.address = f"replica-{number}", f"127.0.1.{number}"
        self._root = plane.directory / self.name
        self._processes: dict[str, Process] = {}
        for volume in self._spec["volumes"]:
            self._mount(volume)

    def start(self) -> None:
        """Start the sidecar, then the server, each until its startup probe succeeds."""
        for container in (*self._spec.get("initContainers", ()), *self._spec["containers"]):
            self._processes[container["name"]] = self._run(container)

    @property
    def server(self) -> Process:
        """The serving process."""
        return self._processes["webhook"]

    @property
    def sidecar(self) -> Process:
        """The sidecar's process."""
        return self._processes["certs"]

    @property
    def metrics_url(self) -> str:
        """Base URL of the plain port."""
        return f"http://{self.address}:{self._port('metrics')}"

    @property
    def webhook_port(self) -> int:
        """Port of the webhook."""
        return self._port("webhook")

    @property
    def metrics_port(self) -> int:
        """Port of probes and metrics."""
        return self._port("metrics")

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection to its webhook, as from an API server that trusts anybody."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(self.address, self.webhook_port, timeout=5, context=context)

    def refresh(self) -> None:
        """Bring what Secrets and ConfigMaps say now, as a kubelet does after a minute or so."""
        for volume in self._spec["volumes"]:
            self._mount(volume)

    def leaf(self) -> bytes:
        """Return the serving certificate that a new connection gets, as DER."""
        with closing(self.connect()) as connection:
            connection.connect()
            found: bytes | None = connection.sock.getpeercert(binary_form=True)
        assert found is not None
        return found

    def ready(self) -> bool:
        """Tell what its readiness probe says."""
        return answers(f"{self.metrics_url}/readyz")

    def delete(self) -> None:
        """End it as a kubelet does: preStop hook, SIGTERM, the sidecar last."""
        hook = self._container("webhook")["lifecycle"]["preStop"]["exec"]["command"]
        subprocess.run([self._local("webhook", word) for word in hook], check=True, timeout=60)
        self.stop()

    def kill(self) -> None:
        """End it as a power cut does."""
        for process in reversed(self._processes.values()):
            process.stop(signal.SIGKILL)

    def stop(self) -> None:
        """End it without a preStop hook."""
        for process in reversed(self._processes.values()):
            process.stop()
        (self.directory("drain") / "draining").unlink(missing_ok=True)

    def directory(self, volume: str) -> Path:
        """Return where a volume is."""
        return self._root / volume

    def _run(self, container: Mapping[str, Any]) -> Process:
        name = container["name"]
        words = [self._local(name, arg) for arg in container["args"]]
        given = ["--host", self.address] if name == "webhook" else ["--kubeconfig", str(self._token())]
        command = [NUMALIGN, *words, *given, *self._extra.get(name, ())]
        process = Process(f"{self.name}-{name}", command, self._plane.logs)
        tls = self.directory("tls") / "tls.crt"
        process.wait_until(self.ready if name == "webhook" else tls.exists)
        return process

    def _local(self, container: str, word: str) -> str:
        """Put this machine's directories in place of a container's mount paths."""
        places = {mount["mountPath"]: str(self.directory(mount["name"])) for mount in self._container(container)["volumeMounts"]}
        paths = "|".join(re.escape(path) for path in places)
        return re.sub(rf"(?<![\w/.-])({paths})(?=[/\s]|$)", lambda match: places[match[1]], word)

    def _container(self, name: str) -> Any:
        containers = (*self._spec.get("initContainers", ()), *self._spec["containers"])
        return next(each for each in containers if each["name"] == name)

    def _port(self, name: str) -> int:
        return int(next(port["containerPort"] for port in self._container("webhook")["ports"] if port["name"] == name))

    def _mount(self, volume: Mapping[str, Any]) -> None:
        directory = self.directory(volume["name"])
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in self._content(volume).items():
            fresh = directory / f".{name}.new"
            fresh.write_bytes(content)
            fresh.replace(directory / name)

    def _content(self, volume: Mapping[str, Any]) -> dict[str, bytes]:
        namespace = "/api/v1/namespaces/numalign-system"
        if "configMap" in volume:
            data = self._plane.api.get(f"{namespace}/configmaps/{volume['configMap']['name']}").get("data") or {}
            return {name: text.encode() for name, text in data.items()}
        if "secret" in volume:
            data = self._plane.api.get(f"{namespace}/secrets/{volume['secret']['secretName']}").get("data") or {}
            return {name: base64.b64decode(text) for name, text in data.items()}
        return {}

    def _token(self) -> Path:
        """The service account's own credentials, so that the roles in deploy/ are what it can do."""
        account = self._spec["serviceAccountName"]
        token = self._plane.must("create", "token", account, "-n", "numalign-system", "--duration", "2h").strip()
        return self._plane.pki.token_kubeconfig(f"{self.name}-token", token, self._plane.url)

"""What plays the Service: haproxy in TCP mode on its clusterIP, with the replicas' readiness probes as its health checks.

Like kube-proxy it picks a replica for a new connection and leaves those that exist where they are.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from tests.e2e.controlplane.plane import ControlPlane
from tests.e2e.controlplane.processes import Process
from tests.e2e.rig.replica import Replica

_CONFIG = """
global
  maxconn 8000
  stats socket {socket} level admin
defaults
  mode tcp
  timeout connect 1s
  timeout client 10m
  timeout server 10m
  retries 1
frontend service
  bind {address}:443
  default_backend replicas
backend replicas
  balance roundrobin
  option httpchk GET /readyz
"""
_SERVER = "  server {name} {address}:{port} check port {metrics} inter 500ms fastinter 100ms fall 2 rise 1\n"


def has_haproxy() -> bool:
    """Tell whether there is a haproxy (Debian's package of that name)."""
    return shutil.which("haproxy") is not None


_EXTRA = """
listen extra-{here}
  bind 127.0.0.1:{here}
  server one 127.0.0.1:{there}
"""


class Service:
    """haproxy for the Service `numalign`; `extra`: more local ports, and the local ports that they lead to."""

    def __init__(self, plane: ControlPlane, replicas: Sequence[Replica], extra: Mapping[int, int] | None = None) -> None:
        service = plane.api.get("/api/v1/namespaces/numalign-system/services/numalign")
        self.address: str = service["spec"]["clusterIP"]
        socket = plane.directory / "haproxy.sock"
        text = _CONFIG.format(address=self.address, socket=socket)
        text += "".join(
            _SERVER.format(name=each.name, address=each.address, port=each.webhook_port, metrics=each.metrics_port)
            for each in replicas
        )
        text += "".join(_EXTRA.format(here=here, there=there) for here, there in (extra or {}).items())
        config = plane.directory / "haproxy.cfg"
        config.write_text(text)
        self._process = Process("haproxy", ["haproxy", "-db", "-f", config], plane.logs)
        self._process.wait_until(socket.exists)

    def stop(self) -> None:
        """End it: connections to the clusterIP are refused."""
        self._process.stop()

    def start(self) -> None:
        """Start it again."""
        self._process.start()

"""Claims and templates, read by the sidecar for the server, which has no credentials to read them itself.

Over a socket in a directory that both containers of a pod mount. A question is a path and a newline, its answer a JSON object:
`{"object": ...}`, or `{"status": 404, "message": ...}`. Nothing but single claims and templates can be asked for.
"""

from __future__ import annotations

import json
import re
import socket
import threading
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
from typing import Final, Protocol

from webhook.cluster.errors import ClusterError
from webhook.core.dra.devices import Json

LONGEST_PATH: Final = 512
MAX_BYTES: Final = 4 * 1024**2
"""More than the API server stores in one object."""

_PATH: Final = re.compile(
    r"/apis/resource\.k8s\.io/v1/namespaces/[a-z0-9][-a-z0-9]{0,62}/(resourceclaims|resourceclaimtemplates)/[a-z0-9][-a-z0-9.]{0,252}"
)


class Reader(Protocol):
    """The one call that is needed of `Api`."""

    def call(self, method: str, path: str, *, seconds: float) -> Json:
        """Return the object at a path; see `Api.call`."""
        ...


class Relay(ThreadingMixIn, UnixStreamServer):
    """The sidecar's end: answers whoever may open the socket."""

    daemon_threads = True
    request_queue_size = 128  # with a full queue a connection fails at once

    def __init__(self, api: Reader, file: Path, seconds: float) -> None:
        """Listen at `file`, in place of whoever did before; each question may take so many seconds."""
        self.api, self.seconds = api, seconds
        fresh = file.with_name(f".{file.name}.new")
        fresh.unlink(missing_ok=True)
        super().__init__(str(fresh), _Handler)
        fresh.rename(file)

    def start(self) -> None:
        """Answer in threads that end with the process."""
        threading.Thread(target=self.serve_forever, name="claims-relay", daemon=True).start()


class _Handler(StreamRequestHandler):
    """Answers one question."""

    server: Relay

    def setup(self) -> None:
        """Give up on whoever asks nothing."""
        self.request.settimeout(self.server.seconds)
        super().setup()

    def handle(self) -> None:
        """Read a path and write what is there."""
        try:
            path = self.rfile.readline(LONGEST_PATH).decode("ascii", "replace").rstrip("\n")
            self.wfile.write(self._answer(path).encode())
        except OSError:
            return  # whoever asked has gone

    def _answer(self, path: str) -> str:
        if not _PATH.fullmatch(path):
            return json.dumps({"status": 400, "message": "only single claims and their templates are read"})
        try:
            return json.dumps({"object": self.server.api.call("GET", path, seconds=self.server.seconds)})
        except ClusterError as error:
            return json.dumps({"status": error.status, "message": str(error)})
        except (ValueError, RecursionError):
            return json.dumps({"status": 0, "message": "what the API server answered cannot be read"})


class RelayClient:
    """The server's end; has the one call of `Api` that claims are read with."""

    def __init__(self, file: Path) -> None:
        """Connect to the socket `file` for each question: there may be no sidecar yet, or another one."""
        self._file = file

    def call(self, method: str, path: str, *, seconds: float) -> Json:
        """Return the object at a path.

        Raises:
            ClusterError: it could not be read in time.
        """
        assert method == "GET"  # noqa: S101
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
                peer.settimeout(seconds)
                peer.connect(str(self._file))
                peer.sendall(f"{path}\n".encode())
                answer = json.loads(_everything(peer))
        except (OSError, ValueError, RecursionError) as error:
            raise ClusterError(f"the sidecar did not read it: {error}"[:200]) from error
        if "object" not in answer:
            raise ClusterError(str(answer.get("message")), int(answer.get("status") or 0))
        return dict(answer["object"])


def _everything(peer: socket.socket) -> bytes:
    read = bytearray()
    while len(read) <= MAX_BYTES and (more := peer.recv(65536)):
        read += more
    return bytes(read)

"""As much of an API server as `numalign certs` asks: objects by path, with resource versions, conflicts and server-side apply."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from webhook.cluster.bundles import KINDS

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


class ApiServer(ThreadingHTTPServer):
    """Objects by their path; what is not an object is a list of those below it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, Any] = {}
        self.calls: list[tuple[str, str]] = []
        self.forbidden: set[str] = set()

    def register(self, *entries: str) -> None:
        """Register both webhook configurations."""
        for kind, plural in KINDS.items():
            webhooks = [{"name": name, "clientConfig": {}} for name in entries]
            obj = {"kind": kind, "metadata": {"name": "numalign"}, "webhooks": webhooks}
            self.store(f"{CONFIGURATIONS}/{plural}/numalign", obj)

    def store(self, path: str, obj: Any) -> Any:
        version = int(self.objects.get(path, {"metadata": {"resourceVersion": "0"}})["metadata"]["resourceVersion"])
        self.objects[path] = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version + 1)}}
        return self.objects[path]

    def kubeconfig(self, directory: Path) -> Path:
        server = f"http://127.0.0.1:{self.server_address[1]}"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": server}}],
            "users": [{"name": "x", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        }
        file = directory / "kubeconfig"
        file.write_text(yaml.safe_dump(document))
        return file


@contextmanager
def serving() -> Iterator[ApiServer]:
    with ApiServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def _handle(self) -> None:
        path = self.path.partition("?")[0]
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.calls.append((self.command, path))
        status, answer = self._answer(path, body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = _handle  # noqa: N815

    def _answer(self, path: str, body: Any) -> tuple[HTTPStatus, Any]:
        objects = self.server.objects
        if path in self.server.forbidden:
            return HTTPStatus.FORBIDDEN, {"message": f"you may not {self.command} {path}"}
        if self.command == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in objects:
                return HTTPStatus.CONFLICT, {"message": "already exists"}
            return HTTPStatus.CREATED, self.server.store(path, body)
        if path.rpartition("/")[2] in {"limitranges", "deviceclasses", "resourceslices"}:
            return HTTPStatus.OK, {"metadata": {"resourceVersion": "1"}, "items": []}
        if path not in objects:
            return HTTPStatus.NOT_FOUND, {"message": "not found"}
        if self.command == "PUT":
            version = body["metadata"].get("resourceVersion")
            if version not in {None, objects[path]["metadata"]["resourceVersion"]}:
                return HTTPStatus.CONFLICT, {"message": "it was changed"}
            return HTTPStatus.OK, self.server.store(path, body)
        if self.command == "PATCH":
            applied = {each["name"]: each["clientConfig"] for each in body["webhooks"]}
            webhooks = [{**each, "clientConfig": applied.get(each["name"], {})} for each in objects[path]["webhooks"]]
            return HTTPStatus.OK, self.server.store(path, {**objects[path], "webhooks": webhooks})
        return HTTPStatus.OK, objects[path]

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

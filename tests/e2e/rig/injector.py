"""Another team's mutating webhook: it adds a sidecar to each pod of one namespace, once. Registered by URL."""

from __future__ import annotations

import base64
import copy
import json
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.e2e.controlplane.plane import ControlPlane

_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class Injector:
    """A running and registered injector; a context manager. The API server calls webhooks in the order of their `name`s."""

    def __init__(self, plane: ControlPlane, name: str, namespace: str, resources: Mapping[str, Any]) -> None:
        self._plane, self.name, self._namespace, self.calls = plane, name, namespace, 0
        self._sidecar = {"name": "proxy", "image": "example.invalid/proxy:1", "resources": dict(resources)}

    def __enter__(self) -> Self:
        cert, key = self._plane.pki.server(self.name, "127.0.0.1")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(cert, key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._plane.api.create(_CONFIGURATIONS, self._configuration())
        return self

    def __exit__(self, *_: object) -> None:
        self._plane.api.call("DELETE", f"{_CONFIGURATIONS}/{self.name}")
        self._server.shutdown()
        self._server.server_close()

    def _patch(self, pod: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.calls += 1
        if any(each["name"] == "proxy" for each in pod["spec"]["containers"]):
            return []
        return [{"op": "add", "path": "/spec/containers/-", "value": copy.deepcopy(self._sidecar)}]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        injector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
                response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
                if patch := injector._patch(request["object"]):
                    text = base64.b64encode(json.dumps(patch).encode()).decode()
                    response |= {"patchType": "JSONPatch", "patch": text}
                body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _configuration(self) -> dict[str, Any]:
        authority = base64.b64encode(self._plane.pki.ca.read_bytes()).decode()
        url = f"https://127.0.0.1:{self._server.server_address[1]}/inject"
        entry = {
            "name": f"{self.name}.example.com",
            "clientConfig": {"url": url, "caBundle": authority},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}},
            "reinvocationPolicy": "IfNeeded",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {"kind": "MutatingWebhookConfiguration", "metadata": {"name": self.name}, "webhooks": [entry]}

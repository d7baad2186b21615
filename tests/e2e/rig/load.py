"""Pod creates at a steady pace, as dry runs: each goes through both webhooks and must come back shaped."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.e2e.controlplane.plane import ControlPlane
from tests.e2e.rig.cluster import pod

CALL_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One create: when it began (time.monotonic), how long it took in seconds, and what went wrong (empty: nothing)."""

    start: float
    seconds: float
    problem: str = ""


class Client:
    """One kept-alive connection to the API server as the administrator."""

    def __init__(self, plane: ControlPlane) -> None:
        user = yaml.safe_load(plane.kubeconfig.read_text())["users"][0]["user"]
        self._context = ssl.create_default_context(cafile=plane.pki.ca)
        self._context.load_cert_chain(user["client-certificate"], user["client-key"])
        self._where = urlsplit(plane.url)
        self._connection: http.client.HTTPSConnection | None = None

    def create(self, namespace: str, body: bytes, api: str = "api/v1", resource: str = "pods") -> tuple[int, bytes]:
        """Create an object, by default a pod, as a dry run; return status and body.

        Raises:
            OSError, HTTPException: no answer.
        """
        if self._connection is None:
            host, port = self._where.hostname or "", self._where.port
            self._connection = http.client.HTTPSConnection(host, port, timeout=CALL_SECONDS, context=self._context)
        path = f"/{api}/namespaces/{namespace}/{resource}?dryRun=All"
        try:
            self._connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next create opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass(slots=True)
class Load:
    """Creates under way, and what became of those that are over."""

    plane: ControlPlane
    namespace: str = "strict"
    rate: float = 40.0
    workers: int = 8
    kinds: int = 1
    """How many different pods there are; a server may remember what it decided on the last ones."""
    samples: list[Sample] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[Load]:
        """Create while the block runs."""
        threads = [threading.Thread(target=self._work, args=(number,), daemon=True) for number in range(self.workers)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(CALL_SECONDS * 2)

    def failures(self, since: float = 0.0) -> list[Sample]:
        """Return the creates begun after `since` that failed."""
        return [sample for sample in self.samples if sample.problem and sample.start >= since]

    def slowest(self) -> float:
        """Return the longest create in seconds."""
        return max(sample.seconds for sample in self.samples)

    def _work(self, number: int) -> None:
        client = Client(self.plane)
        pause = self.workers / self.rate
        turn = time.monotonic() + pause * number / self.workers
        while not self._stop.wait(max(0.0, turn - time.monotonic())):
            turn = max(turn + pause, time.monotonic() - pause)
            kind = random.randrange(self.kinds)
            self.samples.append(self._create(client, json.dumps(pod(f"load-{number}", cpu=f"{1000 + kind}m")).encode()))
        client.close()

    def _create(self, client: Client, body: bytes) -> Sample:
        start = time.monotonic()
        try:
            status, text = client.create(self.namespace, body)
            problem = "" if status == 201 and b"numalign.io/injected" in text else _problem(status, text)
        except (OSError, http.client.HTTPException) as error:
            problem = f"API server: {error!r}"
        return Sample(start, time.monotonic() - start, problem)


def _problem(status: int, text: bytes) -> str:
    if status == 201:
        return "not mutated: the mutating call failed and was ignored"
    parsed: Any = json.loads(text)
    whose = "API server: " if status == 503 else ""  # a webhook that fails is a 500
    return f"{whose}{status}: {parsed.get('message', '')[:300]}"

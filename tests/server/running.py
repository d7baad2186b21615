"""The real server as a process, and clients that speak to it as the API server does."""

from __future__ import annotations

import http.client
import json
import queue
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tls.selfsigned import Files

DEADLINE = 90.0
"""Seconds after which a condition that was waited for counts as never met."""

COMMAND = str(Path(sys.executable).with_name("numalign"))


@dataclass
class Running:
    process: subprocess.Popen[str]
    ca: Path
    lines: queue.Queue[str | None]
    port: int = 0
    metrics_port: int = 0
    seen: list[dict[str, Any]] = field(default_factory=list)

    def event(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the next line of the log that is wanted."""
        until = time.monotonic() + DEADLINE
        while (left := until - time.monotonic()) > 0:
            line = self.lines.get(timeout=left)
            assert line is not None, f"the server ended: {self.seen}"
            found = json.loads(line)
            self.seen.append(found)
            if wanted(found):
                return found
        raise AssertionError(f"not seen: {self.seen}")

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=DEADLINE, context=context)

    def plain(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}{path}", timeout=DEADLINE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)


@contextmanager
def started(files: Files, *options: Any) -> Iterator[Running]:
    """A server on free ports that is ready."""
    arguments = ("--cert", files.cert, "--key", files.key, *options)
    with spawned("--host", "127.0.0.1", "--port", "0", "--metrics-port", "0", *arguments) as (process, lines):
        running = Running(process, files.ca, lines)
        ready = running.event(lambda line: line["event"] == "ready")
        running.port, running.metrics_port = ready["port"], ready["metrics_port"]
        yield running


@contextmanager
def spawned(*options: Any) -> Iterator[tuple[subprocess.Popen[str], queue.Queue[str | None]]]:
    """`numalign serve`, with the lines of its standard output."""
    command = [COMMAND, "serve", *map(str, options)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        lines: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_read, args=(process, lines), daemon=True)
        reader.start()
        try:
            yield process, lines
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)  # gunicorn's quick end, worker included
                process.wait(DEADLINE)
            reader.join(DEADLINE)


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def post(connection: http.client.HTTPSConnection, path: str, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer, answer.read()


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "never happened"
        threading.Event().wait(0.02)

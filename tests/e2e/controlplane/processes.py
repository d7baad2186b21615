"""Programs that run beside a test: started with a log file, awaited until they answer, ended by their own process id."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

STOP_SECONDS = 40.0


class DiedError(Exception):
    """A program that ended too early or did not get ready, with the end of its log."""


class Process:
    """One running program."""

    def __init__(self, name: str, command: Sequence[str | Path], logs: Path, env: Mapping[str, str] | None = None) -> None:
        self.name, self.command, self._env = name, [str(word) for word in command], env
        logs.mkdir(parents=True, exist_ok=True)
        self.log = logs / f"{name}.log"
        self._popen: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it (again)."""
        with self.log.open("ab") as log:
            env = None if self._env is None else {**os.environ, **self._env}
            self._popen = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True
            )

    @property
    def pid(self) -> int:
        """Process id of the running program."""
        assert self._popen is not None
        return self._popen.pid

    def wait_until(self, ready: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait until `ready` says yes.

        Raises:
            DiedError: the program ended, or time is up.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if self._popen is None or self._popen.poll() is not None or time.monotonic() > deadline:
                raise DiedError(f"{self.name} is not ready; the end of {self.log}:\n{self.tail()}")
            time.sleep(0.05)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the program itself."""
        if self._popen is not None and self._popen.poll() is None:
            self._popen.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = STOP_SECONDS) -> int | None:
        """End the program and what it started, after `seconds` at the latest; return its exit code."""
        popen, self._popen = self._popen, None
        if popen is None:
            return None
        if popen.poll() is None:
            popen.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(seconds)
        with contextlib.suppress(ProcessLookupError):  # what is left of its session
            os.killpg(popen.pid, signal.SIGKILL)
        return popen.wait()

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def answers(url: str, ca: Path | None = None) -> bool:
    """Tell whether a GET of `url` answers 200."""
    context = ssl.create_default_context(cafile=ca) if ca else None
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as response:  # noqa: S310  URLs are ours
            return int(response.status) == 200
    except (urllib.error.URLError, OSError):
        return False


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return distinct ports that nothing listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((host, 0))) for _ in range(count)]
        return [made.getsockname()[1] for made in sockets]

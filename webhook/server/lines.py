"""Lines written to a stream by a thread of its own: whoever reads our log may stall, decisions must not."""

from __future__ import annotations

import atexit
import os
import threading
import time
from queue import Empty, SimpleQueue
from typing import Final, TextIO

LIMIT: Final = 10_000
"""Lines that wait; past it new ones are dropped and counted. At 500 bytes a line that is 5 MB."""

GATHER_SECONDS: Final = 0.02
"""How long the thread lets lines gather: woken for each of them it would take turns with those that decide."""

AT_EXIT_SECONDS: Final = 2.0
"""How long the process's end waits for the last lines."""


class Lines:
    """Takes lines from any thread, of this process or of one forked from it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._pid = 0
        self._dropped = 0
        self._thread = threading.Thread()

    def put(self, line: str) -> None:
        """Have a line written, some time soon."""
        if self._pid != os.getpid():  # a fork has the lines, but not the thread
            self._start()
        if self._queue.qsize() >= LIMIT:
            self._dropped += 1
            return
        self._queue.put(line)

    def close(self) -> None:
        """Write what waits and end the thread; a reader that stalls does not hold us up."""
        if self._pid == os.getpid() and self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(AT_EXIT_SECONDS)
        self._pid = 0

    def _start(self) -> None:
        self._pid = os.getpid()
        self._queue = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _write(self) -> None:
        more = True
        while more:
            lines = [self._queue.get()]
            time.sleep(GATHER_SECONDS)
            try:
                while len(lines) < LIMIT:
                    lines.append(self._queue.get_nowait())
            except Empty:
                pass
            more = None not in lines
            self._flush([line for line in lines if line is not None])

    def _flush(self, lines: list[str]) -> None:
        if self._dropped:
            lines.append(f'{{"level": "warning", "event": "lines dropped", "count": {self._dropped}}}')
            self._dropped = 0
        try:
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()
        except (OSError, ValueError):
            return  # nobody reads any more

from __future__ import annotations

import io
import os
import threading

import pytest

from webhook.server import lines
from webhook.server.lines import Lines


class Stalling(io.StringIO):
    """A stream whose reader does not read, until it does."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = threading.Event()
        self.waits = threading.Event()

    def write(self, text: str) -> int:
        self.waits.set()
        assert self.reads.wait(10)
        return super().write(text)


def test_lines_come_in_order() -> None:
    stream = io.StringIO()
    written = Lines(stream)
    for number in range(1000):
        written.put(str(number))
    written.close()
    assert stream.getvalue().split() == [str(number) for number in range(1000)]


def test_it_can_be_used_again_after_its_end() -> None:
    stream = io.StringIO()
    written = Lines(stream)
    for line in "ab":
        written.put(line)
        written.close()
    assert stream.getvalue() == "a\nb\n"


def test_a_reader_that_stalls_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LIMIT", 10)
    stream = Stalling()
    written = Lines(stream)
    written.put("first")
    assert stream.waits.wait(10)
    for number in range(15):
        written.put(str(number))
    stream.reads.set()
    written.close()
    found = stream.getvalue().splitlines()
    assert found[:11] == ["first", *map(str, range(10))]
    assert '"count": 5' in found[11]


def test_a_reader_that_is_gone() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    written = Lines(stream)
    written.put("a")
    written.put("b")
    written.close()
    with pytest.raises(BrokenPipeError):
        stream.close()

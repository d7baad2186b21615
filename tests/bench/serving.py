"""How long the server takes over HTTPS, next to an echo handler in the same process; how large it is; how soon it is ready."""

from __future__ import annotations

import os
import ssl
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench import inputs
from tests.bench.row import Row, seconds
from tests.server.running import Running, started
from tls import selfsigned

CONNECTIONS = 8
ROUNDS = 10
CALLS = 150
"""A round has that many calls on each connection; rounds of both handlers take turns, so that noise hits both."""


def rows(directory: Path) -> Iterator[Row]:
    """Yield the rows about serving."""
    files = selfsigned.create(directory)
    policy = directory / "policy.yaml"
    names = ", ".join(inputs.TEN)
    policy.write_text(
        f"apiVersion: numalign.io/v1alpha1\nkind: Policy\nmetadata: {{name: bench}}\nspec: {{builtinClasses: [{names}]}}\n"
    )
    begun = time.perf_counter()
    with started(files, "--policy", policy, "--echo", "--log-level", "info") as server:
        ready = time.perf_counter() - begun
        wait_for_answer(server)
        yield from _against_echo(server)
        size = resident(server)
        yield Row("resident memory of the server process", "<= 120 MB", f"{size / 1e6:.0f} MB", size <= 120e6)
        yield Row("start to ready", "<= 2 s", seconds(ready), ready <= 2.0)


def _against_echo(server: Running) -> Iterator[Row]:
    path, body = "/mutate/pods/strict", inputs.review(inputs.pod())
    times, cpu = alternating(server, {"/echo": body, path: body}, CONNECTIONS)
    echo, ours = (statistics.median(found) for found in times.values())
    p99 = statistics.quantiles(times[path], n=100)[98]
    yield Row(
        "HTTPS, 8 kept-alive connections",
        "<= 1.3x echo p50",
        f"{ours / echo:.2f}x",
        ours <= 1.3 * echo,
        f"{seconds(ours)} (p99 {seconds(p99)}) / {seconds(echo)}; CPU a call {seconds(cpu[path])} / {seconds(cpu['/echo'])}",
    )


def alternating(
    server: Running, bodies: Mapping[str, bytes], connections: int
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return seconds of each call, by path, and the server's CPU time a call; the paths take turns, round by round."""
    peers = [_Peer(server) for _ in range(connections)]
    worker = _worker(server)
    times: dict[str, list[float]] = {path: [] for path in bodies}
    cpu = dict.fromkeys(bodies, 0.0)
    for number in range(ROUNDS + 1):
        for path, body in bodies.items():
            before = _cpu(worker)
            measured = _round(peers, path, body)
            if number:  # the first round warms up
                cpu[path] += _cpu(worker) - before
                times[path].extend(measured)
    for peer in peers:
        peer.close()
    return times, {path: taken / len(times[path]) for path, taken in cpu.items()}


class _Peer:
    """A client that costs little next to the server: both share the machine."""

    def __init__(self, server: Running) -> None:
        import socket

        context = ssl.create_default_context(cafile=server.ca)
        plain = socket.create_connection(("127.0.0.1", server.port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = context.wrap_socket(plain, server_hostname="127.0.0.1")

    def call(self, path: str, body: bytes) -> None:
        head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body)
        answer = b""
        while not _is_whole(answer):
            answer += self._socket.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200"), answer

    def close(self) -> None:
        self._socket.close()


def _is_whole(answer: bytes) -> bool:
    head, end, rest = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    return len(rest) >= length


def _round(peers: list[_Peer], path: str, body: bytes) -> list[float]:
    times: list[float] = []

    def run(peer: _Peer) -> None:
        for _ in range(CALLS):
            begun = time.perf_counter()
            peer.call(path, body)
            times.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=run, args=(peer,)) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def wait_for_answer(server: Running) -> None:
    """Wait until the server has answered once."""
    peer = _Peer(server)
    peer.call("/echo", inputs.review(inputs.pod()))
    peer.close()


def _worker(server: Running) -> int:
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return int(children.split()[0])


def _cpu(pid: int) -> float:
    """Return the CPU time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(server: Running) -> int:
    """Return the bytes of memory that the serving process holds."""
    return int(Path(f"/proc/{_worker(server)}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

"""gunicorn's threaded worker, for peers that may stall: strangers hold none of the threads that known clients are served by."""

from __future__ import annotations

import errno
import selectors
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from gunicorn.workers.gthread import _DEFER, TConn, ThreadWorker

FIRST_BYTES_SECONDS = 10.0
"""A peer that connects and stays silent (a port scan, a load balancer's check) is let go after this."""

CLOSERS = 4
"""Threads that wait for peers to close, 2 s at most."""

_GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)


class _Connection(TConn):  # type: ignore[misc]  # gunicorn has no types
    """A connection that knows whether a request of its was answered, and whose last moments are not spent in the poller."""

    def __init__(self, worker: PatientWorker, *args: Any) -> None:
        super().__init__(*args)
        self._worker = worker
        self.known = False

    def close(self, graceful: bool = False) -> None:  # noqa: FBT001, FBT002  gunicorn's signature
        """Close; gracefully: wait for the peer to do so as well, somewhere else."""
        if graceful:
            self._worker.closers.submit(super().close, graceful=True)
        else:
            super().close()


class PatientWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """A few things differ from gunicorn's.

    A new connection waits for its first bytes in the poller, not for up to 5 s in a thread; and for those of its first request
    again, since clients also open connections in advance. Handshake and first request run in a pool of their own, so that the
    API server's kept-alive connections are served whatever strangers do. And the 2 s that a graceful close gives a peer are not
    spent in the poller, where everyone else would wait, too.
    """

    pending_conns: deque[Any]

    def init_process(self) -> None:
        """Make the other pools before anything is accepted."""
        self.newcomers = ThreadPoolExecutor(self.cfg.threads, "newcomer")
        self.closers = ThreadPoolExecutor(CLOSERS, "closer")
        super().init_process()

    def accept(self, listener: Any) -> None:
        """Take a new connection and put it where gunicorn puts one that stayed silent."""
        try:
            peer, address = listener.accept()
        except OSError as error:
            if error.errno not in _GONE:
                raise
            return
        self.nr_conns += 1
        connection = _Connection(self, self.cfg, peer, address, listener.getsockname())  # makes the socket non-blocking
        connection.timeout = time.monotonic() + FIRST_BYTES_SECONDS
        self.pending_conns.append(connection)
        self.poller.register(connection.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, connection))

    def enqueue_req(self, conn: Any) -> None:
        """Hand a connection on which there is something to read to a thread."""
        pool = self.tpool if conn.known else self.newcomers
        future: Future[Any] = pool.submit(self.handle, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

    def handle(self, conn: Any) -> Any:
        """Serve one request, or shake hands; runs in a thread."""
        if not conn.initialized:
            return self._shake_hands(conn)
        kept = super().handle(conn)
        conn.known = conn.known or kept is True
        return kept

    def _shake_hands(self, conn: Any) -> Any:
        conn.sock.settimeout(None)
        try:
            conn.init()
        except OSError as error:
            self.log.debug("no handshake with %s: %s", conn.client, error)
            return False
        # what was read along with the handshake would not wake the poller
        return super().handle(conn) if conn.sock.pending() else _DEFER

    def handle_quit(self, sig: int, frame: Any) -> None:
        """End soon, whatever is under way. gunicorn ends the process from here, where a thread that is half made hangs it."""
        self.cfg.set("graceful_timeout", 0)
        self.handle_exit(sig, frame)

    def murder_pending(self) -> None:
        """Close those that waited too long; gunicorn expects them in the order of their timeouts, which differ in length here."""
        self.pending_conns = deque(sorted(self.pending_conns, key=lambda conn: conn.timeout))
        super().murder_pending()

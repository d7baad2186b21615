"""gunicorn's threaded worker, for peers that may stall: strangers hold none of the threads that known clients are served by."""

from __future__ import annotations

import errno
import selectors
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

FIRST_BYTES_SECONDS = 10.0
"""A peer that connects and stays silent (a port scan, a load balancer's check) is let go after this."""

_GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)


CLOSERS = 4
"""Threads that wait for peers to close, 2 s at most."""


class _Connection(TConn):  # type: ignore[misc]  # gunicorn has no types
    """A connection whose last moments are not spent in the poller."""

    def __init__(self, worker: PatientWorker, *args: Any) -> None:
        super().__init__(*args)
        self._worker = worker

    def close(self, graceful: bool = False) -> None:  # noqa: FBT001, FBT002  gunicorn's signature
        """Close; gracefully: wait for the peer to do so as well, somewhere else."""
        if graceful:
            self._worker.closers.submit(super().close, graceful=True)
        else:
            super().close()


class PatientWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Three things differ from gunicorn's.

    A new connection waits for its first bytes in the poller, not for up to 5 s in a thread. Its handshake and first request
    then run in a pool of their own, so that the API server's kept-alive connections are served whatever strangers do. And the
    2 s that a graceful close gives a peer are not spent in the poller, where everyone else would wait, too.
    """

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
        pool = self.tpool if conn.initialized else self.newcomers
        future: Future[Any] = pool.submit(self.handle, conn)
        future.add_done_callback(lambda done: self.method_queue.defer(self.finish_request, conn, done))

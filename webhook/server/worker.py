"""gunicorn's threaded worker, without the thread that it gives to a connection on which nothing has arrived yet."""

from __future__ import annotations

import errno
import selectors
import time
from functools import partial
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

FIRST_BYTES_SECONDS = 10.0
"""A peer that connects and stays silent (a port scan, a load balancer's check) is let go after this."""

_GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)


class DeferringWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Waits for a new connection's first bytes in the poller, not for up to 5 s in one of the threads."""

    def accept(self, listener: Any) -> None:
        """Take a new connection and put it where gunicorn puts one that stayed silent."""
        try:
            peer, address = listener.accept()
        except OSError as error:
            if error.errno not in _GONE:
                raise
            return
        self.nr_conns += 1
        connection = TConn(self.cfg, peer, address, listener.getsockname())  # makes the socket non-blocking
        connection.timeout = time.monotonic() + FIRST_BYTES_SECONDS
        self.pending_conns.append(connection)
        self.poller.register(connection.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, connection))

"""TLS for gunicorn: sockets that a stalled peer cannot hold for ever, and a certificate that can change under way.

gunicorn's threaded worker reads with blocking sockets, so that a peer which stops in the middle of a handshake or a body keeps
a thread. It also asks for an SSLContext at every connection, which lets certificates rotate but costs a millisecond each time.
"""

from __future__ import annotations

import errno
import logging
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

IO_SECONDS = 1.0
"""Longest wait for one read or write: the API server gives up on the whole call after 2 s (mutating) or 3 s (validating)."""

REQUEST_SECONDS = 10.0
"""Longest time for one request, handshake included, against peers that send a byte now and then."""

log = logging.getLogger("gunicorn.error")


class BoundedSSLSocket(ssl.SSLSocket):
    """A socket whose "blocking" means: at most `IO_SECONDS` for a read or write and `REQUEST_SECONDS` for all of them.

    gunicorn makes a connection blocking each time a thread takes it up for a request, which starts the clock anew.
    """

    _deadline = 0.0
    _bounded = False

    def settimeout(self, value: float | None) -> None:
        """Set the timeout in seconds; None ("for ever") starts a bounded request instead."""
        self._bounded = value is None
        if self._bounded:
            self._deadline = time.monotonic() + REQUEST_SECONDS
        super().settimeout(IO_SECONDS if value is None else value)

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001  the standard library's signature
        """See `settimeout`."""
        self.settimeout(None if flag else 0.0)

    def recv(self, *args: Any, **kwargs: Any) -> bytes:
        """Receive, unless the request's time is up.

        Raises:
            ConnectionResetError: the peer was silent, or slow, for too long. (Of these, gunicorn makes no error in the log.)
        """
        if not self._bounded:
            return super().recv(*args, **kwargs)
        try:
            if time.monotonic() > self._deadline:
                raise TimeoutError  # noqa: TRY301  one place for both
            return super().recv(*args, **kwargs)
        except TimeoutError as error:
            raise ConnectionResetError(errno.ECONNRESET, "the peer stalled") from error


class ContextCache:
    """The SSLContext of the certificate on disk, made anew when certificate or key change.

    It has the signature of gunicorn's `ssl_context` hook. Certificate and key are two files and may be read across a swap; the
    last context that loaded stays in use until a pair loads again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stamp: tuple[int, ...] = ()
        self._context: ssl.SSLContext | None = None

    def __call__(self, conf: Any, factory: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        """Return the context for one connection.

        Raises:
            OSError: no pair of certificate and key ever loaded (ssl.SSLError is one).
        """
        with self._lock:
            try:
                stamp = tuple(Path(file).stat().st_mtime_ns for file in (conf.certfile, conf.keyfile))
                if self._context is None or stamp != self._stamp:
                    context = factory()
                    context.sslsocket_class = BoundedSSLSocket
                    self._context, self._stamp = context, stamp
            except OSError as error:
                if self._context is None:
                    raise
                log.warning("the new certificate does not load, the old one stays in use: %s", error)
            return self._context

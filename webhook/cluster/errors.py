"""What can go wrong with a call to an API server; apart from the client, which takes 40 MB and is not for the serving path."""

from __future__ import annotations

from http import HTTPStatus


class ClusterError(Exception):
    """A call that failed: `status` as HTTP says, 0 where the API server was not reached."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_missing(self) -> bool:
        """There is no such object."""
        return self.status == HTTPStatus.NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        """Someone else was first: read again, and decide again."""
        return self.status == HTTPStatus.CONFLICT

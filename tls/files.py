"""A serving certificate on disk, replaced under a running server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tls.certificates import CertificateError, Pair, read_pair


@dataclass(frozen=True, slots=True)
class PairFiles:
    """`tls.crt` and `tls.key` in one directory, named as in a Secret of type kubernetes.io/tls."""

    directory: Path

    @property
    def cert(self) -> Path:
        """The certificate's file."""
        return self.directory / "tls.crt"

    @property
    def key(self) -> Path:
        """The key's file; readable by its owner only."""
        return self.directory / "tls.key"

    def read(self) -> Pair | None:
        """Return what is there; None where there is nothing, or nothing that belongs together."""
        try:
            return read_pair(self.cert.read_bytes(), self.key.read_bytes())
        except (OSError, CertificateError):
            return None

    def write(self, pair: Pair) -> None:
        """Replace both files, each at once. Who reads between the two gets a pair that does not load, and tries again.

        Raises:
            OSError: the directory cannot be written.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        _replace(self.key, pair.key_pem, 0o600)
        _replace(self.cert, pair.cert_pem, 0o644)


def _replace(path: Path, content: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.replace(path)

"""A certificate of our own for a webhook without a cluster (`numalign serve --demo`): an authority that signs one leaf."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tls.certificates import Validity, authority, leaf
from tls.files import PairFiles
from tls.rotation import AUTHORITY_NAME, LEAF_NAME

LIFE = dt.timedelta(days=7)
"""Nothing renews this certificate, and its authority's key is forgotten at once: long enough for a trial, short otherwise."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the PEM files are: the authority to verify with, the leaf's certificate and its key."""

    ca: Path
    cert: Path
    key: Path


def create(directory: Path, hosts: Sequence[str] = ("localhost", "127.0.0.1", "::1")) -> Files:
    """Write a new authority's certificate, and a leaf for `hosts` (names or addresses) that it signed, to `directory`.

    The leaf's key is readable by its owner only (0600); the authority's key is not kept.

    Raises:
        OSError: the files cannot be written.
    """
    validity = Validity.from_now(dt.datetime.now(dt.UTC), LIFE)
    signer = authority(AUTHORITY_NAME, validity)
    pair = PairFiles(directory)
    pair.write(leaf(signer, validity, LEAF_NAME, hosts=hosts))
    ca = directory / "ca.crt"
    ca.write_bytes(signer.cert_pem)
    return Files(ca, pair.cert, pair.key)

"""When certificates are renewed, and how one authority follows another without a moment in which a leaf is not trusted.

An authority is replaced in three steps: *announce* (a next one exists, clients are told to trust it, it signs nothing),
*switch* (once they trust it, it signs; the old one is still trusted, for its leaves are still served), *retire* (no leaf of the
old one can be alive). All of this is decided from the shared state and the clock, so that every replica decides the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cryptography import x509

from tls import certificates
from tls.certificates import Pair, Validity

AUTHORITY_NAME = "numalign authority"
LEAF_NAME = "numalign webhook"


@dataclass(frozen=True, slots=True)
class Lives:
    """How long an authority and a leaf live, and how long clients get to read a changed bundle before it is relied on."""

    authority: dt.timedelta = dt.timedelta(days=365)
    leaf: dt.timedelta = dt.timedelta(days=7)
    settle: dt.timedelta = dt.timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """What the replicas share.

    Attributes:
        current: signs leaves.
        next: announced, signs nothing yet; None while nothing rotates.
        previous: signs nothing any more, but leaves that it signed may be alive.
        switched: when `current` took over from `previous`.
    """

    current: Pair
    next: Pair | None = None
    previous: x509.Certificate | None = None
    switched: dt.datetime | None = None

    @property
    def trusted(self) -> tuple[x509.Certificate, ...]:
        """What clients must trust: the bundle, the current authority first."""
        others = (self.next.cert if self.next else None, self.previous)
        return (self.current.cert, *(cert for cert in others if cert is not None))


def new_authority(now: dt.datetime, lives: Lives) -> Authority:
    """Return an authority that nobody trusts yet."""
    return Authority(_signer(now, lives))


def renewal(cert: x509.Certificate) -> dt.datetime:
    """Return when a certificate is to be replaced: at two thirds of its life."""
    start, end = cert.not_valid_before_utc, cert.not_valid_after_utc
    return start + (end - start) * 2 / 3


def expired(cert: x509.Certificate, now: dt.datetime) -> bool:
    """Tell whether a certificate is past its end."""
    return now >= cert.not_valid_after_utc


def step(state: Authority, now: dt.datetime, lives: Lives, trusted_since: dt.datetime | None) -> Authority:
    """Return the state that is to follow; the same object where nothing is due.

    `trusted_since`: since when all clients have the bundle of `state.trusted`; None: not all have it.
    """
    if expired(state.current.cert, now):
        return _after_expiry(state, now, lives)
    if state.next is None and now >= renewal(state.current.cert):
        return announce(state, now, lives)
    if state.next is not None and trusted_since is not None and now - trusted_since >= lives.settle:
        return _switch(state, state.next, now)
    if state.previous is not None and (expired(state.previous, now) or now - (state.switched or now) >= lives.leaf):
        return replace(state, previous=None, switched=None)
    return state


def announce(state: Authority, now: dt.datetime, lives: Lives) -> Authority:
    """Return the state in which a successor is announced; the same object where one is already."""
    if state.next is not None:
        return state
    return replace(state, next=_signer(now, lives))


def new_leaf(state: Authority, now: dt.datetime, lives: Lives, hosts: Sequence[str]) -> Pair:
    """Return a new leaf for `hosts`."""
    return certificates.leaf(state.current, Validity.from_now(now, lives.leaf), LEAF_NAME, hosts=hosts)


def leaf_due(leaf: Pair | None, state: Authority, now: dt.datetime, hosts: Sequence[str]) -> bool:
    """Tell whether a replica needs a new leaf: it has none, or an old one, or one of another authority or for other hosts."""
    if leaf is None or now >= renewal(leaf.cert):
        return True
    return set(certificates.hosts(leaf.cert)) != set(hosts) or not certificates.signed_by(leaf.cert, state.current.cert)


def _after_expiry(state: Authority, now: dt.datetime, lives: Lives) -> Authority:
    """Nobody trusts an expired authority, so there is nothing to wait for."""
    if state.next is not None and not expired(state.next.cert, now):
        return Authority(state.next)
    return new_authority(now, lives)


def _switch(state: Authority, successor: Pair, now: dt.datetime) -> Authority:
    return Authority(successor, previous=state.current.cert, switched=now)


def _signer(now: dt.datetime, lives: Lives) -> Pair:
    return certificates.authority(AUTHORITY_NAME, Validity.from_now(now, lives.authority))

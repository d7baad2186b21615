"""What each replica does for its certificate, again and again: agree on the authority, keep a leaf, have clients trust it.

A round reads the Secret and both webhook configurations, and changes only what is not as it should be. It is cheap enough for
every few seconds, which also takes care of suspended machines and of configurations that someone put back without a caBundle.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field

from cryptography import x509

from tls import rotation
from tls.files import PairFiles
from tls.rotation import Authority, Lives
from webhook.cluster.authority import AuthoritySecret, Stored
from webhook.cluster.bundles import Configurations
from webhook.cluster.errors import ClusterError


@dataclass(slots=True)
class Keeper:
    """One replica's part.

    Attributes:
        files: where the server reads its leaf; None: keep the authority and the bundles only.
        hosts: names by which clients reach the server.
    """

    secret: AuthoritySecret
    configurations: Configurations
    hosts: Sequence[str]
    files: PairFiles | None = None
    lives: Lives = field(default_factory=Lives)
    _known: Authority | None = None
    _trusted: tuple[x509.Certificate, ...] = ()
    _since: dt.datetime | None = None

    def round(self, now: dt.datetime) -> tuple[str, ...]:
        """Do what is due, and return what was done, a sentence each; nothing: all is well.

        Raises:
            ClusterError: a call failed; what was done before it stays done.
            OSError: the leaf cannot be written.
        """
        done: list[str] = []
        stored = self._agree(now, done)
        self._keep_leaf(stored.authority, now, done)
        self._have_trusted(stored.authority, now, done)
        following = rotation.step(stored.authority, now, self.lives, self._since)
        if following is not stored.authority and self._save(stored, following):
            done.append(_told(stored.authority, following))
        return tuple(done)

    def _agree(self, now: dt.datetime, done: list[str]) -> Stored:
        """A Secret that someone deleted comes back as it was: its authority is still the one that clients trust."""

        def make() -> Authority:
            done.append("stored the authority in a new Secret")
            return self._known or rotation.new_authority(now, self.lives)

        stored = self.secret.agree(make)
        self._known = stored.authority
        return stored

    def _keep_leaf(self, authority: Authority, now: dt.datetime, done: list[str]) -> None:
        if self.files is None or not rotation.leaf_due(self.files.read(), authority, now, self.hosts):
            return
        leaf = rotation.new_leaf(authority, now, self.lives, self.hosts)
        self.files.write(leaf)
        done.append(f"wrote a serving certificate, valid until {leaf.cert.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}")

    def _have_trusted(self, authority: Authority, now: dt.datetime, done: list[str]) -> None:
        changed = self.configurations.apply(authority.trusted)
        if changed:
            done.append(f"applied a caBundle of {len(authority.trusted)} to the webhook configurations")
        if changed or authority.trusted != self._trusted:
            self._trusted, self._since = authority.trusted, now

    def _save(self, stored: Stored, authority: Authority) -> bool:
        """A conflict means that another replica went first; the next round sees what it did."""
        try:
            self.secret.save(stored, authority)
        except ClusterError as error:
            if error.is_conflict or error.is_missing:
                return False
            raise
        return True


def _told(before: Authority, after: Authority) -> str:
    if after.next is not None:
        return "announced a new authority"
    if after.current.cert != before.current.cert:
        return "a new authority signs from now on"
    return "the previous authority is no longer trusted"

"""The authority as a Secret: what the replicas agree on.

Whoever creates the Secret first wins, the others read it; a change is a replacement at the resourceVersion that was read, so of
two replicas that decide at once one is refused and decides again on what the other wrote.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tls.certificates import CertificateError, bundle, read_certificate, read_pair
from tls.rotation import Authority
from webhook.cluster.api import Api, Json
from webhook.cluster.errors import ClusterError

SWITCHED: Final = "numalign.io/switched"


@dataclass(frozen=True, slots=True)
class Stored:
    """An authority, and the Secret that it was read from."""

    authority: Authority
    secret: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuthoritySecret:
    """A Secret by namespace and name."""

    api: Api
    namespace: str = "numalign-system"
    name: str = "numalign-authority"

    def read(self) -> Stored | None:
        """Return what is stored; None where there is no such Secret.

        Raises:
            ClusterError: the call failed, or the Secret holds no authority.
        """
        try:
            return self._stored(self.api.get(f"{self._collection}/{self.name}"))
        except ClusterError as error:
            if error.is_missing:
                return None
            raise

    def agree(self, make: Callable[[], Authority]) -> Stored:
        """Return what is stored; where nothing is, store what `make` makes, or what another replica stored meanwhile.

        Raises:
            ClusterError: a call failed, or the Secret holds no authority.
        """
        found = self.read()
        if found is not None:
            return found
        try:
            return self._stored(self.api.create(self._collection, encode(make(), self.namespace, self.name)))
        except ClusterError as error:
            if not error.is_conflict:
                raise
        return self.agree(make)

    def save(self, stored: Stored, authority: Authority) -> Stored:
        """Replace what was read by `authority`.

        Raises:
            ClusterError: the call failed; `is_conflict` where the Secret changed since it was read.
        """
        version = stored.secret["metadata"]["resourceVersion"]
        return self._stored(
            self.api.replace(f"{self._collection}/{self.name}", encode(authority, self.namespace, self.name, version))
        )

    def overwrite(self, authority: Authority) -> None:
        """Store `authority`, whatever is there.

        Raises:
            ClusterError: a call failed.
        """
        secret = encode(authority, self.namespace, self.name)
        try:
            self.api.replace(f"{self._collection}/{self.name}", secret)
        except ClusterError as error:
            if not error.is_missing:
                raise
            self.api.create(self._collection, secret)

    @property
    def _collection(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    def _stored(self, secret: Json) -> Stored:
        try:
            return Stored(decode(secret), secret)
        except (CertificateError, ValueError, KeyError) as error:
            hint = "`numalign certs init --replace` puts a new authority there; calls fail until every replica has read it"
            raise ClusterError(f"Secret {self.namespace}/{self.name} holds no authority: {error}; {hint}") from error


def encode(authority: Authority, namespace: str, name: str, version: str | None = None) -> Json:
    """Return the Secret of an authority; `version`: the resourceVersion that it replaces."""
    metadata: Json = {
        "name": name,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/name": "numalign"},
        "annotations": {SWITCHED: authority.switched.isoformat()} if authority.switched else {},
    }
    if version is not None:
        metadata["resourceVersion"] = version
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": metadata,
        "data": {name: base64.b64encode(pem).decode() for name, pem in _documents(authority).items()},
    }


def decode(secret: Mapping[str, Any]) -> Authority:
    """Return the authority in a Secret.

    Raises:
        CertificateError: a document is bad.
        KeyError: a document is missing.
        ValueError: base64 or a time is bad.
    """
    documents = {name: base64.b64decode(text, validate=True) for name, text in (secret.get("data") or {}).items()}
    times = secret["metadata"].get("annotations") or {}
    successor = read_pair(documents["next.crt"], documents["next.key"]) if "next.crt" in documents else None
    return Authority(
        current=read_pair(documents["tls.crt"], documents["tls.key"]),
        next=successor,
        previous=read_certificate(documents["previous.crt"]) if "previous.crt" in documents else None,
        switched=_time(times.get(SWITCHED)),
    )


def _documents(authority: Authority) -> dict[str, bytes]:
    documents = {
        "tls.crt": authority.current.cert_pem,
        "tls.key": authority.current.key_pem,
        "ca.crt": bundle(authority.trusted),
    }
    if authority.next is not None:
        documents |= {"next.crt": authority.next.cert_pem, "next.key": authority.next.key_pem}
    if authority.previous is not None:
        documents["previous.crt"] = bundle([authority.previous])
    return documents


def _time(text: str | None) -> dt.datetime | None:
    if text is None:
        return None
    time = dt.datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"time {text!r} has no offset from UTC")
    return time

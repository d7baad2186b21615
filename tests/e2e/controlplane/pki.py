"""Certificates and kubeconfigs of the control plane: one authority for all of it, as small clusters have."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

import yaml

from tls.certificates import Pair, Use, Validity, authority, leaf

LIFE = dt.timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Identity:
    """A client: a user name and its groups, as the API server reads them from the subject."""

    user: str
    groups: tuple[str, ...] = ()


ADMIN = Identity("numalign:admin", ("system:masters",))
CONTROLLER_MANAGER = Identity("system:kube-controller-manager")
SCHEDULER = Identity("system:kube-scheduler")
WEBHOOK_CLIENT = Identity("kube-apiserver-webhook-client")


class Pki:
    """Files under one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._validity = Validity.from_now(dt.datetime.now(dt.UTC), LIFE)
        self._authority = authority("numalign-e2e", self._validity)
        directory.mkdir(parents=True, exist_ok=True)
        self.ca = directory / "ca.crt"
        self.ca.write_bytes(self._authority.cert_pem)

    def server(self, name: str, *hosts: str) -> tuple[Path, Path]:
        """Return certificate and key files of a server."""
        return self._write(name, leaf(self._authority, self._validity, name, hosts=hosts))

    def client(self, identity: Identity) -> tuple[Path, Path]:
        """Return certificate and key files of a client."""
        name = identity.user.replace(":", "-")
        pair = leaf(self._authority, self._validity, identity.user, use=Use.CLIENT, organizations=identity.groups)
        return self._write(name, pair)

    def webhook_clients(self, identity: Identity) -> Path:
        """Return a kubeconfig file as the API server reads it for its webhooks: users by the webhook's host."""
        cert, key = self.client(identity)
        path = self.directory / "webhook-clients.kubeconfig"
        user = {"name": "*", "user": {"client-certificate": str(cert), "client-key": str(key)}}
        path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "users": [user]}))
        return path

    def kubeconfig(self, identity: Identity, server: str) -> Path:
        """Return a kubeconfig file by which `identity` reaches the API server at `server`."""
        name, (cert, key) = identity.user.replace(":", "-"), self.client(identity)
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(_kubeconfig(server, self.ca, {"client-certificate": str(cert), "client-key": str(key)})))
        return path

    def token_kubeconfig(self, name: str, token: str, server: str) -> Path:
        """Return a kubeconfig file for a bearer token: what a service account has."""
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(_kubeconfig(server, self.ca, {"token": token})))
        return path

    def signing_pair(self) -> tuple[Path, Path]:
        """Return certificate (to verify with) and key files for service account tokens."""
        return self._write("service-accounts", leaf(self._authority, self._validity, "service-accounts"))

    def _write(self, name: str, pair: Pair) -> tuple[Path, Path]:
        cert, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        cert.write_bytes(pair.cert_pem)
        key.touch(mode=0o600)
        key.write_bytes(pair.key_pem)
        return cert, key


def _kubeconfig(server: str, ca: Path, user: dict[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "e2e", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
    }

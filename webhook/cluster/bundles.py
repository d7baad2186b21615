"""The caBundle of our webhook configurations, applied under a field manager of our own.

Manifests carry none, so that whoever applies them (kubectl, Argo CD, Flux) neither owns the field nor takes it away. Server-side
apply names only `webhooks[name].clientConfig.caBundle`; the rest of an entry stays whoever's it is.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography import x509

from tls.certificates import bundle
from webhook.cluster.api import Api, Json
from webhook.cluster.errors import ClusterError
from webhook.core.webhookconfig import entry_names

KINDS: Final = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_GROUP: Final = "admissionregistration.k8s.io/v1"
_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Configurations:
    """The two configurations of one name, as they are registered."""

    api: Api
    name: str = "numalign"

    def registered(self) -> tuple[Json, ...]:
        """Return those that exist.

        Raises:
            ClusterError: a call failed.
        """
        found = (self._get(_path(kind, self.name)) for kind in KINDS)
        return tuple(each for each in found if each is not None)

    def apply(self, trusted: Sequence[x509.Certificate]) -> bool:
        """Have every registered entry trust exactly `trusted`; tell whether anything was changed.

        Raises:
            ClusterError: a call failed, or others kept changing a configuration.
        """
        wanted = base64.b64encode(bundle(trusted)).decode()
        changed = [self._apply(kind, wanted) for kind in KINDS]
        return any(changed)

    def _apply(self, kind: str, wanted: str) -> bool:
        path = _path(kind, self.name)
        for _ in range(_TRIES):
            found = self._get(path)
            if found is None or not (names := _lacking(found, wanted)):
                return False
            try:
                self.api.apply(path, _bundle_only(kind, self.name, entry_names(found), wanted), force=True)
            except ClusterError as error:
                # a conflict: it changed under way; missing or invalid: an entry or all of it went away since it was read
                if not (error.is_conflict or error.is_missing or error.status == _INVALID):
                    raise
            else:
                return True
        raise ClusterError(f"{kind} {self.name} keeps changing: no caBundle for {', '.join(names)} after {_TRIES} tries")

    def _get(self, path: str) -> Json | None:
        try:
            return self.api.get(path)
        except ClusterError as error:
            if error.is_missing:
                return None
            raise


_INVALID: Final = 422


def trusts(configurations: Iterable[Mapping[str, Any]], trusted: Sequence[x509.Certificate]) -> bool:
    """Tell whether every entry has exactly the bundle of `trusted`."""
    wanted = base64.b64encode(bundle(trusted)).decode()
    return not any(_lacking(each, wanted) for each in configurations)


def _lacking(configuration: Mapping[str, Any], wanted: str) -> list[str]:
    entries = configuration.get("webhooks") or ()
    return [str(entry["name"]) for entry in entries if entry["clientConfig"].get("caBundle") != wanted]


def _bundle_only(kind: str, name: str, entries: Iterable[str], wanted: str) -> Json:
    webhooks = [{"name": entry, "clientConfig": {"caBundle": wanted}} for entry in entries]
    return {"apiVersion": _GROUP, "kind": kind, "metadata": {"name": name}, "webhooks": webhooks}


def _path(kind: str, name: str) -> str:
    return f"/apis/{_GROUP}/{KINDS[kind]}/{name}"

"""The claims that a manifest stands for, as the API server would store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webhook.core.dra.devices import Json

_GROUP: Final = "resource.k8s.io/"
_FLAT: Final = "resource.k8s.io/v1beta1"
_OWNER: Final = {"apiVersion": "v1", "kind": "Pod", "controller": True}


def claim_of(value: Any) -> dict[str, Any] | None:
    """Return the claim that a ResourceClaim is or a ResourceClaimTemplate makes, in v1; None: it is neither.

    A template's claim is owned by a pod, and has the annotations that the template gives it, not those of the template
    (`pkg/controller/resourceclaim/controller.go`).
    """
    if not isinstance(value, Mapping) or not str(value.get("apiVersion", "")).startswith(_GROUP):
        return None
    metadata, spec = value.get("metadata"), value.get("spec")
    if value.get("kind") == "ResourceClaimTemplate":
        inner = spec if isinstance(spec, Mapping) else {}
        given = inner.get("metadata")
        own = {key: each for key, each in _mapping(metadata).items() if key != "annotations"}
        metadata = {**own, **_mapping(given), "ownerReferences": [_OWNER]}
        spec = inner.get("spec")
    elif value.get("kind") != "ResourceClaim":
        return None
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
    return _unflattened(claim) if value["apiVersion"] == _FLAT else claim


def _mapping(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _unflattened(claim: dict[str, Any]) -> dict[str, Any]:
    """In v1beta1 what is now under `exactly` stood in the request itself."""
    devices = _mapping(_mapping(claim["spec"]).get("devices"))
    requests = devices.get("requests")
    if not isinstance(requests, list):
        return claim
    made = [_request(entry) if isinstance(entry, Mapping) and "firstAvailable" not in entry else entry for entry in requests]
    return {**claim, "spec": {**claim["spec"], "devices": {**devices, "requests": made}}}


def _request(entry: Json) -> dict[str, Any]:
    return {"name": entry.get("name"), "exactly": {key: each for key, each in entry.items() if key != "name"}}

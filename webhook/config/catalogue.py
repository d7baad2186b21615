"""The shipped accelerator catalogue, and the one that a policy makes of it."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from pathlib import Path

from webhook.config.documents import read_file
from webhook.config.policy_schema import CatalogueSchema
from webhook.core.accelerators import Catalogue
from webhook.core.policy import Policy


def catalog_directory() -> Path:
    """Return where the shipped data is: `accelerators.yaml`, `policy.yaml` and `classes/`."""
    return Path(str(resources.files("webhook"))) / "catalog"


@lru_cache(maxsize=1)
def shipped_catalogue() -> Catalogue:
    """Return the shipped catalogue; that it is well-formed is a matter of the tests."""
    documents, errors = read_file(catalog_directory() / "accelerators.yaml")
    if errors or len(documents) != 1:
        raise ValueError(f"the shipped catalogue is broken: {'; '.join(map(str, errors)) or 'expected one document'}")
    return Catalogue(CatalogueSchema().load(documents[0].value)["accelerators"])


def load_catalogue(policy: Policy | None = None) -> Catalogue:
    """Return the catalogue in force under a policy: the shipped entries, extended and overridden by the policy's."""
    shipped = shipped_catalogue()
    return shipped.extended(policy.accelerators) if policy and policy.accelerators else shipped

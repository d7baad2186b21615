"""What a resource's name says about it (`pkg/apis/core/helper/helpers.go`, `component-helpers/resource/helpers.go`)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from webhook.core import quantities

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGEPAGES: Final = "hugepages-"

_NATIVE: Final = "kubernetes.io/"
_QUOTA: Final = "requests."
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 63
_LONGEST_PREFIX: Final = 253


def is_hugepages(name: str) -> bool:
    """Tell whether the resource is pre-allocated pages of some size."""
    return name.startswith(HUGEPAGES)


def is_memory(name: str) -> bool:
    """Tell whether the Memory Manager counts the resource: memory and pages of every size."""
    return name == MEMORY or is_hugepages(name)


def is_native(name: str) -> bool:
    """Tell whether the name lies in Kubernetes' own name space, where names without a prefix are too."""
    return "/" not in name or _NATIVE in name


@lru_cache(maxsize=1024)
def is_extended(name: str) -> bool:
    """Tell whether the resource is an extended one: whole, never overcommitted, reported by a device plugin or by hand."""
    return not is_native(name) and not name.startswith(_QUOTA) and is_qualified(_QUOTA + name)


def overcommit_allowed(name: str) -> bool:
    """Tell whether the limit of the resource may be above its request."""
    return is_native(name) and not is_hugepages(name)


def pod_level_supported(name: str) -> bool:
    """Tell whether the resource may stand in `spec.resources`."""
    return name == CPU or is_memory(name)


@lru_cache(maxsize=1024)
def is_qualified(name: str) -> bool:
    """Tell whether the name has the form of a qualified name: an optional DNS subdomain and a slash, then a short name."""
    prefix, slash, short = name.rpartition("/")
    if slash and not (0 < len(prefix) <= _LONGEST_PREFIX and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(short) <= _LONGEST_NAME and _NAME.fullmatch(short) is not None


@lru_cache(maxsize=256)
def page_size(name: str) -> int:
    """Return the page size in bytes that a hugepages resource names; 0 where it names none."""
    try:
        size = quantities.parse(name.removeprefix(HUGEPAGES))
    except quantities.InvalidQuantityError:
        return 0
    return size // quantities.NANO if size > 0 and quantities.is_whole(size) else 0

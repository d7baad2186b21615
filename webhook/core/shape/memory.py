"""Memory numbers, in bytes: requests = limits, a limit is never lowered, and one that was missing is generous."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.core.containers import Container, Pod
from webhook.core.quantities import parse, value
from webhook.core.shape.scene import Declared, whole_mi


def of_container(declared: Declared, floor: int, tmpfs: int) -> int:
    """Return requests = limits of a container: its limit, else the largest of its request, `floor` and what its tmpfs may take.

    Args:
        declared: what the author wrote.
        floor: the share of a device container; the policy's default, or what the app containers have, for others.
        tmpfs: `tmpfs(...)` of the container.
    """
    if declared.limit is not None:
        return declared.limit
    return whole_mi(max(declared.request or 0, floor, tmpfs, 1))


def tmpfs(pod: Pod, container: Container, unlimited: int) -> int:
    """Return the bytes that the memory-backed emptyDirs a container mounts may take: files in them count as its memory.

    `unlimited`: what one without a sizeLimit counts for.
    """
    sizes = _tmpfs_sizes(pod, unlimited)
    mounted = {mount.get("name") for mount in container.raw.get("volumeMounts") or ()}
    return sum(size for name, size in sizes.items() if name in mounted)


def _tmpfs_sizes(pod: Pod, unlimited: int) -> Mapping[Any, int]:
    sizes = {}
    for volume in pod["spec"].get("volumes") or ():
        source = volume.get("emptyDir") or {}
        if source.get("medium") == "Memory":
            limit = source.get("sizeLimit")
            # A sizeLimit of 0 is none.
            sizes[volume.get("name")] = (value(parse(limit)) if limit is not None else 0) or unlimited
    return sizes

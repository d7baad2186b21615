"""CPU and memory together, requests = limits."""

from __future__ import annotations

from typing import NamedTuple


class Amounts(NamedTuple):
    """Milli-CPUs and bytes: of a container, of a pod, or for each accelerator."""

    cpu: int
    memory: int

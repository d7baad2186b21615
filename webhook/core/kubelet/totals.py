"""What a pod's containers need together (KEP-753; `component-helpers/resource/helpers.go`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from webhook.core.containers import Kind


def pod_total(containers: Iterable[tuple[Kind, Mapping[str, int]]]) -> dict[str, int]:
    """Return per resource the most that runs at once: sidecars and apps, or an init container and the sidecars before it.

    The containers come in the kubelet's order: init and sidecar containers as declared, then app containers.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for kind, amounts in containers:
        if kind is Kind.INIT:
            for name, amount in amounts.items():
                peak[name] = max(peak.get(name, 0), running.get(name, 0) + amount)
        else:
            for name, amount in amounts.items():
                running[name] = running.get(name, 0) + amount
    for name, amount in peak.items():
        running[name] = max(running.get(name, 0), amount)
    return running

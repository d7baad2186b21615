"""Pods whose accelerators come through claims: input, patch and verdict, on disk for review."""

from __future__ import annotations

import pytest

from tests.golden.files import GOLDEN, answers, check
from tests.unit.core.dra.machines import (
    SPREAD,
    claiming,
    gpu_request,
    gpus,
    known,
    machine,
    mutated,
    nic_request,
    nics,
    template,
    user,
    validated,
)
from tests.unit.core.setting import JSON, bare, kubelet

TWO = {"t": template(gpu_request(2))}
WITH_NIC = {"t": template(gpu_request(2), nic_request())}
WITH_CPU = {"t": template(gpu_request(1), {"name": "cpu", "exactly": {"deviceClassName": "dra.cpu", "count": 1}})}
DGX = machine(gpus(*SPREAD), nics(0, 1))
AWAY = machine(gpus(*reversed(SPREAD)), name="away")
UNKNOWN = machine(name="unknown", described=False)
WHOLE_CORES = machine(gpus(*SPREAD), name="cores", config=kubelet(cpuManagerPolicyOptions={"full-pcpus-only": "true"}))
SIDECAR = bare("proxy", None, requests={"cpu": "100m", "memory": "128Mi"}, limits={"memory": "256Mi"})

CASES: dict[str, tuple[JSON, tuple[JSON, ...], dict[str, JSON], str]] = {
    "sized": (claiming(user(), SIDECAR), (DGX,), TWO, "strict"),
    "sized-with-a-nic": (claiming(), (DGX,), WITH_NIC, "best-effort"),
    "away-from-its-devices": (claiming(), (DGX, AWAY), TWO, "strict"),
    "not-described": (claiming(), (DGX, UNKNOWN), TWO, "strict"),
    "pinned-by-its-author": (claiming(user(limits={"cpu": "8", "memory": "16Gi"})), (AWAY,), TWO, "strict"),
    "cpu-through-a-claim": (claiming(user(limits={"cpu": "8"})), (DGX,), WITH_CPU, "strict"),
    "more-devices-than-there-are": (claiming(), (DGX, machine(gpus(0), name="small")), {"t": template(gpu_request(9))}, "strict"),
    "more-devices-than-there-are-audit": (claiming(), (DGX,), {"t": template(gpu_request(9))}, "audit"),
    "refused-by-every-kubelet": (claiming(user(limits={"cpu": "100", "memory": "16Gi"})), (DGX, AWAY), TWO, "strict"),
    "whole-cores": (claiming(user(limits={"cpu": "3", "memory": "16Gi"})), (WHOLE_CORES,), TWO, "strict"),
    "audit": (claiming(), (DGX,), TWO, "audit"),
    "extended-resource-by-dra-or-plugin": (
        {"spec": {"containers": [bare("main", 2)]}},
        (DGX, machine(name="plugin", plugins=4)),
        {},
        "strict",
    ),
}


@pytest.mark.golden
@pytest.mark.parametrize("name", CASES)
def test_input_patch_and_verdict(name: str) -> None:
    pod, classes, objects, mode = CASES[name]
    snapshot = known(*classes, objects=objects)
    final, mutation = mutated(pod, snapshot, mode)
    answer = validated(final, snapshot, mode)
    check(
        GOLDEN / "claims" / f"{name}.yaml",
        {
            "mode": mode,
            "pod": pod,
            "templates": {key: each["spec"]["spec"]["devices"] for key, each in objects.items()},
            **answers(mutation, answer),
        },
    )

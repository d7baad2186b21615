"""Input, patch and verdict of typical pods, on disk for review."""

from __future__ import annotations

import pytest

from tests.golden.files import GOLDEN, answers, check
from tests.unit.core.setting import (
    GPU,
    JSON,
    NIC,
    RESTRICTED,
    SINGLE,
    bare,
    kubelet,
    m112,
    m128,
    mutated,
    named,
    nps4,
    pod,
    snapshot,
    validated,
)
from webhook.core.edit import put

DGX = named(m112(kubelet(SINGLE)), "dgx")
LENIENT = named(m112(kubelet("best-effort")), "lenient")
WIDE = named(m128(kubelet(RESTRICTED), {GPU: 4, NIC: 2}, {GPU: 4, NIC: 2}), "wide")
NPS4 = named(nps4(kubelet(RESTRICTED)), "nps4")
HAMI = named(m112(kubelet(SINGLE, "container")), "shared", hami={"mode": "hami-core", "numaTopology": True, "refit": True})
SIDECAR = bare("proxy", gpu=None, requests={"cpu": "100m", "memory": "128Mi"}, limits={"memory": "256Mi"})

CASES: dict[str, tuple[JSON, tuple[JSON, ...], str]] = {
    "one-gpu": (pod(bare()), (DGX,), "strict"),
    "whole-numa-node-with-sidecar": (pod(bare(gpu=4), SIDECAR), (DGX,), "strict"),
    "init-container-and-sidecar": (
        pod(bare(gpu=2), init=(bare("fetch", gpu=None, requests={"cpu": "1"}), SIDECAR | {"restartPolicy": "Always"})),
        (DGX,),
        "strict",
    ),
    "rounded-up": (pod(bare(limits={"cpu": "3500m", "memory": "16Gi"})), (DGX,), "strict"),
    "too-many-gpus": (pod(bare(gpu=5)), (DGX,), "strict"),
    "too-many-gpus-best-effort": (pod(bare(gpu=5)), (DGX,), "best-effort"),
    "too-many-gpus-audit": (pod(bare(gpu=5)), (DGX,), "audit"),
    "steered": (pod(bare(gpu=4)), (DGX, NPS4), "strict"),
    "preferred": (pod(bare(gpu=4)), (DGX, NPS4), "best-effort"),
    "two-numa-nodes": (pod(bare(gpu=8, limits={NIC: 4})), (WIDE,), "strict"),
    "not-enforced": (pod(bare(gpu=5, limits={"cpu": "8", "memory": "16Gi"})), (LENIENT,), "strict"),
    "shared-by-hami": (pod(bare(gpu=None, limits={"nvidia.com/gpumem": 8000, "cpu": "4", "memory": "16Gi"})), (HAMI,), "strict"),
    "affinity-kept": (
        put(
            pod(bare(gpu=4)),
            ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}, {}]},
        ),
        (DGX, NPS4),
        "strict",
    ),
    "undescribed": (pod(bare(gpu=None, limits={"amd.com/gpu": 1})), (DGX,), "strict"),
    "aligned-as-written": (pod(bare(limits={"cpu": "8", "memory": "16Gi"})), (DGX,), "strict"),
}


@pytest.mark.golden
@pytest.mark.parametrize("name", CASES)
def test_input_patch_and_verdict(name: str) -> None:
    made, classes, mode = CASES[name]
    known = snapshot(*classes)
    final, mutation = mutated(made, known, mode)
    answer = validated(final, known, mode)
    check(
        GOLDEN / "decisions" / f"{name}.yaml",
        {
            "mode": mode,
            "pod": made,
            **answers(mutation, answer),
        },
    )

"""Reviews in the form in which the API server sends them."""

from __future__ import annotations

import json
from typing import Any


def pod(gpus: int | str = 1, **spec: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": gpus if isinstance(gpus, int) else str(gpus)}
    containers = [{"name": "main", "image": "registry.example.com/train:1", "resources": {"limits": limits}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"}, "spec": {"containers": containers, **spec}}


def review(obj: Any, **request: Any) -> dict[str, Any]:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    fields = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "research",
        "name": "train",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller", "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        **request,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": fields}


def encoded(obj: Any, **request: Any) -> bytes:
    return json.dumps(review(obj, **request)).encode()

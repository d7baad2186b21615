"""Pods and node classes that the benchmark judges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webhook.config.load import builtin_names, load_classes, load_policy
from webhook.core.snapshot import Snapshot

GPU, NIC, OTHER = "nvidia.com/gpu", "nvidia.com/hostdev", "example.com/fpga"

TEN = tuple(name for name in builtin_names() if name not in {"epyc-nps4-mi210", "mi300x-8gpu", "gb200-tray"})
"""The shipped classes of NVIDIA GPUs, without the tray that has a row of its own."""


def snapshot(*builtin: str, own: dict[str, Any] | None = None, directory: Path) -> Snapshot:
    """Return a set in force: shipped classes by name, and one of the benchmark's own."""
    paths = []
    if own is not None:
        paths = [directory / f"{own['metadata']['name']}.yaml"]
        paths[0].write_text(json.dumps(own))
    loaded = load_classes(paths, builtin)
    assert not loaded.errors, loaded.errors
    policy, _ = load_policy(None)
    return Snapshot(policy, catalogue(), loaded.classes)


def catalogue() -> Any:
    """Return the shipped catalogue."""
    from webhook.config.catalogue import load_catalogue

    return load_catalogue()


def node_class(name: str, numa_nodes: int, policy: str, resources: tuple[str, ...], *, memory: bool) -> dict[str, Any]:
    """Return a class of `numa_nodes` nodes with 16 CPUs, 64 Gi and a device of each resource on each."""
    nodes = [
        {"id": i, "cpus": _cpus(i, numa_nodes), "memory": "64Gi", "devices": dict.fromkeys(resources, 1)}
        for i in range(numa_nodes)
    ]
    kubelet: dict[str, Any] = {
        "cpuManagerPolicy": "static",
        "topologyManagerPolicy": policy,
        "topologyManagerPolicyOptions": {"max-allowable-numa-nodes": str(max(8, numa_nodes))},
        "kubeReserved": {"cpu": "2", "memory": "2Gi"},
    }
    if memory:
        kubelet |= {"memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 0, "limits": {"memory": "2148Mi"}}]}
    return {
        "apiVersion": "numalign.io/v1alpha1",
        "kind": "NodeClass",
        "metadata": {"name": name},
        "spec": {
            "selector": {"example.com/machine": name},
            "kubernetes": "1.37",
            "topology": {"sockets": 2, "threadsPerCore": 2, "numaNodes": nodes},
            "kubelet": kubelet,
        },
    }


def _cpus(node: int, nodes: int) -> str:
    first, second = 8 * node, 8 * (nodes + node)
    return f"{first}-{first + 7},{second}-{second + 7}"


def pod(number: int = 0, **devices: int) -> dict[str, Any]:
    """Return a usual pod of two containers; those with different numbers ask for different amounts."""
    main = {"requests": {"cpu": f"{4000 + number}m", "memory": f"{8192 + number}Mi"}, "limits": _named(devices or {"gpu": 1})}
    side = {"requests": {"cpu": "100m", "memory": "128Mi"}}
    containers = [_container("train", main), _container("log-shipper", side)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "research", "labels": {"job-name": "train"}},
        "spec": {"containers": containers, "restartPolicy": "Never", "schedulerName": "default-scheduler"},
    }


def _named(devices: dict[str, int]) -> dict[str, str]:
    names = {"gpu": GPU, "nic": NIC, "other": OTHER}
    return {names[key]: str(count) for key, count in devices.items()}


def _container(name: str, resources: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "image": f"registry.example.com/{name}:1",
        "resources": resources,
        "env": [{"name": f"SETTING_{i}", "value": "x" * 40} for i in range(20)],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def plain_pod() -> dict[str, Any]:
    """Return a pod without accelerators."""
    made = pod()
    del made["spec"]["containers"][0]["resources"]["limits"]
    return made


def numbered(**devices: int) -> Iterator[dict[str, Any]]:
    """Yield pods none of which was seen before."""
    number = 0
    while True:
        number += 1
        yield pod(number, **devices)


def claim(number: int = 0, *, count: int = 2) -> dict[str, Any]:
    """Return a claim as the controller makes it of a template: GPUs and a NIC; those with different numbers differ."""
    config = {
        "opaque": {"driver": "gpu.nvidia.com", "parameters": {"apiVersion": "resource.nvidia.com/v1beta1", "number": number}}
    }
    devices: dict[str, Any] = {"requests": [_request("gpu", "gpu.nvidia.com", count)], "config": [config]}
    if count > 1:
        devices["requests"].append(_request("nic", "dranet", 1))
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "train",
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "controller": True,
    }
    metadata = {"generateName": "train-gpus-", "namespace": "research", "ownerReferences": [owner]}
    metadata["annotations"] = {"resource.kubernetes.io/pod-claim-name": "gpus"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}


def _request(name: str, device_class: str, count: int) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}}


def classes_with_slices(count: int) -> list[dict[str, Any]]:
    """Return node classes of 2 NUMA nodes, each with 4 GPUs and 5 NICs by DRA, whose drivers say a lot about them."""
    made = []
    for number in range(count):
        made.append(node_class(f"dra-{number}", 2, "restricted", (), memory=False))
        made[-1]["spec"]["resourceSlices"] = [
            {"driver": "gpu.nvidia.com", "devices": [_gpu(index, number) for index in range(8)]},
            {"driver": "dra.net", "devices": [_nic(index) for index in range(10)]},
        ]
    return made


def _gpu(index: int, number: int) -> dict[str, Any]:
    texts = {"type": "gpu", "productName": f"NVIDIA {number}", "architecture": "Hopper", "uuid": f"GPU-{number}-{index}"}
    attributes: dict[str, Any] = {name: {"string": text} for name, text in texts.items()}
    attributes |= {"driverVersion": {"version": "580.65.6"}, "resource.kubernetes.io/numaNode": {"int": index // 4}}
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": "81559Mi"}}}


def _nic(index: int) -> dict[str, Any]:
    attributes = {"ifName": {"string": f"eth{index}"}, "rdma": {"bool": True}, "mtu": {"int": 9000}}
    return {"name": f"net-{index}", "attributes": {**attributes, "resource.kubernetes.io/numaNode": {"int": index // 5}}}


def review(obj: dict[str, Any]) -> bytes:
    """Return an AdmissionReview as the API server sends it."""
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": obj["kind"]}
    resource = {"group": group, "version": version, "resource": f"{obj['kind'].lower()}s"}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "namespace": "research",
        "name": "train",
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller", "groups": ["system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode()

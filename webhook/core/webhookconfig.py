"""The webhook configurations of a policy, as plain manifests (DESIGN sections 5 and 8).

One entry per mode and one for all other namespaces, each with its own namespaceSelector and path, so that the API server tells
us the namespace's mode without a call of ours. CEL matchConditions keep every pod without accelerators away: they never cost
such a pod a round trip, nor can they block one. caBundle is left out; whoever holds the certificates applies it.

Sources: `admissionregistration/v1`, KEP-3716 (matchConditions), `apiserver/pkg/apis/cel/config.go` (cost budgets).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from webhook.core.accelerators import Catalogue
from webhook.core.policy import MODE_KEY, Mode, Policy

Manifest = dict[str, Any]

DEFAULT: Final = "default"
SYSTEM_NAMESPACES: Final = ("kube-node-lease", "kube-system")
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_MODES: Final = (Mode.STRICT, Mode.BEST_EFFORT, Mode.AUDIT)
_MUTATING_SECONDS: Final = 2
_VALIDATING_SECONDS: Final = 3


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the API server finds the webhook: a Service, or a base URL (`https://host:port`) that replaces it."""

    namespace: str = "numalign-system"
    service: str = "numalign"
    port: int = 443
    url: str = ""

    def client(self, path: str) -> Manifest:
        """Return the clientConfig for one path, without caBundle."""
        if self.url:
            return {"url": self.url.rstrip("/") + path}
        return {"service": {"namespace": self.namespace, "name": self.service, "path": path, "port": self.port}}


def configurations(policy: Policy, catalogue: Catalogue, endpoint: Endpoint) -> tuple[Manifest, Manifest]:
    """Return the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration of a policy, in a stable order."""
    labels = (*(str(mode) for mode in _MODES), DEFAULT)
    mutating = [_mutating(label, policy, catalogue, endpoint) for label in labels]
    mutating += [_resource_claims(label, policy, endpoint) for label in labels]
    validating = [_validating(label, policy, catalogue, endpoint) for label in labels]
    validating += [_claims(label, policy, catalogue, endpoint) for label in labels]
    validating += [_resource_claims(label, policy, endpoint, validating=True) for label in labels]
    validating += [_advice(kind, policy, catalogue, endpoint) for kind in _WORKLOADS]
    return _manifest("MutatingWebhookConfiguration", mutating), _manifest("ValidatingWebhookConfiguration", validating)


def _manifest(kind: str, webhooks: list[Manifest]) -> Manifest:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "numalign", "labels": {"app.kubernetes.io/name": "numalign"}},
        "webhooks": webhooks,
    }


def _mutating(label: str, policy: Policy, catalogue: Catalogue, endpoint: Endpoint) -> Manifest:
    """A mutation that does not come about costs performance, not correctness: Ignore. It also sees pods with claims only."""
    ours = f"{_requests_accelerators(catalogue)} || {_HAS_CLAIMS}"
    return {
        "name": f"{label}.pods.numalign.io",
        "clientConfig": endpoint.client(f"/mutate/pods/{label}"),
        "rules": [_rule("", "v1", ["CREATE"], ["pods"])],
        "failurePolicy": "Ignore",
        "timeoutSeconds": _MUTATING_SECONDS,
        "reinvocationPolicy": "IfNeeded",
        "matchConditions": [*_exemptions(policy), {"name": "accelerators-or-claims", "expression": ours}],
        **_common(_namespaces(label, policy, endpoint)),
    }


def _validating(label: str, policy: Policy, catalogue: Catalogue, endpoint: Endpoint) -> Manifest:
    return {
        "name": f"{label}.pods.numalign.io",
        "clientConfig": endpoint.client(f"/validate/pods/{label}"),
        "rules": [_rule("", "v1", ["CREATE"], ["pods"]), _rule("", "v1", ["UPDATE"], ["pods/resize"])],
        "failurePolicy": "Fail" if _refuses(label, policy) else "Ignore",
        "timeoutSeconds": _VALIDATING_SECONDS,
        "matchConditions": [*_exemptions(policy), {"name": "accelerators", "expression": _requests_accelerators(catalogue)}],
        **_common(_namespaces(label, policy, endpoint)),
    }


def _claims(label: str, policy: Policy, catalogue: Catalogue, endpoint: Endpoint) -> Manifest:
    """Pods known by their resourceClaims alone: what they claim cannot be told here, so a dead webhook must not stop them."""
    conditions = [
        {"name": "claims", "expression": _HAS_CLAIMS},
        {"name": "no-accelerators", "expression": f"!({_requests_accelerators(catalogue)})"},
    ]
    return {
        "name": f"{label}.claims.numalign.io",
        "clientConfig": endpoint.client(f"/validate/pods/{label}"),
        "rules": [_rule("", "v1", ["CREATE"], ["pods"])],
        "failurePolicy": "Ignore",
        "timeoutSeconds": _VALIDATING_SECONDS,
        "matchConditions": [*_exemptions(policy), *conditions],
        **_common(_namespaces(label, policy, endpoint)),
    }


def _resource_claims(label: str, policy: Policy, endpoint: Endpoint, *, validating: bool = False) -> Manifest:
    """Claims of several devices. A pod waits for its claim, so a dead webhook must not stop one.

    What a controller made from a template is changed but never refused. `matchPolicy: Equivalent` converts older versions to v1.
    """
    conditions = [
        {"name": "several-devices", "expression": _SEVERAL_DEVICES},
        {"name": "not-allocated", "expression": _NOT_EXTENDED},
    ]
    if validating:
        conditions.append({"name": "written-by-hand", "expression": "!has(object.metadata.ownerReferences)"})
    return {
        "name": f"{label}.resourceclaims.numalign.io",
        "clientConfig": endpoint.client(f"/{'validate' if validating else 'mutate'}/resourceclaims/{label}"),
        "rules": [_rule("resource.k8s.io", "v1", ["CREATE"], ["resourceclaims"])],
        "failurePolicy": "Ignore",
        "timeoutSeconds": _VALIDATING_SECONDS if validating else _MUTATING_SECONDS,
        **({} if validating else {"reinvocationPolicy": "IfNeeded"}),
        "matchConditions": [*_exempt_users(policy), *conditions],
        **_common(_namespaces(label, policy, endpoint)),
    }


@dataclass(frozen=True, slots=True)
class _Workload:
    """Kinds with a pod template at the same place; `pods` is a CEL list of their pod specs, `template` what holds it."""

    name: str
    group: str
    version: str
    resources: tuple[str, ...]
    template: str
    pods: str


_WORKLOADS: Final = (
    _Workload(
        "apps", "apps", "v1", ("daemonsets", "deployments", "statefulsets"), "spec.template", "[object.spec.template.spec]"
    ),
    _Workload("jobs", "batch", "v1", ("jobs",), "spec.template", "[object.spec.template.spec]"),
    _Workload("cronjobs", "batch", "v1", ("cronjobs",), "spec.jobTemplate", "[object.spec.jobTemplate.spec.template.spec]"),
    _Workload(
        "jobsets",
        "jobset.x-k8s.io",
        "v1alpha2",
        ("jobsets",),
        "spec.replicatedJobs",
        "object.spec.replicatedJobs.map(job, job.template.spec.template.spec)",
    ),
)


def _advice(kind: _Workload, policy: Policy, catalogue: Catalogue, endpoint: Endpoint) -> Manifest:
    """Warnings for the people who apply a workload; its pods are refused later, out of their sight."""
    changed = f"oldObject == null || object.{kind.template} != oldObject.{kind.template}"
    ours = f"{kind.pods}.exists(spec, {_requests_accelerators(catalogue, 'spec')})"
    return {
        "name": f"{kind.name}.workloads.numalign.io",
        "clientConfig": endpoint.client("/advise/workloads"),
        "rules": [_rule(kind.group, kind.version, ["CREATE", "UPDATE"], list(kind.resources))],
        "failurePolicy": "Ignore",
        "timeoutSeconds": _MUTATING_SECONDS,
        "matchConditions": [
            *_exempt_users(policy),
            {"name": "pod-template-changed", "expression": changed},
            {"name": "accelerators", "expression": ours},
        ],
        **_common(_advised_namespaces(policy, endpoint)),
    }


def _refuses(label: str, policy: Policy) -> bool:
    return label == Mode.STRICT or (label == DEFAULT and policy.mode is Mode.STRICT)


def _common(selector: Manifest) -> Manifest:
    return {
        "namespaceSelector": selector,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def _rule(group: str, version: str, operations: list[str], resources: list[str]) -> Manifest:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": operations,
        "resources": resources,
        "scope": "Namespaced",
    }


def _namespaces(label: str, policy: Policy, endpoint: Endpoint) -> Manifest:
    """`default` takes every namespace that no other entry takes, those with an invalid label too; `off` has no entry."""
    mode: Manifest
    if label == DEFAULT:
        mode = {"key": MODE_KEY, "operator": "NotIn", "values": sorted(str(mode) for mode in Mode)}
    else:
        mode = {"key": MODE_KEY, "operator": "In", "values": [label]}
    return {"matchExpressions": [mode, _not_exempt(policy, endpoint)]}


def _advised_namespaces(policy: Policy, endpoint: Endpoint) -> Manifest:
    off = {"key": MODE_KEY, "operator": "NotIn", "values": [str(Mode.OFF)]}
    return {"matchExpressions": [off, _not_exempt(policy, endpoint)]}


def _not_exempt(policy: Policy, endpoint: Endpoint) -> Manifest:
    names = {*SYSTEM_NAMESPACES, *policy.exempt_namespaces, endpoint.namespace}
    return {"key": _NAMESPACE_NAME, "operator": "NotIn", "values": sorted(names)}


def _exemptions(policy: Policy) -> list[Manifest]:
    """Pods that the handlers would leave alone anyway; here they do not even depend on us being up."""
    conditions = [{"name": "not-a-mirror-pod", "expression": _NOT_MIRROR}, *_exempt_users(policy)]
    if policy.exempt_runtime_classes:
        classes = _strings(policy.exempt_runtime_classes)
        expression = f"!has(object.spec.runtimeClassName) || !(object.spec.runtimeClassName in {classes})"
        conditions.append({"name": "not-an-exempt-runtime-class", "expression": expression})
    return conditions


def _exempt_users(policy: Policy) -> list[Manifest]:
    if not policy.exempt_users:
        return []
    expression = f"!(request.userInfo.username in {_strings(policy.exempt_users)})"
    return [{"name": "not-an-exempt-user", "expression": expression}]


_NOT_MIRROR: Final = '!has(object.metadata.annotations) || !("kubernetes.io/config.mirror" in object.metadata.annotations)'
_HAS_CLAIMS: Final = "(has(object.spec.resourceClaims) && object.spec.resourceClaims.size() > 0)"

_SEVERAL_DEVICES: Final = (
    "has(object.spec.devices) && has(object.spec.devices.requests) && (object.spec.devices.requests.size() > 1 || "
    "object.spec.devices.requests.exists(r, has(r.exactly) && has(r.exactly.count) && r.exactly.count > 1))"
)
_NOT_EXTENDED: Final = (
    '!has(object.metadata.annotations) || !("resource.kubernetes.io/extended-resource-claim" in object.metadata.annotations)'
)


def _requests_accelerators(catalogue: Catalogue, spec: str = "object.spec") -> str:
    """Return CEL that tells whether a pod spec limits a resource of ours in any init, sidecar or app container.

    Extended resources must stand in the limits (`pkg/apis/core/validation`), so the limits are enough. `contains("/")` spares
    cpu, memory and hugepages the dearer tests: a pod of plain containers costs a few units of the 2.5 million allowed.
    """
    ours = [entry for entry in catalogue.entries if entry.is_accelerator]
    known = f"r in {_strings(entry.name for entry in ours if entry.name)}"
    patterns = {entry.pattern.removeprefix("^").removesuffix("$") for entry in ours if entry.pattern}
    if patterns:
        whole = "|".join(f"(?:{pattern})" for pattern in sorted(patterns))
        known += f" || r.matches({json.dumps(f'^(?:{whole})$')})"
    limits = f'has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(r, r.contains("/") && ({known}))'
    return (
        f"[has({spec}.initContainers) ? {spec}.initContainers : [], {spec}.containers].exists(group, group.exists(c, {limits}))"
    )


def _strings(values: Iterable[str]) -> str:
    return json.dumps(sorted(set(values)))


def entry_names(configuration: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of a configuration's entries in order: what a caBundle is applied to."""
    return tuple(str(webhook["name"]) for webhook in configuration["webhooks"])

"""What a decision reads of a pod, and nothing else.

Decisions are made on the essence, never on the whole pod. So two pods with the same essence have the same decision, and what is
remembered by it can never be wrong for having left something out. Names, images, commands and the like are not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from webhook.core.containers import Pod
from webhook.core.patch import HAMI_ALIGNMENT, INJECTED, VERDICT

_ANNOTATIONS = (INJECTED, VERDICT, HAMI_ALIGNMENT)
_LABELS = ("hami.io/webhook",)
_SPEC = ("nodeName", "nodeSelector", "overhead", "resources", "schedulerName", "tolerations")


def essence(pod: Pod) -> dict[str, Any]:
    """Return a pod with what decisions read; it must have passed `wellformed.problems`.

    Everything kept has its place in the original, so that a patch for the one is a patch for the other.
    """
    spec = pod["spec"]
    kept = {key: spec[key] for key in _SPEC if key in spec}
    if isinstance(spec.get("affinity"), dict):
        kept["affinity"] = {key: value for key, value in spec["affinity"].items() if key == "nodeAffinity"}
    volumes = [each for each in spec.get("volumes") or () if (each.get("emptyDir") or {}).get("medium") == "Memory"]
    kept["volumes"] = [{"name": each.get("name"), "emptyDir": each["emptyDir"]} for each in volumes]
    names = {each.get("name") for each in volumes}
    for field in ("initContainers", "containers"):
        if spec.get(field):
            kept[field] = [_container(each, names) for each in spec[field]]
    return {**_metadata(pod), "spec": kept}


def _metadata(pod: Pod) -> dict[str, Any]:
    metadata = pod.get("metadata")
    if metadata is None:
        return {}
    kept = {field: _only(metadata[field], keys) for field, keys in _FIELDS if metadata.get(field) is not None}
    return {"metadata": kept}


_FIELDS = (("annotations", _ANNOTATIONS), ("labels", _LABELS))


def _only(values: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: values[key] for key in keys if key in values}


def _container(raw: Mapping[str, Any], tmpfs: set[Any]) -> dict[str, Any]:
    kept = {key: raw[key] for key in ("name", "resources", "restartPolicy") if key in raw}
    if tmpfs:
        kept["volumeMounts"] = [{"name": each["name"]} for each in raw.get("volumeMounts") or () if each.get("name") in tmpfs]
    return kept

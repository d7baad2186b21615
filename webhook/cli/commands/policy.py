"""`numalign policy`: check a policy file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.cli.inputs import config_options, load_policy, output_option, read_classes
from webhook.cli.output import emit, table
from webhook.core.quantities import format_bytes, format_cpu

if TYPE_CHECKING:
    from webhook.core.accelerators import Entry
    from webhook.core.policy import Policy

_COUNTS: Final[Mapping[int | None, str]] = {1: "each", 0: "one", None: "none"}


@click.group("policy")
def command() -> None:
    """Policy files: check one."""


@command.command("check")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@config_options
@output_option()
def check(file: Path | None, policy_file: Path | None, class_paths: tuple[Path, ...], fmt: str) -> None:
    """Check a policy file and print what it comes to, defaults filled in."""
    policy = load_policy(file or policy_file)
    if class_paths:
        read_classes(class_paths, policy)
    data = document(policy)
    emit(data, fmt, lambda: [table(("setting", "value"), [(key, _text(value)) for key, value in _flat(data["spec"])])])


def document(policy: Policy) -> dict[str, Any]:
    """Return a policy as its file would say it, defaults filled in."""
    spec = {
        "mode": str(policy.mode),
        "requireEnforcement": policy.require_enforcement,
        "coverage": "complete" if policy.complete else "partial",
        "builtinClasses": list(policy.builtin_classes),
        "annotationMayRelax": policy.annotation_may_relax,
        "exemptNamespaces": sorted(policy.exempt_namespaces),
        "exempt": {"users": sorted(policy.exempt_users), "runtimeClasses": sorted(policy.exempt_runtime_classes)},
        "accelerators": [_entry(entry) for entry in policy.accelerators],
        "cpu": {"source": policy.cpu.source, **_per_accelerator(policy), "default": format_cpu(policy.cpu.default)},
        "memory": {"inject": policy.memory.inject, "default": format_bytes(policy.memory.default)},
        "hugepages": {
            "size": format_bytes(policy.hugepages.size),
            "perAccelerator": format_bytes(policy.hugepages.per_accelerator),
        },
        "claims": {"shapePods": policy.claims.shape_pods, "prioritizedList": policy.claims.prioritized_list},
        "shapeShared": policy.shape_shared,
        "steer": policy.steer,
        "hami": policy.hami,
    }
    return {"apiVersion": "numalign.io/v1alpha1", "kind": "Policy", "spec": spec}


def _per_accelerator(policy: Policy) -> dict[str, str]:
    fixed = policy.cpu.per_accelerator
    return {} if fixed is None else {"perAccelerator": format_cpu(fixed)}


def _entry(entry: Entry) -> dict[str, Any]:
    known = {"name": entry.name, "pattern": entry.pattern, "kind": str(entry.kind), "vendor": entry.vendor}
    more = {"hint": str(entry.hint), "hami": entry.hami, "implies": entry.implies, "counts": _counts(entry)}
    return {key: value for key, value in {**known, **more}.items() if value}


def _counts(entry: Entry) -> str | dict[str, int]:
    return _COUNTS.get(entry.units_per_device) or {"per": entry.units_per_device or 0}


def _flat(data: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in data.items():
        pairs += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return pairs


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_text, value)) if value and isinstance(value[0], dict) else ", ".join(map(str, value)) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(each)}" for key, each in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)

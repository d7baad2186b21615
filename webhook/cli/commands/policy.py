"""`numalign policy`: check a policy file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from webhook.cli.inputs import config_options, load_policy, output_option, read_classes
from webhook.cli.output import emit, table


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
    data = _plain(asdict(policy))
    emit(data, fmt, lambda: [table(("setting", "value"), [(key, _text(value)) for key, value in _flat(data)])])


def _plain(value: Any) -> Any:
    """Return data as JSON has it: sets sorted, tuples as lists, enumerations as their words."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, str) else value


def _flat(data: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in data.items():
        pairs += _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else [(prefix + key, value)]
    return pairs


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

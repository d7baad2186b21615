"""Golden files: YAML that people read in review; NUMALIGN_UPDATE_GOLDEN=1 rewrites them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from webhook.core.decision import Decision

GOLDEN = Path(__file__).parent
WIDTH = 140


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, and nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def check(path: Path, found: Any) -> None:
    """Compare with the file, or write it where the environment asks for that."""
    text = yaml.dump(found, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)
    if os.environ.get("NUMALIGN_UPDATE_GOLDEN") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"no {path.name}; NUMALIGN_UPDATE_GOLDEN=1 writes it"
    assert text == path.read_text(), f"{path.name} differs; NUMALIGN_UPDATE_GOLDEN=1 rewrites it"


def answers(mutation: Decision, admission: Decision) -> dict[str, Any]:
    """Return what both handlers said, as it stands in a golden file."""
    return {
        "mutation": {"outcome": mutation.outcome, "patch": list(mutation.patch), "warnings": list(mutation.warnings)},
        "admission": {
            "allowed": admission.allowed,
            "outcome": admission.outcome,
            "reason": admission.reason,
            "message": admission.message,
            "causes": [f"{cause.field}: {cause.message}" for cause in admission.causes],
            "warnings": list(admission.warnings),
            "audit": dict(admission.audit),
            "verdicts": {name: _verdict(verdict) for name, verdict in admission.verdicts.items()},
        },
    }


def _verdict(verdict: Any) -> str:
    where = ", ".join(f"{name} {{{','.join(map(str, mask or '*'))}}}" for name, mask in verdict.masks.items())
    return " ".join(filter(None, (str(verdict.outcome), verdict.reason, where)))

"""The README and the pages under docs/ say what the program does: their examples are run and compared.

A fenced block whose info string names a file (` ```yaml train.yaml `) is written to an empty directory. In a `console` block each
line after `$` is run there, and what follows it is what the command prints. `text refusal` is the message of the refusal of
`train.yaml`. NUMALIGN_UPDATE_GOLDEN=1 rewrites the outputs.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from webhook.cli.group import COMMANDS, numalign
from webhook.cli.inputs import load_snapshot
from webhook.config import load
from webhook.core import decide
from webhook.core.decision import Request
from webhook.core.workloads import templates

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


@dataclass(frozen=True)
class Block:
    info: tuple[str, ...]
    body: str
    span: tuple[int, int]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [Block(tuple(m["info"].split()), m["body"], m.span("body")) for m in BLOCK.finditer(text)]


def files(page: Path) -> Iterator[tuple[str, str]]:
    return ((block.info[1], block.body) for block in blocks(page) if block.info[0] in {"yaml", "json"} and len(block.info) > 1)


def commands(body: str) -> list[str]:
    return [line[2:] for line in body.splitlines() if line.startswith("$ ")]


def replayed(body: str) -> str:
    return "".join(f"$ {command}\n{output(command)}" for command in commands(body))


def output(command: str) -> str:
    """Return what a command prints, stderr after stdout, on lines without trailing blanks."""
    program, *args = shlex.split(command)
    assert program == "numalign", f"{command}: only numalign can be replayed"
    result = CliRunner().invoke(numalign, args)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    text = (result.stdout + result.stderr).strip("\n")
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def refusal(directory: Path) -> str:
    """Return the message of the refusal of the pods in train.yaml, on the class dgx-h100."""
    snapshot = load_snapshot(None, (directory / "classes.yaml",) if (directory / "classes.yaml").exists() else ())
    (template,) = templates(yaml.safe_load((directory / "train.yaml").read_text()))
    return decide.validate(template.pod, Request(), snapshot).message + "\n"


def settle(page: Path, index: int, actual: str) -> None:
    """Compare a block with what it should be, or rewrite the page."""
    block = blocks(page)[index]
    if os.environ.get("NUMALIGN_UPDATE_GOLDEN"):
        text = page.read_text()
        page.write_text(text[: block.span[0]] + actual + text[block.span[1] :])
    else:
        assert actual == block.body


@pytest.mark.golden
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_are_what_the_program_prints(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, body in files(page):
        (tmp_path / name).write_text(body)
    for index, block in enumerate(blocks(page)):
        if block.info[0] == "console":
            settle(page, index, replayed(block.body))
        elif block.info == ("text", "refusal"):
            settle(page, index, refusal(tmp_path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_example_classes_and_policies_load(page: Path, tmp_path: Path) -> None:
    for index, block in enumerate(block for block in blocks(page) if block.info[0] == "yaml"):
        (kind,) = {str(document.get("kind")) for document in yaml.safe_load_all(block.body) if isinstance(document, dict)} or {""}
        file = tmp_path / f"{index}.yaml"
        file.write_text(block.body)
        if kind == "NodeClass" and "refused" not in block.info:
            assert load.load_classes((file,)).errors == ()
        elif kind == "Policy":
            assert load.load_policy(file)[1] == ()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_project_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_command_is_in_the_readme() -> None:
    text = PAGES[0].read_text()
    for name in COMMANDS:
        assert f"`numalign {name}" in text, name


def test_every_policy_field_is_explained() -> None:
    from webhook.config.policy_schema import PolicySpecSchema

    text = (ROOT / "docs" / "policy.md").read_text()
    for name, field in PolicySpecSchema().fields.items():
        assert f"`{field.data_key or name}" in text, name


def test_every_node_class_field_is_explained() -> None:
    from webhook.config.nodeclass_schema import SpecSchema

    text = (ROOT / "docs" / "node-classes.md").read_text()
    for name, field in SpecSchema().fields.items():
        assert f"`{field.data_key or name}" in text, name

"""The image is not built here, but its steps are held to what they rely on, and the wheel in it is made and used."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """Return (instruction, its arguments), comments left out and continued lines joined."""
    lines = [line for line in TEXT.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.strip().partition(" ") for line in joined.splitlines()) if word]


def those(word: str) -> list[str]:
    return [rest for name, rest in instructions() if name == word]


def test_every_instruction_is_one() -> None:
    assert {name for name, _ in instructions()} <= {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "ENTRYPOINT"}
    assert instructions()[0][0] == "FROM"


def test_what_is_copied_exists() -> None:
    for arguments in those("COPY"):
        *sources, _ = shlex.split(arguments)
        if sources[0].startswith("--from="):
            assert sources[0] == "--from=build"
            continue
        for source in sources:
            assert (ROOT / source).exists(), source


def test_stages_of_one_python_that_the_project_supports() -> None:
    images = {arguments.split()[0] for arguments in those("FROM")}
    assert images == {"python:3.11-slim"}


def test_everything_installed_is_locked() -> None:
    for step in those("RUN"):
        for command in step.split("&&"):
            if "pip install" in command:
                assert "--require-hashes" in command or "--no-deps" in command, command


def test_the_image_runs_the_command_as_nobody() -> None:
    last = [index for index, (name, _) in enumerate(instructions()) if name == "FROM"][-1]
    final = dict(instructions()[last:])
    user = final["USER"].partition(":")[0]
    assert int(user) > 0
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert json.loads(final["ENTRYPOINT"]) == [*scripts]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made by the image's own command and unpacked as pip would."""
    step = next(step for step in those("RUN") if "pip wheel" in step)
    command = shlex.split(step.split("&&")[0])
    directory = tmp_path_factory.mktemp("image")
    swapped = {"/build/bin/pip": [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"], "/wheels": [str(directory)]}
    arguments = [part for word in command for part in swapped.get(word, [word])]
    subprocess.run(arguments, cwd=ROOT, check=True)
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "site")
    return directory / "site"


def test_the_wheel_has_everything_that_the_packages_have(installed: Path) -> None:
    for package in ("webhook", "tls"):
        assert files(installed / package) == files(ROOT / package)


def files(directory: Path) -> set[Path]:
    return {path.relative_to(directory) for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def test_the_command_works_from_the_wheel(installed: Path) -> None:
    code = "import webhook; from webhook.cli import main; print(webhook.__file__); main()"
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, "classes", "list", "-o", "json"],
        cwd=installed,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    where, _, listed = done.stdout.partition("\n")
    assert Path(where).is_relative_to(installed)
    assert len(json.loads(listed)) >= 12

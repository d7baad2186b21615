"""YAML read with the line of every value, so that an error can say where.

Booleans are `true` and `false` only (as in YAML 1.2): `mode: off` is a word here, and no date is ever made of a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from webhook.core.containers import field_path

ValuePath = tuple[str | int, ...]

MAX_BYTES: Final = 8 * 1024**2

MAX_VALUES: Final = 300_000
"""Aliases of aliases make a short text a long one: a kilobyte can stand for billions of values."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to say about one place of one file; line 0: not about a line, path empty: about the whole."""

    file: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (where, self.path, self.message) if part)


class ConfigError(Finding):
    """Why a file, or a part of it, cannot be used, and what was expected."""

    __slots__ = ()


class ConfigWarning(Finding):
    """What works but deserves a look."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document, or one item of a list of them.

    Attributes:
        value: plain Python data.
        lines: path of a value within the document -> its line, from 1.
    """

    file: str
    value: Any
    lines: Mapping[ValuePath, int] = field(default_factory=dict)

    def line(self, path: ValuePath) -> int:
        """Return the line of a value, or of the nearest thing around it that exists."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 0

    def error(self, path: ValuePath, message: str) -> ConfigError:
        """Return an error about one value."""
        return ConfigError(self.file, self.line(path), field_path(path), message)

    def warning(self, path: ValuePath, message: str) -> ConfigWarning:
        """Return a warning about one value."""
        return ConfigWarning(self.file, self.line(path), field_path(path), message)

    def item(self, path: ValuePath, value: Any) -> Document:
        """Return the part at a path as a document of its own, its lines kept."""
        size = len(path)
        return Document(self.file, value, {p[size:]: line for p, line in self.lines.items() if p[:size] == path})


class _TooManyValuesError(Exception):
    """A document stands for more than anybody wants to read."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader without YAML 1.1's dates and its many words for true and false."""


_BOOL: Final = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, regexp) for tag, regexp in resolvers if tag not in {_BOOL, "tag:yaml.org,2002:timestamp"}]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF"))


def read_file(path: Path) -> tuple[tuple[Document, ...], tuple[ConfigError, ...]]:
    """Return the documents of one file, empty ones left out, and why parts of it cannot be read."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        return (), (ConfigError(str(path), 0, "", f"cannot be read: {error.strerror or error}"),)
    except UnicodeDecodeError as error:
        return (), (ConfigError(str(path), 0, "", f"expected UTF-8 text: {error.reason} at byte {error.start}"),)
    if len(data) > MAX_BYTES:
        return (), (ConfigError(str(path), 0, "", f"expected at most {MAX_BYTES} bytes"),)
    return read_text(text, str(path))


def read_text(text: str, file: str) -> tuple[tuple[Document, ...], tuple[ConfigError, ...]]:
    """Return the documents of a YAML (or JSON) text; `file` is its name for people."""
    documents: list[Document] = []
    errors: list[ConfigError] = []
    loader = _Loader(text)
    try:
        while loader.check_node():
            documents.extend(_document(loader, loader.get_node(), file, errors))
    except yaml.YAMLError as error:
        errors.append(_syntax_error(error, file))
    except RecursionError:
        errors.append(ConfigError(file, 0, "", "refers to itself, or is nested too deeply"))
    except _TooManyValuesError:
        errors.append(ConfigError(file, 0, "", f"expected at most {MAX_VALUES} values, those that aliases repeat included"))
    finally:
        loader.dispose()
    return tuple(documents), tuple(errors)


def _document(loader: Any, node: yaml.Node, file: str, errors: list[ConfigError]) -> Iterator[Document]:
    lines: dict[ValuePath, int] = {}
    for count, (path, line, twice) in enumerate(_walk(node, ())):
        if count > MAX_VALUES:
            raise _TooManyValuesError
        if twice:
            errors.append(ConfigError(file, line, field_path(path), "is written twice; keep one of them"))
        lines.setdefault(path, line)
    value = loader.construct_document(node)
    if value is not None:
        yield Document(file, value, lines)


def _walk(node: yaml.Node, path: ValuePath) -> Iterator[tuple[ValuePath, int, bool]]:
    """Yield each value's path and line, and whether its key stood there before."""
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        yield path, line, False
        seen: set[str] = set()
        for key, child in node.value:
            name = str(key.value)
            here = (*path, name)
            yield here, key.start_mark.line + 1, name in seen and name != "<<"
            seen.add(name)
            yield from _walk(child, here)
    elif isinstance(node, yaml.SequenceNode):
        yield path, line, False
        for index, child in enumerate(node.value):
            yield from _walk(child, (*path, index))
    else:
        yield path, line, False


def _syntax_error(error: yaml.YAMLError, file: str) -> ConfigError:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        problem = " ".join(part for part in (error.context, error.problem) if part)
        return ConfigError(file, error.problem_mark.line + 1, "", f"is no YAML: {problem}")
    return ConfigError(file, 0, "", f"is no YAML: {error}".partition("\n")[0])

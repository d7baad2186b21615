"""Manifests of any kind with pods in them, and where in the files they stand."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from webhook.config.documents import ConfigError, Document, read_file, read_text
from webhook.core.containers import Path as FieldPath
from webhook.core.containers import Pod, field_path
from webhook.core.workloads import Template, templates

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class Found:
    """One pod, or pod template, of a manifest."""

    document: Document
    template: Template

    @property
    def pod(self) -> Pod:
        """Return the pod; of a template the one that it makes."""
        return self.template.pod

    @property
    def title(self) -> str:
        """Return what it is: `Deployment/trainer`, `JobSet/train spec.replicatedJobs[0].template.spec.template`."""
        value: Mapping[str, Any] = self.document.value
        metadata = value.get("metadata") if isinstance(value.get("metadata"), dict) else {}
        name = (metadata or {}).get("name") or (metadata or {}).get("generateName") or "-"
        where = field_path(self.template.path)
        plain = where in {"", "spec.template", "spec.jobTemplate.spec.template"}
        return f"{value.get('kind', 'Pod')}/{name}" + ("" if plain else f" {where}")

    @property
    def namespace(self) -> str:
        """Return the namespace that the manifest names; empty where it names none."""
        return namespace_of(self.document)

    @property
    def line(self) -> int:
        """Return the line where it begins."""
        return self.document.line(self.template.path)

    def line_of(self, path: FieldPath) -> int:
        """Return the line of a pod's field, of the nearest thing around it if it is missing."""
        below = path if self.template.in_spec else path[1:]
        return self.document.line((*self.template.path, *below))


def read(files: Iterable[str]) -> tuple[list[Found], list[ConfigError]]:
    """Return the pods of files, of directories' YAML and JSON files, and of stdin (`-`); and what could not be read."""
    objects, errors = read_objects(files)
    return [found for document in objects for found in pods(document)], errors


def read_objects(files: Iterable[str]) -> tuple[list[Document], list[ConfigError]]:
    """Return the objects of files and of stdin (`-`), and what could not be read."""
    found: list[Document] = []
    errors: list[ConfigError] = []
    for file in files:
        documents, problems = read_text(sys.stdin.read(), "stdin") if file == "-" else read_file(Path(file))
        errors += problems
        found += _objects(documents)
    return found, errors


def pods(document: Document) -> list[Found]:
    """Return the pods of one object."""
    return [Found(document, template) for template in templates(document.value)]


def limit_ranges(documents: Iterable[Document]) -> Mapping[str, list[Any]]:
    """Return namespace -> its LimitRange objects; an empty one: of manifests that name none."""
    found: dict[str, list[Any]] = {}
    for document in documents:
        if document.value.get("kind") == "LimitRange":
            found.setdefault(namespace_of(document), []).append(document.value)
    return found


def expand(names: Iterable[str]) -> list[str]:
    """Return the files that the names stand for: directories give the manifests below them, in order."""
    files: list[str] = []
    for name in names:
        path = Path(name)
        inside = sorted(str(each) for each in path.rglob("*") if each.suffix in _SUFFIXES) if path.is_dir() else [name]
        files += inside
    return files


def namespace_of(document: Document) -> str:
    """Return the namespace that a manifest names; empty where it names none."""
    metadata = document.value.get("metadata")
    return str(metadata.get("namespace") or "") if isinstance(metadata, dict) else ""


def _objects(documents: Iterable[Document]) -> Iterator[Document]:
    """Take Lists apart; what is no object has no pods."""
    for document in documents:
        items = document.value.get("items") if isinstance(document.value, dict) else None
        if isinstance(items, list):
            yield from (document.item(("items", index), item) for index, item in enumerate(items) if isinstance(item, dict))
        elif isinstance(document.value, dict):
            yield document

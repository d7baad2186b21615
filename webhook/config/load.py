"""Load policies and node classes from files: everything that is wrong at once, as data, and what can be used."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from marshmallow import ValidationError

from webhook.config.catalogue import catalog_directory
from webhook.config.checks import class_errors, class_warnings, conflicts
from webhook.config.claims import ClusterObjects, is_cluster_object
from webhook.config.documents import ConfigError, ConfigWarning, Document, read_file
from webhook.config.fields import flatten, suggestion
from webhook.config.nodeclass_schema import NodeClassSchema
from webhook.config.policy_schema import PolicySchema
from webhook.core.dra.devices import Inventory
from webhook.core.kubelet.node import NodeKubelet, compile_class
from webhook.core.model import NodeClass
from webhook.core.policy import Policy

_CLASS_SCHEMA: Final = NodeClassSchema()
_POLICY_SCHEMA: Final = PolicySchema()
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


@dataclass(frozen=True, slots=True)
class LoadedClasses:
    """What came of loading node classes.

    Attributes:
        classes: those that can be used, sorted by name; with `errors` not empty they are not all.
        errors: why the others cannot, in the order of the files.
        warnings: about the usable ones.
        inventory: the DRA devices of the classes, and those of ResourceSlices in the files, with their DeviceClasses.
    """

    classes: tuple[NodeKubelet, ...] = ()
    errors: tuple[ConfigError, ...] = ()
    warnings: tuple[ConfigWarning, ...] = ()
    inventory: Inventory = field(default_factory=Inventory)


@dataclass(slots=True)
class _Loading:
    """What was found so far, each class with the document it came from."""

    found: list[tuple[NodeKubelet, Document]] = field(default_factory=list)
    errors: list[ConfigError] = field(default_factory=list)
    warnings: list[ConfigWarning] = field(default_factory=list)
    objects: ClusterObjects = field(default_factory=ClusterObjects)

    def add(self, document: Document) -> None:
        if is_cluster_object(document.value):
            self.errors += self.objects.add(document)
            return
        node_class, errors = parse_class(document)
        self.errors += errors
        if node_class is None:
            return
        kubelet = compile_class(node_class)
        if refused := class_errors(kubelet, document):
            self.errors += refused
            return
        self.warnings += class_warnings(kubelet, document)
        self.found.append((kubelet, document))

    def result(self) -> LoadedClasses:
        self.errors += conflicts(self.found)
        classes = sorted((kubelet for kubelet, _ in self.found), key=lambda kubelet: kubelet.node_class.name)
        inventory = self.objects.inventory(kubelet.node_class for kubelet in classes)
        return LoadedClasses(tuple(classes), tuple(self.errors), tuple(self.warnings), inventory)


def load_classes(paths: Iterable[Path], builtin: Collection[str] = (), *, may_be_none: bool = False) -> LoadedClasses:
    """Load node classes from files and directories, and the built-in ones of these names.

    A file may hold several documents, lists of classes, objects with `items`, DeviceClasses and ResourceSlices. A directory's
    YAML and JSON files count, hidden ones and those in its subdirectories do not. That there are none is an error, or with
    `may_be_none` a warning.
    """
    loading = _Loading()
    files = list(_builtin_files(builtin))
    for path in paths:
        found = _files(path)
        files += found
        if not found and may_be_none:
            loading.warnings.append(ConfigWarning(str(path), 0, "", "no node classes here: what they would offer is not judged"))
        elif not found:
            loading.errors.append(ConfigError(str(path), 0, "", "expected YAML or JSON files in this directory, found none"))
    for file in dict.fromkeys(files):
        documents, errors = read_file(file)
        loading.errors += errors
        if not documents and not errors:
            # A file that is being written is empty for a moment.
            loading.errors.append(ConfigError(str(file), 0, "", "expected a NodeClass document, found none"))
        for document in documents:
            for item in _items(document):
                loading.add(item)
    return loading.result()


def load_builtin_classes(names: Collection[str] | None = None) -> LoadedClasses:
    """Load the built-in node classes of these names, by default all."""
    return load_classes((), builtin_names() if names is None else names)


def builtin_names() -> tuple[str, ...]:
    """Return the names of the built-in node classes, sorted."""
    return tuple(sorted(file.stem for file in (catalog_directory() / "classes").glob("*.yaml")))


def parse_class(document: Document | Any) -> tuple[NodeClass | None, tuple[ConfigError, ...]]:
    """Return the node class of one document, or what is wrong with its shape.

    Plain data will do for a document. Whether the class's kubelet starts is not judged here: see `load_classes`.
    """
    document = document if isinstance(document, Document) else Document("", document)
    loaded, errors = _load(_CLASS_SCHEMA, document)
    return loaded, errors


def load_policy(path: Path | None = None) -> tuple[Policy, tuple[ConfigError, ...]]:
    """Load a policy file, by default the shipped one; with errors, the policy is the default and must not be used."""
    file = path or catalog_directory() / "policy.yaml"
    documents, errors = read_file(file)
    if errors:
        return Policy(), errors
    if len(documents) != 1:
        return Policy(), (ConfigError(str(file), 0, "", f"expected one Policy document, got {len(documents)}"),)
    policy, errors = _load(_POLICY_SCHEMA, documents[0])
    return policy or Policy(), (*errors, *_unknown_builtins(documents[0]))


def _unknown_builtins(document: Document) -> Iterator[ConfigError]:
    """Yield what the schema cannot know; it looks at the raw document, so that another error does not hide these."""
    known = builtin_names()
    spec = document.value.get("spec") if isinstance(document.value, Mapping) else None
    names = spec.get("builtinClasses") if isinstance(spec, Mapping) else None
    for index, name in enumerate(names if isinstance(names, list) else ()):
        if isinstance(name, str) and name not in known:
            hint = suggestion(name, known) or f"; there are {', '.join(known)}"
            yield document.error(("spec", "builtinClasses", index), f"{name!r} is no built-in class{hint}")


def _load(schema: NodeClassSchema | PolicySchema, document: Document) -> tuple[Any, tuple[ConfigError, ...]]:
    try:
        return schema.load(document.value), ()
    except ValidationError as error:
        errors = [document.error(path, text) for path, text in flatten(error.messages)]
        return None, tuple(sorted(errors, key=lambda found: (found.line, found.path)))


def _builtin_files(names: Collection[str]) -> list[Path]:
    known = builtin_names()
    return [catalog_directory() / "classes" / f"{name}.yaml" for name in names if name in known]


def _files(path: Path) -> list[Path]:
    """Return the files that a path stands for."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.name[0] != "." and file.is_file())


def _items(document: Document) -> Iterator[Document]:
    """Yield the classes of one document: itself, or what is in its list."""
    value = document.value
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield document.item((index,), item)
    elif isinstance(value, Mapping) and isinstance(value.get("items"), list) and "spec" not in value:
        for index, item in enumerate(value["items"]):
            yield document.item(("items", index), item)
    else:
        yield document

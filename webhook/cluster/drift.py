"""How the registered webhook configurations differ from those that the policy in force asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from webhook.core.webhookconfig import entry_names


def drift(expected: Iterable[Mapping[str, Any]], registered: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the differences, a sentence each, as `path: what`; nothing: none.

    Fields that the API server adds (defaults, metadata, caBundle) are no difference.
    """
    found = {each["kind"]: each for each in registered}
    return tuple(line for each in expected for line in _configuration(each, found.get(each["kind"])))


def _configuration(expected: Mapping[str, Any], registered: Mapping[str, Any] | None) -> Iterator[str]:
    kind = expected["kind"]
    if registered is None:
        yield f"{kind}: not registered"
        return
    there = {entry["name"]: entry for entry in registered.get("webhooks") or ()}
    for entry in expected["webhooks"]:
        path = f"{kind}.{entry['name']}"
        if entry["name"] not in there:
            yield f"{path}: not registered"
        else:
            yield from _differences(path, entry, there[entry["name"]])
    for name in there.keys() - set(entry_names(expected)):
        yield f"{kind}.{name}: not one of ours"


def _differences(path: str, expected: Any, registered: Any) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(registered, Mapping):
        for key, value in expected.items():
            yield from _differences(f"{path}.{key}", value, registered.get(key))
    elif isinstance(expected, list) and isinstance(registered, list) and len(expected) == len(registered):
        for index, (ours, theirs) in enumerate(zip(expected, registered, strict=True)):
            yield from _differences(f"{path}[{index}]", ours, theirs)
    elif expected != registered:
        yield f"{path}: {registered!r} is registered, the policy asks for {expected!r}"

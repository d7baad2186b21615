"""Our record on the pod, `numalign.io/injected`: what we changed, so that a later pass starts from the author's own values.

Compact JSON, path -> [the author's value or null, ours]. Paths are JSON pointers in which a container goes by its name, because
another webhook may have shifted the indices by then:

    {"/spec/containers/main/resources/limits/cpu":[null,"13"]}

Whoever writes pods can write records, so a record is believed only as far as it says what we could have written, and only where
the pod still holds our value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from webhook.core.containers import Path, Pod, visit
from webhook.core.edit import drop, get, put
from webhook.core.patch import ANNOTATIONS, HAMI_ALIGNMENT, INJECTED, MISSING, NODE_AFFINITY, VERDICT, changes, pointer
from webhook.core.placement import PREFERRED, REQUIRED
from webhook.core.quantities import InvalidQuantityError, parse
from webhook.core.resource_names import CPU, MEMORY, is_hugepages
from webhook.core.shape.steering import without_required
from webhook.core.wellformed import problems

_AFFINITY: Mapping[str, Path] = {pointer((*NODE_AFFINITY, kind)): (*NODE_AFFINITY, kind) for kind in (REQUIRED, PREFERRED)}
_HAMI = pointer((*ANNOTATIONS, HAMI_ALIGNMENT))
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Undone:
    """A pod with what we injected taken back.

    Attributes:
        pod: the author's pod, and whatever others changed since; the pod itself where there is no record to believe.
        recorded: the pod has a record that we believe, at least in part.
        warning: why (a part of) the record is ignored; empty: it is not.
    """

    pod: Pod
    recorded: bool = False
    warning: str = ""


def write(before: Pod, after: Pod, steering: Mapping[str, Any] | None) -> str:
    """Return the record of what turned the author's pod into ours; empty: nothing did.

    `steering`: kind of node affinity (`placement.REQUIRED`, `placement.PREFERRED`) -> what was added to it.
    """
    names = {container.path: container.name for container in visit(after)}
    entries = {_named(path, names): [_json(old), _json(new)] for path, old, new in changes(before, after) if _is_recorded(path)}
    entries |= {pointer((*NODE_AFFINITY, kind)): [None, added] for kind, added in (steering or {}).items()}
    return json.dumps(entries, separators=(",", ":"), sort_keys=True) if entries else ""


def undo(pod: Pod) -> Undone:
    """Return the pod with the author's values where it still has ours; never raises, whatever the record holds."""
    text = get(pod, (*ANNOTATIONS, INJECTED))
    if text is None:
        return Undone(pod)
    entries = _entries(text)
    if entries is None:
        return Undone(pod, warning=f"{INJECTED} is no record of ours and was ignored")
    restored, doubts = pod, 0
    paths = {container.name: container.path for container in visit(pod)}
    for key, (theirs, ours) in entries.items():
        earlier = _restore(restored, key, paths, theirs, ours)
        doubts += earlier is None
        restored = restored if earlier is None else earlier
    for key in (INJECTED, VERDICT):
        restored = drop(restored, (*ANNOTATIONS, key))
    if problems(restored):
        return Undone(pod, warning=f"{INJECTED} would make the pod invalid and was ignored")
    return Undone(restored, recorded=True, warning=f"{INJECTED} holds what we never write; that was ignored" if doubts else "")


def _entries(text: Any) -> Mapping[str, tuple[Any, Any]] | None:
    try:
        entries = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, dict) or not entries:
        return None
    if not all(isinstance(pair, list) and len(pair) == _PAIR for pair in entries.values()):
        return None
    return {key: (pair[0], pair[1]) for key, pair in sorted(entries.items())}


def _restore(pod: Pod, key: str, paths: Mapping[str, Path], theirs: Any, ours: Any) -> Pod | None:
    """Return the pod without one injection, the same pod where it no longer has it; None: we would never have written this."""
    if key in _AFFINITY:
        return _unsteer(pod, _AFFINITY[key], ours) if theirs is None and _is_affinity(key, ours) else None
    if key == _HAMI:
        path, credible = (*ANNOTATIONS, HAMI_ALIGNMENT), theirs is None and isinstance(ours, str)
    else:
        path = _real_path(key, paths)
        credible = path != () and _is_credible(path, theirs, ours)
    if not credible:
        return None
    if not _same(get(pod, path), ours):
        return pod
    return drop(pod, path) if theirs is None else put(pod, path, theirs)


def _same(present: Any, ours: str) -> bool:
    """Compare as quantities too: what was stored in between is in canonical form."""
    try:
        return present == ours or (present is not None and parse(present) == parse(ours))
    except InvalidQuantityError:
        return False


def _real_path(key: str, paths: Mapping[str, Path]) -> Path:
    """Return the path of a quantity that we may have changed, else an empty one.

    A container may have gone since, which is no forgery: its path is one where nothing is.
    """
    match key.split("/")[1:]:
        case ["spec", "containers" | "initContainers" as field, name, "resources", "requests" | "limits" as side, resource]:
            path = paths.get(name, ())
            return (*(path if path[1:2] == (field,) else ("spec", field, -1)), "resources", side, resource)
        case ["spec", "resources", "requests" | "limits" as side, resource]:
            return ("spec", "resources", side, resource)
    return ()


def _is_credible(path: Path, theirs: Any, ours: Any) -> bool:
    """Tell whether we could have made this change: a memory limit is never ours to change, nor are pages the author asked for."""
    side, resource = path[-2], str(path[-1])
    if is_hugepages(resource) or (resource == MEMORY and side == "limits"):
        return theirs is None and isinstance(ours, str)
    try:
        return resource in {CPU, MEMORY} and isinstance(ours, str) and (theirs is None or parse(theirs) >= 0)
    except InvalidQuantityError:
        return False


def _is_affinity(key: str, ours: Any) -> bool:
    """Tell whether this is what `shape.steering` adds: a preferred term, or alternatives of one or more NotIn expressions."""
    if key.endswith(PREFERRED):
        return isinstance(ours, dict)
    return (
        isinstance(ours, list)
        and bool(ours)
        and all(isinstance(each, list) and each and all(map(_is_not_in, each)) for each in ours)
    )


def _is_not_in(expression: Any) -> bool:
    return isinstance(expression, dict) and expression.get("operator") == "NotIn"


def _unsteer(pod: Pod, path: Path, ours: Any) -> Pod:
    if path[-1] == PREFERRED:
        kept = [each for each in get(pod, path) or () if each != ours]
        return _tidied(put(pod, path, kept) if kept else drop(pod, path))
    terms = get(pod, (*path, "nodeSelectorTerms"))
    before = without_required(terms, ours) if terms else None
    if before is None:
        return pod
    return _tidied(put(pod, (*path, "nodeSelectorTerms"), before) if before else drop(pod, path))


def _tidied(pod: Pod) -> Pod:
    """Drop the objects around node affinity that are empty now."""
    for path in (NODE_AFFINITY, NODE_AFFINITY[:-1]):
        if get(pod, path) == {}:
            pod = drop(pod, path)
    return pod


def _named(path: Path, names: Mapping[Path, str]) -> str:
    name = names.get(path[:3])
    return pointer((*path[:2], name, *path[3:]) if name is not None else path)


def _is_recorded(path: Path) -> bool:
    return (path[0] == "spec" and path[:3] != NODE_AFFINITY) or path[-1] == HAMI_ALIGNMENT


def _json(value: Any) -> Any:
    return None if value is MISSING else value

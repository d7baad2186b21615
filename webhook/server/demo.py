"""What `numalign serve --demo` shows: a few reviews, posted as the API server would, and what became of them.

The reviews in `demo_reviews` are in the form in which the API server sends them.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jsonpatch
from rich.console import Console
from rich.markup import escape

from webhook.core.containers import field_path

REVIEWS = Path(str(resources.files("webhook.server"))) / "demo_reviews"

Leaves = dict[tuple[str | int, ...], Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the webhook listens, and whom to trust."""

    port: int
    metrics_port: int
    ca: Path


def show(place: Place, console: Console) -> None:
    """Post all reviews over one kept-alive connection, and print the answers and how to go on."""
    trust = ssl.create_default_context(cafile=place.ca)
    connection = http.client.HTTPSConnection("127.0.0.1", place.port, timeout=10, context=trust)
    files = sorted(REVIEWS.glob("*.json"))
    about = f"numalign is up, and gets reviews of {len(files)} pods as an API server sends them, in strict mode."
    console.print(f"\n{about}", soft_wrap=True)
    for file in files:
        _show_review(connection, file, console)
    connection.close()
    console.print(_how_to_go_on(place), soft_wrap=True, highlight=False)


def _show_review(connection: http.client.HTTPSConnection, file: Path, console: Console) -> None:
    review = json.loads(file.read_text())
    pod = review["request"]["object"]
    number, _, title = file.stem.partition("-")
    console.print(f"\n[bold]{number}  {title.replace('-', ' ')}[/]  (pod {pod['metadata']['name']})")
    mutated = _post(connection, "/mutate/pods/strict", review)
    after = _patched(pod, mutated)
    for line in _differences(_leaves(pod), _leaves(after)):
        console.print(f"     {line}", soft_wrap=True, highlight=False)
    review["request"]["object"] = after
    validated = _post(connection, "/validate/pods/strict", review)
    for warning in dict.fromkeys((*mutated.get("warnings", ()), *validated.get("warnings", ()))):
        console.print(f"   [yellow]Warning:[/] {escape(warning)}", soft_wrap=True, highlight=False)
    console.print(f"   {_outcome(mutated, validated)}", soft_wrap=True, highlight=False)


def _post(connection: http.client.HTTPSConnection, path: str, review: Mapping[str, Any]) -> dict[str, Any]:
    connection.request("POST", f"{path}?timeout=3s", json.dumps(review), {"Content-Type": "application/json"})
    body = connection.getresponse().read()
    response: dict[str, Any] = json.loads(body)["response"]
    return response


def _patched(pod: dict[str, Any], response: Mapping[str, Any]) -> Any:
    if "patch" not in response:
        return pod
    return jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))


def _outcome(mutated: Mapping[str, Any], validated: Mapping[str, Any]) -> str:
    if not validated["allowed"]:
        message = escape(validated["status"]["message"]).replace("\n", "\n   ")
        return f"[red]refused[/]\n   {message}"
    return "[green]admitted as changed[/]" if "patch" in mutated else "[green]admitted as written[/]"


def _leaves(value: Any, path: tuple[str | int, ...] = ()) -> Leaves:
    """Return path -> value of all scalars; what stands on one line in YAML, too, stays whole."""
    if _is_flat(value, inside=bool(path) and isinstance(path[-1], int)):
        return {path: json.dumps(value)}
    if isinstance(value, dict):
        parts: Any = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    else:
        return {path: value}
    return {where: leaf for key, part in parts for where, leaf in _leaves(part, (*path, key)).items()}


def _is_flat(value: Any, *, inside: bool) -> bool:
    """Tell whether this is a list of scalars, or an object of scalars and such lists inside a list."""
    if isinstance(value, list):
        return not any(map(_is_nested, value))
    return inside and isinstance(value, dict) and all(_is_flat(part, inside=False) for part in value.values() if _is_nested(part))


def _is_nested(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _differences(before: Leaves, after: Leaves) -> Iterator[str]:
    for path in dict.fromkeys((*before, *after)):
        name = escape(field_path(path))
        if path not in after:
            yield f"[red]- {name}: {_short(before[path])}[/]"
        elif path not in before:
            yield f"[green]+ {name}: {_short(after[path])}[/]"
        elif before[path] != after[path]:
            yield f"[yellow]~ {name}: {_short(before[path])} -> {_short(after[path])}[/]"


def _short(value: Any) -> str:
    text = str(value)
    return escape(text if len(text) <= 100 else f"{text[:99]}…")


def _how_to_go_on(place: Place) -> str:
    base = f"https://127.0.0.1:{place.port}"
    file = next(iter(sorted(REVIEWS.glob("*.json"))))
    return f"""
The webhook listens on {base}, its metrics are on http://127.0.0.1:{place.metrics_port}/metrics.
Post one of these reviews again, or your own:

  curl --cacert {place.ca} -H 'Content-Type: application/json' \\
    --data @{file} {base}/mutate/pods/strict

What would become of the pods in a manifest, without a server: numalign explain -f FILE
(`make run` puts numalign into .venv/bin). Ctrl-C ends this one."""

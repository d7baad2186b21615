"""`numalign classes`: list node classes, show one, check files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.inputs import Exit, config_options, fail, load_policy, output_option, read_classes
from webhook.cli.output import emit, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from webhook.core.kubelet.machine import Cell
    from webhook.core.kubelet.node import NodeKubelet


@click.group("classes")
def command() -> None:
    """Node classes: list them, show one, check files."""


@command.command("list")
@config_options
@output_option()
def list_(policy_file: Path | None, class_paths: tuple[Path, ...], fmt: str) -> None:
    """List the node classes."""
    found = [_row(node) for node in _load(policy_file, class_paths)]
    heads = ("class", "NUMA\nnodes", "CPUs", "memory", "devices", "topology\npolicy", "CPU", "memory\nmanager")
    emit(found, fmt, lambda: [table(heads, [_cells(row)[: len(heads)] for row in found])])


@command.command("show")
@click.argument("name")
@config_options
@output_option()
@click.option("--file", "as_file", is_flag=True, help="Print the built-in class's file, to start one of your own from.")
def show(name: str, policy_file: Path | None, class_paths: tuple[Path, ...], fmt: str, as_file: bool) -> None:
    """Show what the NUMA nodes of one class leave to pods."""
    if as_file:
        click.echo(_file(name), nl=False)
        return
    nodes = {node.node_class.name: node for node in _load(policy_file, class_paths)}
    if name not in nodes:
        fail([f"no class is called {name!r}; there are {', '.join(nodes) or 'none'}"])
    data = _details(nodes[name])
    emit(data, fmt, lambda: _page(data))


@command.command("check")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@config_options
@output_option()
def check(paths: tuple[Path, ...], policy_file: Path | None, class_paths: tuple[Path, ...], fmt: str) -> None:
    """Check node class files: every error at once, those included for which a kubelet would not start."""
    loaded = read_classes((*paths, *class_paths), load_policy(policy_file))
    data = {
        "classes": [node.node_class.name for node in loaded.classes],
        "nodes": [name for name in loaded.inventory.nodes if name not in {node.node_class.name for node in loaded.classes}],
        "errors": [str(error) for error in loaded.errors],
        "warnings": [str(warning) for warning in loaded.warnings],
    }
    emit(data, fmt, lambda: _report(data))
    raise SystemExit(Exit.BAD_INPUT if loaded.errors else Exit.FITS)


def _load(policy_file: Path | None, class_paths: tuple[Path, ...]) -> tuple[NodeKubelet, ...]:
    loaded = read_classes(class_paths, load_policy(policy_file))
    if loaded.errors:
        fail(loaded.errors)
    return loaded.classes


def _file(name: str) -> str:
    from webhook.config.catalogue import catalog_directory  # noqa: PLC0415
    from webhook.config.load import builtin_names  # noqa: PLC0415

    if name not in builtin_names():
        fail([f"no built-in class is called {name!r}; there are {', '.join(builtin_names())}"])
    return (catalog_directory() / "classes" / f"{name}.yaml").read_text(encoding="utf-8")


def _report(data: dict[str, list[str]]) -> Iterator[RenderableType]:
    from rich.markup import escape  # noqa: PLC0415

    yield from (f"[red]error[/]   {escape(text)}" for text in data["errors"])
    yield from (f"[yellow]warning[/] {escape(text)}" for text in data["warnings"])
    if data["errors"]:
        yield "nothing is put in force while there are errors"
        return
    classes, nodes = data["classes"], data["nodes"]
    if classes or not nodes:
        yield f"{len(classes)} class{'' if len(classes) == 1 else 'es'} can be used{': ' if classes else ''}{', '.join(classes)}"
    if nodes:
        yield f"DRA devices of {len(nodes)} node{'' if len(nodes) == 1 else 's'} can be used: {', '.join(nodes)}"


def _row(node: NodeKubelet) -> dict[str, Any]:
    from webhook.core.quantities import human_bytes  # noqa: PLC0415

    machine, config = node.machine, node.config
    return {
        "name": node.node_class.name,
        "numaNodes": len(machine.cells),
        "cpus": machine.cpu_topology.cpus.bit_count(),
        "memory": human_bytes(machine.memory),
        "devices": {name: sum(group.count for group in groups) for name, groups in machine.devices.items()},
        "topologyPolicy": f"{config.topology_policy}/{config.topology_scope}",
        "cpuManager": "static" if config.cpu_static else "none",
        "memoryManager": "Static" if config.memory_static else "None",
        "kubernetes": f"1.{node.minor}",
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a class's line of the table, a device a line: names of resources are long."""
    return tuple(_text(value, between="\n") for value in row.values())


def _details(node: NodeKubelet) -> dict[str, Any]:
    from webhook.cli.numamap import ranges  # noqa: PLC0415
    from webhook.core.kubelet import masks  # noqa: PLC0415

    reserved = masks.ids(node.reserved_cpus)
    return {
        **_row(node),
        "selector": dict(node.node_class.selector),
        "reservedCPUs": ranges(reserved) if reserved else "",
        "leavesToPods": [_leaves(node, cell) for cell in node.machine.cells],
        "source": node.node_class.source,
    }


def _leaves(node: NodeKubelet, cell: Cell) -> dict[str, Any]:
    from webhook.core import supply, wording  # noqa: PLC0415
    from webhook.core.resource_names import CPU, MEMORY  # noqa: PLC0415

    pages = [name for name in node.memory_allocatable.get(cell.id, ()) if name != MEMORY]
    resources = (CPU, MEMORY, *pages, *node.machine.devices)
    offers = {name: supply.per_numa_node(node, name).get(cell.id) for name in resources}
    return {"numaNode": cell.id, **{name: wording.bare(name, amount) for name, amount in offers.items() if amount}}


def _page(data: dict[str, Any]) -> Iterator[RenderableType]:
    facts = {key: value for key, value in data.items() if key != "leavesToPods"}
    yield table(("", ""), [(key, _text(value)) for key, value in facts.items()])
    columns = list(dict.fromkeys(key for cell in data["leavesToPods"] for key in cell))
    rows = [[str(cell.get(column, "-")) for column in columns] for cell in data["leavesToPods"]]
    yield table(columns, rows, title="What each NUMA node leaves to pods")


def _text(value: Any, between: str = ", ") -> str:
    if isinstance(value, dict):
        return between.join(f"{key}: {each}" for key, each in value.items()) or "-"
    return str(value) if value not in ("", None) else "-"

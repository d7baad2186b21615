"""A map of one node: where each container of an admitted pod lands, NUMA node by NUMA node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from webhook.core import supply
from webhook.core.kubelet.machine import Cell
from webhook.core.kubelet.node import NodeKubelet
from webhook.core.quantities import NANO, human_bytes, value
from webhook.core.resource_names import CPU, MEMORY
from webhook.core.verdict import Placement, Verdict

_BAR = 20
_PANEL = 62
_FEW_NODES = 4
_MOST_PANELS = 8
_COLOURS = ("cyan", "magenta", "yellow", "blue", "green")


def draw(node: NodeKubelet, verdict: Verdict) -> RenderableType:
    """Return a panel per NUMA node with the containers on it, and a line for those in the node's shared CPU pool."""
    placed = list(verdict.placements.items())
    cells = _shown(node, [placement for _, placement in placed])
    panels = [_panel(node, cell, placed) for cell in cells]
    hidden = len(node.machine.cells) - len(cells)
    shared = [name for name, placement in placed if not placement.cpus]
    notes = [f"in the node's shared CPU pool, on any NUMA node: {', '.join(shared)}"] if shared else []
    notes += [f"{hidden} more NUMA node{'' if hidden == 1 else 's'} without any of it"] if hidden else []
    return Group(Columns(panels), *(Text(note, style="dim") for note in notes))


def _shown(node: NodeKubelet, placements: Sequence[Placement]) -> list[Cell]:
    """All NUMA nodes with CPUs while they are few, else only those in use."""
    used = [cell for cell in node.machine.cells if any(_touches(placement, cell) for placement in placements)]
    with_cpus = [cell for cell in node.machine.cells if cell.cpus or cell in used]
    return with_cpus if len(with_cpus) <= _FEW_NODES else used[:_MOST_PANELS]


def _touches(placement: Placement, cell: Cell) -> bool:
    on_devices = any(counts.get(cell.id) for counts in placement.devices.values())
    return on_devices or bool(placement.memory.get(cell.id)) or any(cell.cpus >> cpu & 1 for cpu in placement.cpus)


def _panel(node: NodeKubelet, cell: Cell, placed: Sequence[tuple[str, Placement]]) -> Panel:
    lines: list[Text] = []
    for index, (name, placement) in enumerate(placed):
        if _touches(placement, cell):
            lines.append(Text(name, style=f"bold {_COLOURS[index % len(_COLOURS)]}"))
            lines += _lines(node, cell, placement, _COLOURS[index % len(_COLOURS)])
    body = Group(*lines) if lines else Text("free", style="dim")
    return Panel(body, title=f"NUMA node {cell.id}", subtitle=_offer(node, cell), title_align="left", width=_PANEL)


def _offer(node: NodeKubelet, cell: Cell) -> str:
    cpus = supply.per_numa_node(node, CPU).get(cell.id)
    memory = supply.per_numa_node(node, MEMORY).get(cell.id)
    parts = [f"{value(cpus)} CPUs"] if cpus else []
    parts += [human_bytes(value(memory))] if memory else []
    for resource in node.machine.devices:
        count = value(supply.per_numa_node(node, resource).get(cell.id, 0))
        parts += [f"{count} {resource.rpartition('/')[2]}"] if count else []
    return "to pods: " + ", ".join(parts) if parts else "nothing of its own to give"


def _lines(node: NodeKubelet, cell: Cell, placement: Placement, colour: str) -> Iterator[Text]:
    cpus = [cpu for cpu in placement.cpus if cell.cpus >> cpu & 1]
    if cpus:
        whole = value(supply.per_numa_node(node, CPU).get(cell.id, 0))
        yield _bar("CPUs", len(cpus), whole, f"{len(cpus)}  ({ranges(cpus)})", colour)
    memory = placement.memory.get(cell.id, 0)
    if memory:
        whole = supply.per_numa_node(node, MEMORY).get(cell.id, 0) // NANO
        yield _bar("memory", memory, whole, human_bytes(memory), colour)
    for resource, counts in placement.devices.items():
        if counts.get(cell.id):
            yield Text(f"  {resource} ").append("■" * counts[cell.id], style=colour).append(f" {counts[cell.id]}")


def _bar(label: str, part: int, whole: int, text: str, colour: str) -> Text:
    filled = min(max(round(_BAR * part / whole), 1), _BAR) if whole else _BAR
    return Text(f"  {label:7}").append("█" * filled, style=colour).append("░" * (_BAR - filled), style="dim").append(f" {text}")


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as a Linux CPU list: `0-23,56-79`."""
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after != before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after != before + 1), numbers[-1]]
    return ",".join(str(start) if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True))

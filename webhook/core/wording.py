"""Amounts and lists in words, singular and plural right, the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from webhook.core.quantities import format_cpu, human_bytes, milli, value
from webhook.core.resource_names import CPU, HUGEPAGES, MEMORY, is_memory

WARNING_LENGTH = 119
"""KEP-1693 asks for warnings of at most 120 characters."""

_FEW = 3
_MANY = 4


def amount(resource: str, nano: int) -> str:
    """Return an amount with its noun: `60 CPUs`, `1 GPU`, `300Gi of memory`, `2 openshift.io/mlx`."""
    if resource == CPU:
        return f"{format_cpu(milli(nano))} {'CPU' if milli(nano) == 1000 else 'CPUs'}"
    if is_memory(resource):
        return f"{human_bytes(value(nano))} of {noun(resource)}"
    count = value(nano)
    name = noun(resource)
    return f"{count} {name}{'s' if name == 'GPU' and count != 1 else ''}"


def bare(resource: str, nano: int) -> str:
    """Return an amount without its noun: `60`, `300Gi`."""
    if resource == CPU:
        return format_cpu(milli(nano))
    return human_bytes(value(nano)) if is_memory(resource) else str(value(nano))


def noun(resource: str) -> str:
    """Return what a resource is called: vendors' GPUs are GPUs, other devices go by their resource name."""
    if resource in {CPU, MEMORY}:
        return {CPU: "CPU", MEMORY: "memory"}[resource]
    if resource.startswith(HUGEPAGES):
        return f"{resource.removeprefix(HUGEPAGES)} hugepages"
    return "GPU" if resource.endswith("/gpu") else resource


def joined(words: Sequence[str], *, last: str = "and") -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def some(words: Sequence[str], few: int = _FEW) -> str:
    """Return all words if they are few, else the first ones and how many more."""
    if len(words) <= few + 1:
        return joined(words)
    return f"{', '.join(words[:few])} and {len(words) - few} more"


def numa_nodes(there: Mapping[int, int], resource: str, verb: str, tail: str = "") -> str:
    """Return what each NUMA node has, equal ones together: `each NUMA node has 4`, `NUMA node 0 leaves 52 to pods, node 1 56`.

    Args:
        there: NUMA node -> nano units.
        resource: what they are amounts of.
        verb: `has` or `leaves`.
        tail: what follows the first amount, e.g. ` to pods`.
    """
    groups: dict[int, list[int]] = {}
    for cell, offer in sorted(there.items(), key=lambda pair: (-pair[1], pair[0]) if len(there) > _MANY else (0, pair[0])):
        groups.setdefault(offer, []).append(cell)
    if len(groups) == 1 and len(there) > 1:
        return f"each NUMA node {verb} {bare(resource, next(iter(groups)))}{tail}"
    (offer, cells), *rest = groups.items()
    plural = {"has": "have", "leaves": "leave"}[verb] if len(cells) > 1 else verb
    first = f"NUMA {nodes(cells)} {plural} {bare(resource, offer)}{tail}"
    return ", ".join([first, *(f"{nodes(others)} {bare(resource, less)}" for less, others in rest)])


def nodes(cells: Sequence[int]) -> str:
    """Return `node 3`, `nodes 1-7`, `nodes 1,3`."""
    runs: list[list[int]] = []
    for cell in cells:
        if runs and runs[-1][-1] == cell - 1:
            runs[-1].append(cell)
        else:
            runs.append([cell])
    text = ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"node{'' if len(cells) == 1 else 's'} {text}"


def shortened(text: str, length: int = WARNING_LENGTH) -> str:
    """Return the text on one line, cut at a word if it is too long."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:") + "…"

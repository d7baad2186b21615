"""Changes to a pod's resource fields that a fix proposes, as data. The pod itself is never touched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from webhook.core.containers import Container, Path, Pod, field_path
from webhook.core.edit import drop, put


@dataclass(frozen=True, slots=True)
class Change:
    """One resource of one container, now and as it would have to be.

    Attributes:
        container: its name.
        where: path of the container's object.
        fields: which of `requests` and `limits` change; the last one names the field for people.
        resource: the resource's name.
        present: the value as written; empty: the field is missing.
        value: the value that works; empty: leave the resource out.
        size: the relative size of the change, 0 to 1 and above.
        evens_out: it makes request and limit equal, where one was missing or lower; our own mutation does that, too.
        widens: it asks for more, so that as many NUMA nodes are needed as for the devices; nothing is given up.
    """

    container: str
    where: Path
    fields: tuple[str, ...]
    resource: str
    present: str
    value: str
    size: float
    evens_out: bool = False
    widens: bool = False

    @property
    def path(self) -> Path:
        """Return the path of the field to change."""
        return (*self.where, "resources", self.fields[-1], self.resource)

    @property
    def short_field(self) -> str:
        """Return the field within its container: `resources.limits[nvidia.com/gpu]`."""
        return field_path(("resources", self.fields[-1], self.resource))


def setting(container: Container, resource: str, value: str, size: float) -> Change:
    """Return the change that gives a container another amount of one resource, wherever it wrote one."""
    fields = tuple(field for field in ("requests", "limits") if resource in container.quantities(field)) or ("limits",)
    present = str(container.quantities(fields[-1]).get(resource, ""))
    return Change(container.name, container.path, fields, resource, present, value, size)


def merged(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes with those to the same amount made one: what was there first, what is wanted last, in all fields."""
    found: dict[tuple[Path, str], Change] = {}
    for change in changes:
        key = (change.where, change.resource)
        found[key] = _followed(found[key], change) if key in found else change
    return tuple(found.values())


def _followed(first: Change, second: Change) -> Change:
    """Return both changes as one. The second one says how much, and may change a request where the first filled in its limit."""
    fields = tuple(field for field in ("requests", "limits") if field in (*first.fields, *second.fields))
    return replace(second, fields=fields, present=first.present)


def applied(pod: Pod, changes: Iterable[Change]) -> Pod:
    """Return the pod with the changes made; everything else is shared with the original."""
    for change in changes:
        for field in change.fields:
            path = (*change.where, "resources", field, change.resource)
            pod = put(pod, path, change.value) if change.value else drop(pod, path)
    return pod

"""The pod in its shapes, whichever rules it is shaped by."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.core.containers import Pod
from webhook.core.shape.podlevel import applied_to_pod, pod_level_shapes
from webhook.core.shape.scene import Scene, is_pod_level
from webhook.core.shape.shapes import applied, shapes


def attempts(scene: Scene) -> Iterator[Pod]:
    """Yield the author's pod in each of its shapes, in order of least surprise."""
    if is_pod_level(scene.pod):
        yield from (applied_to_pod(scene.pod, amounts) for amounts in pod_level_shapes(scene))
    else:
        yield from (applied(scene.pod, shape) for shape in shapes(scene))

"""The ResourceSlices of a node class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError

from webhook.config.fields import Expect
from webhook.core.dra.devices import Device
from webhook.core.dra.slices import literal_devices, missing_slices, spec_problems


class SlicesField(Expect[tuple[Device, ...]]):
    """ResourceSlices of one node, whole or their specs alone; of each pool the highest generation counts, and has to be whole.

    What is missing cannot be told from what the node does not have, and claims would be refused for it.
    """

    expected = "a list of ResourceSlices, or of their specs"

    def convert(self, raw: Any) -> tuple[Device, ...]:
        """Convert; see `Expect`."""
        if not isinstance(raw, list):
            raise self.refuse(raw)
        specs = [each.get("spec", each) if isinstance(each, Mapping) else each for each in raw]
        errors: dict[int, list[str]] = {}
        for index, spec in enumerate(specs):
            for problem in spec_problems(spec):
                errors.setdefault(index, []).append(str(problem))
        if errors:
            raise ValidationError(dict[Any, Any](errors))
        if missing := list(missing_slices(specs)):
            raise ValidationError(missing)
        return literal_devices(specs)

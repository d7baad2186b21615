"""CEL selectors of DeviceClasses and claims, evaluated by Google's own library.

The library is imported when the first expression is evaluated, so that those who have no DRA devices do not load it. What
cel-go offers beyond the language (quantities, versions, cel.bind, optionals) is not there: an expression that uses it does not
compile here, and "cannot be told" is the answer. So it is for one that fails on a device: the allocator then gives up the pod.

Source: `dynamic-resource-allocation/cel/compile.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from webhook.core.dra.devices import Attribute, Device, Type
from webhook.core.memo import Memo

_REMEMBERED: Final = 65536
_DOMAINS: Final = re.compile(r"""device\.(attributes|capacity)\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\]""")
_LONGEST: Final = 10 * 1024

_Evaluate = Callable[[dict[str, Any]], Any]


class Selectors:
    """Evaluates selectors, and remembers the answers: devices are many, but mostly alike, and expressions are few."""

    def __init__(self) -> None:
        self._answers: Memo[bool | None] = Memo(_REMEMBERED)

    def __call__(self, expression: str, device: Device) -> bool | None:
        """Return whether `expression` holds for a device; None: cannot be told. Never raises."""
        key = (
            expression,
            device.driver,
            device.shared,
            *sorted((name, each.type, each.value) for name, each in device.attributes.items()),
        )
        return self._answers.get(key, lambda: _holds(expression, device))

    def fails(self, expression: str, device: Device) -> bool:
        """Tell whether `expression` compiles, and cannot be told all the same."""
        return len(expression) <= _LONGEST and _compiled(expression) is not None and self(expression, device) is None


def _holds(expression: str, device: Device) -> bool | None:
    evaluate = _compiled(expression) if len(expression) <= _LONGEST else None
    if evaluate is None:
        return None
    plain = _variables(device)
    answer = evaluate(plain)
    if answer is None:
        # A domain that a device knows nothing about is an empty map there, and no map at all here.
        answer = evaluate(_with_domains(plain, expression))
    return answer if isinstance(answer, bool) else None


@lru_cache(maxsize=1)
def _environment() -> Any:
    from cel_expr_python import cel  # noqa: PLC0415  50 MB on disk, for those with claims

    return cel.NewEnv(variables={"device": cel.Type.DYN})


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> _Evaluate | None:
    """Return what evaluates an expression, to None where it fails; None where it does not compile."""
    try:
        program = _environment().compile(expression)
    except (RuntimeError, ValueError, ImportError):
        return None

    def evaluate(device: dict[str, Any]) -> Any:
        try:
            answer = program.eval(data={"device": device}).value()
        except (RuntimeError, ValueError, TypeError):
            return None
        return answer if isinstance(answer, bool) else None

    return evaluate


def _variables(device: Device) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = {}
    for name, each in device.attributes.items():
        domain, _, identifier = name.partition("/")
        attributes.setdefault(domain, {})[identifier] = _value(each)
    capacity: dict[str, dict[str, Any]] = {}
    for name, quantity in device.capacity.items():
        domain, slash, identifier = name.partition("/")
        domain, identifier = (domain, identifier) if slash else (device.driver, name)
        capacity.setdefault(domain, {})[identifier] = {"quantity": quantity}
    return {
        "driver": device.driver,
        "allowMultipleAllocations": device.shared,
        "attributes": attributes,
        "capacity": capacity,
    }


def _value(attribute: Attribute) -> Any:
    """A version is an object of its own in cel-go, equal to no text; so it is here."""
    if attribute.type is Type.VERSION:
        return {"version": attribute.value}
    return list(attribute.value) if isinstance(attribute.value, tuple) else attribute.value


def _with_domains(variables: dict[str, Any], expression: str) -> dict[str, Any]:
    made = {**variables, "attributes": dict(variables["attributes"]), "capacity": dict(variables["capacity"])}
    for kind, double, single in _DOMAINS.findall(expression):
        made[kind].setdefault(double or single, {})
    return made

"""Fields and the base schema that the file schemas share: each says what it expected and what it got."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from marshmallow import EXCLUDE, Schema, ValidationError, fields, pre_load, validates_schema

from webhook.core.quantities import InvalidQuantityError, milli, parse, value

T = TypeVar("T")

REQUIRED: Final[dict[str, str | list[Any] | dict[Any, Any]]] = {"required": "is required", "null": "must not be null"}
"""For marshmallow's own fields."""

_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def got(raw: Any) -> str:
    """Return a value for the end of a message, cut to a readable length."""
    text = repr(raw)
    return text if len(text) <= 60 else text[:57] + "..."


def suggestion(word: Any, known: Iterable[str]) -> str:
    """Return `; did you mean X?`, or nothing where no known word is near."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.7)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


def is_qualified_name(name: str) -> bool:
    """Tell whether a text is a label key or resource name: an optional DNS domain, a slash, a name."""
    domain, slash, rest = name.rpartition("/")
    return bool(_LABEL_NAME.fullmatch(rest)) and (not slash or bool(_DOMAIN.fullmatch(domain)))


class Base(Schema):
    """A mapping of fields in which null is absent; unknown fields are left out."""

    expected = "a mapping of fields"

    class Meta:
        """Options of marshmallow."""

        unknown = EXCLUDE

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error_messages["type"] = f"expected {self.expected}"

    @pre_load
    def drop_nulls(self, data: Any, **_: Any) -> Any:
        """Treat null as absent, as the API server does."""
        return {key: item for key, item in data.items() if item is not None} if isinstance(data, Mapping) else data


class Strict(Base):
    """A mapping in which an unknown field is an error that names the nearest known one."""

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def refuse_unknown(self, _data: Any, original: Any, **_: Any) -> None:
        """Report every field that the schema does not have."""
        if not isinstance(original, Mapping):
            return
        known = [field.data_key or name for name, field in self.fields.items()]
        unknown = [key for key, item in original.items() if key not in known and item is not None]
        errors = {key: [f"is no known field{suggestion(key, known)}"] for key in unknown}
        if errors:
            raise ValidationError(errors)


class Expect(fields.Field[T], Generic[T]):
    """A field that converts a plain value, or says what it expected."""

    default_error_messages = {"required": "is required", "null": "must not be null"}  # noqa: RUF012 - marshmallow's form
    expected = "something else"

    def _deserialize(self, value: Any, _attr: str | None, _data: Any, **_: Any) -> T:  # type: ignore[override]
        return self.convert(value)

    def convert(self, raw: Any) -> T:
        """Return the converted value; raise `ValidationError` otherwise."""
        raise NotImplementedError

    def refuse(self, raw: Any) -> ValidationError:
        """Return the error for a value that is not what was expected."""
        return ValidationError(f"expected {self.expected}, got {got(raw)}")


class Text(Expect[str]):
    """A string, by default not empty."""

    expected = "a text"

    def __init__(self, expected: str = "", matches: Callable[[str], object] = bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.expected = expected or self.expected
        self._matches = matches

    def convert(self, raw: Any) -> str:
        """Convert; see `Expect`."""
        if not isinstance(raw, str) or not self._matches(raw):
            raise self.refuse(raw)
        return raw


class ObjectName(Text):
    """The name of a Kubernetes object."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("a name of lower-case letters, digits, '-' and '.'", _OBJECT_NAME.fullmatch, **kwargs)


class ResourceName(Text):
    """The name of a device resource."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("a resource name such as nvidia.com/gpu", is_device_resource, **kwargs)


def is_device_resource(name: str) -> bool:
    """Tell whether a text can name an extended resource."""
    return "/" in name and is_qualified_name(name)


class Choice(Expect[str]):
    """One of a few words."""

    def __init__(self, choices: Collection[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._choices = tuple(choices)
        self.expected = "one of " + ", ".join(self._choices)

    def convert(self, raw: Any) -> str:
        """Convert; see `Expect`."""
        if raw not in self._choices:
            raise ValidationError(f"expected {self.expected}, got {got(raw)}{suggestion(raw, self._choices)}")
        return str(raw)


class Flag(Expect[bool]):
    """true or false, unquoted."""

    expected = "true or false"

    def convert(self, raw: Any) -> bool:
        """Convert; see `Expect`."""
        if not isinstance(raw, bool):
            raise self.refuse(raw)
        return raw


class Count(Expect[int]):
    """A whole number within bounds."""

    def __init__(self, least: int = 0, most: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._least, self._most = least, most
        upper = f" and at most {most}" if most is not None else ""
        self.expected = f"a whole number, at least {least}{upper}"

    def convert(self, raw: Any) -> int:
        """Convert; see `Expect`."""
        if isinstance(raw, bool) or not isinstance(raw, int) or raw < self._least:
            raise self.refuse(raw)
        if self._most is not None and raw > self._most:
            raise self.refuse(raw)
        return raw


class Quantity(Expect[int]):
    """A Kubernetes quantity that is not negative; `unit` turns nano units into the wanted whole number, rounding up."""

    def __init__(self, unit: Callable[[int], int], example: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._unit = unit
        self.expected = f"a quantity such as {example}, not negative"

    def convert(self, raw: Any) -> int:
        """Convert; see `Expect`."""
        try:
            nano = parse(raw)
        except InvalidQuantityError:
            raise self.refuse(raw) from None
        if nano < 0:
            raise self.refuse(raw)
        return self._unit(nano)


class Bytes(Quantity):
    """An amount of memory, in bytes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(value, "512Gi", **kwargs)


class MilliCpu(Quantity):
    """An amount of CPU, in thousandths."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(milli, "500m or 2", **kwargs)


class Entries(Expect[dict[Any, T]], Generic[T]):
    """A mapping whose keys and values are each converted; errors stand at the key."""

    expected = "a mapping"

    def __init__(self, key: Expect[Any], value: Expect[T], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._key, self._value = key, value

    def convert(self, raw: Any) -> dict[Any, T]:
        """Convert; see `Expect`."""
        if not isinstance(raw, Mapping):
            raise self.refuse(raw)
        found: dict[Any, T] = {}
        errors: dict[Any, Any] = {}
        for name, item in raw.items():
            try:
                key = self._key.convert(name)
                if key in found:
                    raise ValidationError("stands here twice, written differently")  # noqa: TRY301
                found[key] = self._value.convert(item)
            except ValidationError as error:
                errors[name] = error.messages
        if errors:
            raise ValidationError(errors)
        return found


class Items(Expect[tuple[T, ...]], Generic[T]):
    """A list whose items are each converted; errors stand at the index."""

    expected = "a list"

    def __init__(self, item: Expect[T], *, least: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._item, self._least = item, least

    def convert(self, raw: Any) -> tuple[T, ...]:
        """Convert; see `Expect`."""
        if not isinstance(raw, list) or len(raw) < self._least:
            raise self.refuse(raw)
        found: list[T] = []
        errors: dict[Any, Any] = {}
        for index, item in enumerate(raw):
            try:
                found.append(self._item.convert(item))
            except ValidationError as error:
                errors[index] = error.messages
        if errors:
            raise ValidationError(errors)
        return tuple(found)


def labels(**kwargs: Any) -> Entries[str]:
    """Return a field for labels: key -> value."""
    key = Text("a label key such as nvidia.com/gpu.product", is_qualified_name)
    item = Text("a label value: at most 63 letters, digits, '-', '_' or '.', in quotes where YAML reads a number", is_label_value)
    return Entries(key, item, **kwargs)


def is_label_value(text: str) -> bool:
    """Tell whether a text can be a label's value."""
    return not text or _LABEL_NAME.fullmatch(text) is not None


def device_counts(least: int = 0, **kwargs: Any) -> Entries[int]:
    """Return a field for device resource -> count."""
    return Entries(ResourceName(), Count(least), **kwargs)


def flatten(messages: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield path and text of each message in marshmallow's nested mappings."""
    if isinstance(messages, Mapping):
        for key, inner in messages.items():
            step = key if isinstance(key, int) else str(key)
            yield from flatten(inner, path if step == "_schema" else (*path, step))
    elif isinstance(messages, (list, tuple)):
        for inner in messages:
            yield from flatten(inner, path)
    else:
        yield path, str(messages)

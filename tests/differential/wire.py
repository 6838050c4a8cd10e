"""Records of labelled topics and delivered JSON as docs/architecture.md describes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from catalog.schema import AttributeType, Schema, Type, is_comparable
from tests.oracle import nested_values as nested
from tests.oracle.text import double_text
from tests.oracle.values import Items, Named, Value, microseconds, timestamp

_SEPARATOR, _NULL = "\x1f", "\x1e"


def encode(values: tuple[Value, ...]) -> str:
    """A labelled record's value."""
    return _SEPARATOR.join(_text(value) for value in values)


def _text(value: Value) -> str:
    match value:
        case None:
            return _NULL
        case bool():
            return str(value).lower()
        case float():
            return double_text(value)
        case datetime():
            return str(microseconds(value))
        case Items() | Named():
            return nested.to_json(value)
        case _:
            return str(value)


_READ: dict[Type, Callable[[str], Value]] = {
    Type.BOOLEAN: lambda text: {"true": True, "false": False}[text],
    Type.BIGINT: int,
    Type.DOUBLE: float,
    Type.STRING: str,
    Type.TIMESTAMP: lambda text: timestamp(int(text)),
}


def decode(text: str, schema: Schema) -> tuple[Value, ...]:
    """The values of a labelled record."""
    pairs = zip(text.split(_SEPARATOR), schema.attributes, strict=True)
    return tuple(None if part == _NULL else _read(part, a.type) for part, a in pairs)


def _read(text: str, kind: AttributeType) -> Value:
    if isinstance(kind, Type):
        return _READ[kind](text)
    value = nested.from_json(json.loads(text), kind)
    # A double may be written in several ways.
    assert not is_comparable(kind) or nested.to_json(value) == text, text
    return value


def decode_json(text: str, schema: Schema) -> tuple[Value, ...]:
    """The values of a delivered record, which holds exactly the schema's attributes."""
    held: dict[str, Any] = json.loads(text)
    assert tuple(held) == schema.names, text
    return tuple(_from_json(held[a.name], a.type) for a in schema.attributes)


_JSON: dict[Type, type] = {Type.BOOLEAN: bool, Type.BIGINT: int, Type.DOUBLE: float}


def _from_json(value: Any, kind: AttributeType) -> Value:
    if value is None:
        return None
    if not isinstance(kind, Type):
        return nested.from_json(value, kind)
    given: type = type(value)
    assert given is _JSON.get(kind, str), f"{value!r} for a {kind}"
    if kind is Type.TIMESTAMP:
        return datetime.strptime(str(value), "%Y-%m-%dT%H:%M:%S.%fZ")  # noqa: DTZ007
    plain: Value = value
    return plain

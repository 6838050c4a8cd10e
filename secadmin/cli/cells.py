"""CSV cells as the JSON values of a stream's attributes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal

from catalog.errors import InvalidInput
from catalog.record_format import TimeFormat
from catalog.schema import AttributeType, Schema, Type
from secadmin.cli.tuple_rules import time_us

_WHOLE = re.compile(r"[+-]?[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?")
_EPOCH_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,9})?")
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
Value = bool | int | float | str


def convert_cell(text: str, kind: Type) -> Value:
    """The cell as a value of the type. Raises ValueError with the expected form.

    >>> convert_cell("2026-01-31 12:00", Type.TIMESTAMP)
    '2026-01-31T12:00:00.000000Z'
    """
    return _READERS[kind](text if kind is Type.STRING else text.strip())


def _boolean(text: str) -> bool:
    try:
        return _TRUTH[text.lower()]
    except KeyError:
        raise ValueError("is not true or false") from None


def _bigint(text: str) -> int:
    # Python's int also accepts underscores and digits of other scripts.
    if not _WHOLE.fullmatch(text) or len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError("is not a whole number of 64 bits")
    return int(text)


def _double(text: str) -> float:
    try:
        number = math.nan if "_" in text else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("is not a finite number")
    return number


def _timestamp(text: str) -> str:
    wrong = ValueError("is not a time as 2026-01-31T12:00:00Z")
    if not _DATE.fullmatch(text):
        raise wrong
    try:
        at = datetime.fromisoformat(text)
        # A time without a zone is UTC, as everywhere on the platform.
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise wrong from None
    return at.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


_READERS: Mapping[Type, Callable[[str], Value]] = {
    Type.BOOLEAN: _boolean,
    Type.BIGINT: _bigint,
    Type.DOUBLE: _double,
    Type.STRING: str,
    Type.TIMESTAMP: _timestamp,
}


def _nested(text: str) -> str:
    """The cell of an array, a map or a structure, which is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError('is not JSON, such as [1, 2] or {"name": 1}') from None
    return text


def check_header(header: list[str], schema: Schema) -> None:
    """Raise InvalidInput for a column that is unknown, there twice, or missing."""
    for name in header:
        if schema.get(name) is None:
            known = ", ".join(schema.names)
            raise InvalidInput(f"column {name[:80]!r} is not an attribute; there are: {known}")
    if len(set(header)) != len(header):
        raise InvalidInput("a column is twice in the header")
    missing = [a.name for a in schema.attributes if a.required and a.name not in header]
    if missing:
        raise InvalidInput(f"required attributes have no column: {', '.join(missing)}")


def record_of(cells: list[str], header: list[str], schema: Schema, written: TimeFormat) -> bytes:
    """A row as a record. An empty cell is an absent attribute. Raises ValueError with its name."""
    if len(cells) != len(header):
        raise ValueError(f"{len(cells)} cells under {len(header)} columns")
    fields: list[str] = []
    for attribute, text in zip(map(schema.get, header), cells, strict=True):
        if attribute is None:
            continue  # check_header has refused such a column
        name = attribute.name
        if text != "":
            try:
                value = _json_of(text, attribute.type, written)
            except ValueError as error:
                raise ValueError(f"{name}: {text[:40]!r} {error}") from None
            fields.append(f"{json.dumps(name)}:{value}")
        elif attribute.required:
            raise ValueError(f"{name} is required and empty")
    return f"{{{','.join(fields)}}}".encode()


def _json_of(text: str, kind: AttributeType, written: TimeFormat) -> str:
    if not isinstance(kind, Type):
        return _nested(text)
    if kind is not Type.TIMESTAMP or written is TimeFormat.ISO:
        return json.dumps(convert_cell(text, kind), ensure_ascii=False)
    if _EPOCH_NUMBER.fullmatch(number := text.strip()):
        return number
    # A time in words, in a stream of numbers.
    at = convert_cell(text, kind)
    return format(Decimal(time_us(at, TimeFormat.ISO)) / written.micros, "f")

"""The rules for the records of a stream. Ingest accepts a record that has no mistake here.

docs/records.md has the rules. Ingest checks them with expressions of Spark. The two parsers may
differ for very deep or very long parts; there, this one accepts less.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from catalog.errors import InvalidInput
from catalog.record_format import USUAL, RecordFormat, TimeFormat, UnknownFields
from catalog.schema import (
    ArrayType,
    Attribute,
    AttributeType,
    MapType,
    Schema,
    StructType,
    Type,
    parse_type,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST_US = (datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC) - _EPOCH) // timedelta(microseconds=1)
_ISO_8601 = re.compile(
    r"(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d):(\d\d)(?:\.(\d{1,9}))?"
    r"(?:(Z)|([+-])(\d\d):?([0-5]\d))",
    re.ASCII,
)
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?", re.ASCII)
_FARTHEST_ZONE = 18 * 60
_LIKE = "write it as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00"
_DIGITS, _NAME, _DEPTH = 1_000, 50_000, 400
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# These characters separate fields inside the platform.
_SEPARATORS = ("\x1e", "\x1f")
_SHOWN = 64


# A time inside a nested value takes so many bytes more inside the platform than as a number.
_TIME_GROWS, _LONGEST = 30, 4 * 1024 * 1024 - 64 * 1024 - 1024 * 1024


class _Mistake(ValueError):
    """A mistake in a record, in words. `path` says where in a nested value it is."""

    def __init__(self, words: str, path: str = "") -> None:
        super().__init__(words)
        self.path = path


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number with a fraction or an exponent, as the text has it."""

    text: str


@dataclass(frozen=True, slots=True)
class TupleRules:
    """The rules for the records of one stream."""

    schema: Schema
    written: RecordFormat
    event_time: str | None = None
    max_ahead_ms: int | None = None
    max_bytes: int | None = None

    @classmethod
    def of_answer(cls, answer: Mapping[str, Any]) -> TupleRules:
        """The rules in the service's answer about a stream. Raises InvalidInput."""
        attributes = (
            Attribute(a["name"], parse_type(a["type"]), a.get("required", False))
            for a in answer["attributes"]
        )
        own = (answer.get(name) for name in ("event_time", "max_ahead_ms", "max_bytes"))
        return cls(Schema(tuple(attributes)), _format_of(answer), *own)

    def mistake_in(self, record: bytes, now: datetime) -> str:
        """The mistake in the record, or "" if it is a tuple of the stream."""
        try:
            self._check(record, now)
        except _Mistake as mistake:
            return str(mistake)
        return ""

    def _check(self, record: bytes, now: datetime) -> None:
        if self.max_bytes is not None and len(record) > self.max_bytes:
            raise _Mistake(f"has {len(record)} bytes, and the stream takes {self.max_bytes}")
        fields = _parsed(record)
        for name in fields:
            known = self.schema.get(name) is not None
            if not known and self.written.unknown_fields is UnknownFields.QUARANTINE:
                raise _Mistake(f"{name[:_SHOWN]}: unknown field")
        for attribute in self.schema.attributes:
            value = fields.get(attribute.name)
            try:
                self._check_value(attribute, value, now)
            except _Mistake as mistake:
                raise _Mistake(f"{attribute.name}{mistake.path}: {mistake}") from None

    def _check_value(self, attribute: Attribute, value: Any, now: datetime) -> None:
        if value is None:
            if attribute.required:
                raise _Mistake("required, and null or absent")
            if attribute.name == self.event_time:
                raise _Mistake("null, but it is the event time")
            return
        _check_type(attribute.type, value, self.written)
        if not isinstance(attribute.type, Type):
            longest = _TIME_GROWS * _times_in(attribute.type, value)
            if longest > _LONGEST:
                raise _Mistake("too many times inside")
        if attribute.type is Type.TIMESTAMP:
            micros = time_us(value, self.written.times)
            if attribute.name == self.event_time and self.max_ahead_ms is not None:
                latest = (now - _EPOCH) // timedelta(milliseconds=1) + self.max_ahead_ms
                if micros // 1000 > latest:
                    raise _Mistake(f"more than {self.max_ahead_ms / 1000:g} s ahead of now")


def _format_of(answer: Mapping[str, Any]) -> RecordFormat:
    try:
        return RecordFormat(
            times=TimeFormat(answer.get("time_format", USUAL.times)),
            unknown_fields=UnknownFields(answer.get("unknown_fields", USUAL.unknown_fields)),
        )
    except ValueError:
        raise InvalidInput(
            "the stream's records are written in a way that this command does not know; update it"
        ) from None


def _parsed(record: bytes) -> dict[str, Any]:
    try:
        text = record.decode()
    except UnicodeDecodeError as error:
        raise _Mistake(f"not UTF-8 at byte {error.start + 1}") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_once,
            parse_constant=_no_constant,
            parse_int=lambda digits: int(_bounded(digits)),
            parse_float=lambda digits: WrittenNumber(_bounded(digits)),
        )
    except json.JSONDecodeError as error:
        place = len(text[: error.pos].encode()) + 1
        raise _Mistake(f"not one JSON object at byte {place}: {error.msg}") from None
    except RecursionError:
        raise _Mistake("nested too deeply") from None
    if not isinstance(value, dict):
        raise _Mistake("is not a JSON object")
    _check_depth(value)
    if _SURROGATE.search(text):
        for name, part in value.items():
            _check_whole(name, part)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _Mistake(f"{name[:_SHOWN]}: given twice")
        if len(name) >= _NAME:
            raise _Mistake(f"a name of {_NAME} characters or more")
        found[name] = value
    return found


def _no_constant(name: str) -> Any:
    raise _Mistake(f"{name} is not JSON; leave the field out, or write null")


def _bounded(digits: str) -> str:
    if len(digits) >= _DIGITS:
        raise _Mistake(f"a number of {_DIGITS} digits or more")
    return digits


def _check_depth(value: dict[str, Any]) -> None:
    level: list[Any] = [value]
    for _ in range(_DEPTH):
        inner = [list(v.values()) if isinstance(v, dict) else v for v in level]
        level = [v for items in inner for v in items if isinstance(v, (dict, list))]
        if not level:
            return
    raise _Mistake("nested too deeply")


def _check_whole(name: str, value: Any) -> None:
    try:
        json.dumps([name, value], ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        shown = name.encode("utf-8", "replace").decode()[:_SHOWN]
        raise _Mistake(f"{shown}: half a surrogate pair") from None


def _check_type(kind: AttributeType, value: Any, written: RecordFormat) -> None:
    match kind:
        case ArrayType(inner) if isinstance(value, list):
            for place, each in enumerate(value, start=1):
                _check_inside(f"[{place}]", inner, each, written)
        case MapType(inner) if isinstance(value, dict):
            for key, each in value.items():
                if any(mark in key for mark in _SEPARATORS):
                    raise _Mistake("a key holds the character U+001E or U+001F")
                _check_inside(f"['{key[:_SHOWN]}']", inner, each, written)
        case StructType(fields) if isinstance(value, dict):
            known = {each.name: each.type for each in fields}
            strict = written.unknown_fields is UnknownFields.QUARANTINE
            for name, each in value.items():
                if name in known:
                    _check_inside(f".{name}", known[name], each, written)
                elif strict:
                    raise _Mistake("unknown field", f".{name[:_SHOWN]}")
        case Type():
            _check_plain(kind, value, written.times)
        case _:
            raise _Mistake(f"expected {_in_words(kind, written.times)}, found {_found(value)}")


def _check_inside(place: str, kind: AttributeType, value: Any, written: RecordFormat) -> None:
    """Check a part of a nested value, which may be null."""
    if value is None:
        return
    try:
        _check_type(kind, value, written)
        if kind is Type.TIMESTAMP:
            time_us(value, written.times)
    except _Mistake as mistake:
        raise _Mistake(str(mistake), place + mistake.path) from None


def _times_in(kind: AttributeType, value: Any) -> int:
    """How many times there are in a value that is right."""
    match kind:
        case Type.TIMESTAMP:
            return 1
        case ArrayType(inner) if value is not None:
            return sum(_times_in(inner, each) for each in value)
        case MapType(inner) if value is not None:
            return sum(_times_in(inner, each) for each in value.values())
        case StructType(fields) if value is not None:
            return sum(_times_in(each.type, value.get(each.name)) for each in fields)
        case _:
            return 0


def _check_plain(kind: Type, value: Any, written: TimeFormat) -> None:
    match kind:
        case Type.BOOLEAN:
            right = isinstance(value, bool)
        case Type.BIGINT:
            right = type(value) is int
            if right and not -(2**63) <= value < 2**63:
                raise _Mistake("out of range of 64 bits")
        case Type.DOUBLE:
            right = _is_number(value)
            if right and not _is_finite(value):
                raise _Mistake("out of range of a double")
        case Type.STRING:
            right = isinstance(value, str)
            if right and any(mark in value for mark in _SEPARATORS):
                raise _Mistake("holds the character U+001E or U+001F")
        case Type.TIMESTAMP:
            right = isinstance(value, str) if written is TimeFormat.ISO else _is_number(value)
    if not right:
        raise _Mistake(f"expected {_in_words(kind, written)}, found {_found(value)}")


def _is_number(value: Any) -> bool:
    return type(value) in {int, WrittenNumber}


def _is_finite(number: int | WrittenNumber) -> bool:
    try:
        return math.isfinite(float(number.text if isinstance(number, WrittenNumber) else number))
    except OverflowError:
        return False


def _in_words(kind: AttributeType, written: TimeFormat) -> str:
    if not isinstance(kind, Type):
        return "array" if isinstance(kind, ArrayType) else "object"
    if kind is not Type.TIMESTAMP:
        return str(kind)
    return f"timestamp as a {'string' if written is TimeFormat.ISO else 'number'} ({written})"


def _found(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "number"
        case WrittenNumber():
            return "number with a fraction or an exponent"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def time_us(value: Any, written: TimeFormat) -> int:
    """A time of a record in microseconds since 1970 UTC. Raises ValueError with the mistake.

    `value` is a str for ISO 8601, else an int or a WrittenNumber.
    """
    micros = _iso_us(value) if written is TimeFormat.ISO else _number_us(value, written)
    if not _FIRST_US <= micros <= _LAST_US:
        raise _Mistake("outside the years 0001 to 9999 (UTC)")
    return micros


def _iso_us(text: str) -> int:
    found = _ISO_8601.fullmatch(text.upper()) if text.isascii() else None
    if found is None:
        raise _Mistake(f"not a time in ISO 8601 with a zone; {_LIKE}")
    minute, second, fraction, _, sign, hours, minutes = found.groups()
    if second == "60":
        raise _Mistake("a leap second, which is no time")
    offset = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1) if sign else 0
    try:
        at = datetime.fromisoformat(f"{minute}:{second}").replace(tzinfo=UTC)
    except ValueError:
        raise _Mistake("no such time: the day or the second does not exist") from None
    if abs(offset) > _FARTHEST_ZONE:
        raise _Mistake("no such time: the zone does not exist")
    micros = int((fraction or "").ljust(6, "0")[:6])
    return (at - _EPOCH) // timedelta(microseconds=1) + micros - offset * 60_000_000


def _number_us(number: int | WrittenNumber, written: TimeFormat) -> int:
    text = number.text if isinstance(number, WrittenNumber) else str(number)
    if not _NUMBER.fullmatch(text):
        raise _Mistake("a number of a time has no exponent, and nine digits behind the point")
    return math.floor(Decimal(text) * written.micros)

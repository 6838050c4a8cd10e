"""Constants: integers of 64 bits, doubles, strings, TIMESTAMP '2026-01-31 12:00:00'."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from catalog.errors import InvalidInput, Position
from catalog.schema import Type
from secadmin.languages.typed import Typed, literal

_INTEGER = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_MAX_DIGITS = 400
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?Z?)?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def number(digits: str, position: Position | None, *, negative: bool = False) -> Typed:
    """Read a number: a BIGINT, or a DOUBLE if it has a point or an exponent.

    Raises InvalidInput if it does not fit. The sign is part of the number, because the smallest
    BIGINT has no positive counterpart.
    """
    sign = -1 if negative else 1
    if len(digits) > _MAX_DIGITS or not _DECIMAL.fullmatch(digits):
        raise InvalidInput(f"cannot read the number {digits[:40]!r}", position)
    if _INTEGER.fullmatch(digits):
        whole = sign * int(digits)
        if not -(2**63) <= whole < 2**63:
            raise InvalidInput("the number does not fit 64 bits; write it with .0", position)
        return literal(whole, Type.BIGINT, position)
    value = sign * float(digits)
    if not math.isfinite(value):
        raise InvalidInput("the number does not fit a double", position)
    return literal(value, Type.DOUBLE, position)


def timestamp(text: str, position: Position | None) -> Typed:
    """Read a time in UTC; the value is in microseconds since 1970. Raises InvalidInput.

    >>> timestamp("1970-01-01 00:00:01", None).expression.value
    1000000
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError(text)
        parts = [int(part or 0) for part in match.groups()[:6]]
        micros = int((match[7] or "").ljust(6, "0"))
        moment = datetime(*parts, micros, tzinfo=UTC)  # type: ignore[arg-type,misc]
    except ValueError:
        raise InvalidInput(
            "write a time as TIMESTAMP '2026-01-31 12:00:00', UTC", position
        ) from None
    return literal((moment - _EPOCH) // timedelta(microseconds=1), Type.TIMESTAMP, position)

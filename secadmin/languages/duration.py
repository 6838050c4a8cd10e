"""Durations in query texts, in milliseconds: SQL's INTERVAL '5' MINUTE, and 5s, 1h, 1d."""

from __future__ import annotations

import re

from catalog.errors import InvalidInput, Position
from catalog.plan_rules import MAX_WINDOW_MS

_UNITS_MS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
}
_SUFFIXES_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AMOUNT = re.compile(r"[0-9]{1,15}")
_SHORT = re.compile(r"([0-9]{1,15})(ms|[smhd]?)")


def interval_ms(amount: str, unit: str, position: Position | None = None) -> int:
    """The length of `INTERVAL '<amount>' <unit>` in milliseconds. Raises InvalidInput.

    >>> interval_ms("5", "MINUTE")
    300000
    """
    factor = _UNITS_MS.get(unit.lower().removesuffix("s"))
    if factor is None:
        known = ", ".join(_UNITS_MS).upper()
        raise InvalidInput(f"unknown unit {unit[:20]!r} of an interval; use {known}", position)
    if not _AMOUNT.fullmatch(amount):
        raise InvalidInput("an interval is a whole number, as in INTERVAL '5' MINUTE", position)
    return limited_ms(int(amount) * factor, position)


def short_ms(text: str, position: Position | None = None) -> int:
    """The length of a duration in milliseconds. The suffix is ms, s, m, h or d; none means ms.

    Raises InvalidInput.

    >>> short_ms("5s"), short_ms("250")
    (5000, 250)
    """
    match = _SHORT.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"{text[:20]!r} is not a duration; write 500 (milliseconds), 5s, 10m, 1h or 1d",
            position,
        )
    return limited_ms(int(match[1]) * _SUFFIXES_MS[match[2]], position)


def limited_ms(length: int, position: Position | None) -> int:
    """The length itself. Raises InvalidInput if it is longer than any window may be."""
    if length > MAX_WINDOW_MS:
        raise InvalidInput("a duration is at most 400 days", position)
    return length

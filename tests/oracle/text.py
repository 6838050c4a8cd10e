"""Strings and what stands in them: patterns, and numbers that are read or written."""

from __future__ import annotations

import re
from decimal import Decimal

# White space and control characters of ASCII.
_AROUND = "".join(map(chr, range(0x21)))
_BIGINT = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def like(text: str, pattern: str) -> bool:
    """Whether all of the text fits: % stands for any characters, _ for one, others for themselves.

    There is no way to write a % that stands for itself.
    """
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def to_bigint(value: float | str) -> int | None:
    """A number without its fraction; digits, perhaps with a sign and white space around."""
    if not isinstance(value, str):
        return int(value)
    text = value.strip(_AROUND)
    return int(text) if _BIGINT.fullmatch(text) else None


def to_double(value: float | str) -> float | None:
    """A number; a decimal text, perhaps with an exponent and white space around."""
    if not isinstance(value, str):
        return float(value)
    text = value.strip(_AROUND)
    return float(text) if _DOUBLE.fullmatch(text) else None


def double_text(value: float) -> str:
    """0.001 to 10,000,000 as 12.5; outside as 1.25E-4: the shortest digits that tell the value."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return format(Decimal(repr(value)), "f") if value % 1 else f"{value:.1f}"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = (str(digit) for digit in digits)
    power = int(exponent) + len(rest)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{power}"

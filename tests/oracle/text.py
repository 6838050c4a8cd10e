"""Strings and what is in them: patterns, and numbers that are read or written."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

# White space and control characters of ASCII.
_AROUND = "".join(map(chr, range(0x21)))
_BIGINT = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def like(text: str, pattern: str) -> bool:
    """Whether all of the text fits: % stands for any characters, _ for one, others for themselves.

    There is no way to write a % that stands for itself.
    """
    # How much of the pattern may be behind us: all possible places at once.
    places = _past_any({0}, pattern)
    for character in text:
        stay = {p for p in places if pattern[p : p + 1] == "%"}
        step = {p + 1 for p in places if pattern[p : p + 1] in ("_", character)}
        places = _past_any(stay | {p for p in step if pattern[p - 1] != "%"}, pattern)
    return len(pattern) in places


# What a backslash and a letter stand for in a regular expression: ASCII alone.
_SETS = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\t\n\f\r "}


def found(text: str, pattern: str) -> bool:
    """Whether a part of the text fits the regular expression."""
    return re.search(_regular(pattern), text) is not None


def group(number: int) -> Callable[[str, str], str | None]:
    """What the group took of the first part that fits; nothing taken is an empty text."""

    def call(text: str, pattern: str) -> str | None:
        first = re.search(_regular(pattern), text)
        return None if first is None else first[number] or ""

    return call


def _regular(pattern: str) -> str:
    """The pattern as Python reads it, for which $ may also be before a last new line."""
    parts, inside, at = [], False, 0
    while at < len(pattern):
        each = pattern[at]
        if each == "\\":
            at += 1
            parts.append(_escaped(pattern[at], inside=inside))
        elif each == "$" and not inside:
            parts.append(r"\Z")
        else:
            parts.append(each)
            inside = each == "[" or (inside and each != "]")
        at += 1
    return "".join(parts)


def _escaped(letter: str, *, inside: bool) -> str:
    if letter in _SETS:
        return _SETS[letter] if inside else f"[{_SETS[letter]}]"
    if letter.lower() in _SETS:
        return f"[^{_SETS[letter.lower()]}]"
    return "\\" + letter


def caseless(text: str) -> str:
    """The text with one letter for both cases, character by character: what has no single letter in
    the other case is itself."""
    return "".join(_caseless(each) for each in text)


def _caseless(letter: str) -> str:
    upper = letter.upper()
    # Only the Turkish capital I with a dot has more than one letter in lower case.
    return (upper if len(upper) == 1 else letter).lower()[0]


def _past_any(places: set[int], pattern: str) -> set[int]:
    found = set(places)
    for place in sorted(places):
        following = place
        while pattern[following : following + 1] == "%":
            following += 1
            found.add(following)
    return found


# What a record takes: 4 MiB less 64 KiB.
LONGEST = 4_128_768


def bounded(make: Callable[..., str], times: int) -> Callable[..., str | None]:
    """`make`, with NULL where `times` the arguments' bytes are more than a text may have."""

    def call(*texts: str) -> str | None:
        return make(*texts) if times * sum(len(t.encode()) for t in texts) <= LONGEST else None

    return call


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

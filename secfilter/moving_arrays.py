"""Arrays of a group's values, as texts in the held form (`secfilter.nested`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from catalog.aggregates import MAX_COLLECTED_BYTES, Collecting
from catalog.functions import MAX_TEXT_BYTES
from catalog.schema import AttributeType, Type
from secfilter.lab import NULL_MARK
from secfilter.moving_values import Value, text_of

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
_LAST_YEAR = 9999
# After so many years the days are the same again.
_YEARS, _CYCLE_US = 400, 146_097 * 86_400_000_000


def array_form(array: Collecting, values: Sequence[Value], element: AttributeType) -> str | None:
    """The array of the values, which are in the order of their tuples, and none is NULL.

    It is None if a value is too long, or the array is longer than any record.
    """
    if any(len(each.encode()) > MAX_COLLECTED_BYTES for each in values if isinstance(each, str)):
        return None
    chosen = list(set(values)) if array.distinct else list(values)
    if array.distinct or array.greatest:
        chosen.sort(reverse=array.greatest)
    form = f"[{','.join(_json(each, element) for each in chosen[: array.most])}]"
    return form if len(form.encode()) <= MAX_TEXT_BYTES else None


def _json(value: Value, type_: AttributeType) -> str:
    """A value as JSON. A nested value is JSON already."""
    if type_ is Type.TIMESTAMP:
        return f'"{time_text(int(value))}"'
    if type_ is Type.STRING:
        return f'"{_ESCAPED.sub(_escape, str(value))}"'
    text = text_of(value)
    return "null" if text == NULL_MARK else text


def time_text(time_us: int) -> str:
    """A time as Spark writes it in results: a year that has not four digits has a sign.

    The edge of a window may be before year 1 (in year 0), or behind year 9999.
    """
    cycles, within_us = divmod(time_us, _CYCLE_US)
    at = _EPOCH + timedelta(microseconds=within_us)
    year = at.year + cycles * _YEARS
    sign = "-" if year < 0 else "+" if year > _LAST_YEAR else ""
    return f"{sign}{abs(year):04}{at.isoformat(timespec='microseconds')[4:]}Z"


def _escape(found: re.Match[str]) -> str:
    letter = found[0]
    return _SHORT.get(letter, f"\\u{ord(letter):04X}")

"""A quick reading of JSON records of the usual form, at a fraction of what the strict one costs.

A regular expression says whether a record is exactly one object with the schema's fields, in the
schema's order, and nothing in it that needs interpreting: no escapes, no exponents, no number that
could be out of range, no byte that is not UTF-8. What it matches it takes apart, into texts
(`secfilter.texts`). All else is left to the strict reading (`secfilter.strict_json`), which says
the same of every record that is read here.
"""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.record_format import TimeFormat
from catalog.schema import Attribute, Schema, Type
from secfilter.lab import SEPARATOR

_BLANKS = r"[ \t\n\r]*"
# One by one: as a range they would take half as long again.
_CONTROLS = "".join(rf"\x{code:02x}" for code in range(0x20))
# Each with one group, which is never empty. A negative zero is not among them: read as a decimal
# it has no sign.
_VALUES: dict[Type, str] = {
    Type.BOOLEAN: "(true|false)",
    Type.BIGINT: "(0|-?[1-9][0-9]{0,17})",
    Type.DOUBLE: r"((?:0|-?[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?+)",
    # With the opening quotation mark (`secfilter.texts`). Java reads U+FFFD, which may as well be
    # in the record itself, where bytes are not UTF-8.
    Type.STRING: rf'("[^"\\{_CONTROLS}\uFFFD]*)"',
}
_NUMBER_OF_TIME = r"(-?[1-9][0-9]{0,17}(?:\.[0-9]{1,9})?+)"
_TIMES: dict[TimeFormat, str] = dict.fromkeys(TimeFormat, _NUMBER_OF_TIME) | {
    # Without the Z: making a zone of it would take longer than reading the time.
    TimeFormat.ISO: (
        r'"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?+'
        r'(?:(?=Z")|[+-][0-9]{2}:[0-9]{2}(?=")))Z?+"'
    )
}


def taken_apart(text: Column, schema: Schema, written: TimeFormat, *, blanks: bool) -> Column:
    """The values of a record of the usual form, each behind U+001F; or the text unchanged.

    To look for blanks between the record's parts takes a third of the time, and most often there
    are none: try without `blanks` first.
    """
    values = "".join(f"{SEPARATOR}${n}" for n in range(1, len(schema.attributes) + 1))
    pattern = _pattern(schema, written, _BLANKS if blanks else "")
    return fn.regexp_replace(text, fn.lit(pattern), fn.lit(values))


def is_apart(apart: Column) -> Column:
    """Whether `apart` (`taken_apart`) of a text that is an object has its values."""
    return apart.startswith(SEPARATOR)


def is_usual(text: Column, apart: Column) -> Column:
    """Whether `apart` (`taken_apart`) is of a record of the usual form; never NULL."""
    # A record could begin with the separator itself; it is no object then.
    usual = text.startswith("{") & is_apart(apart)
    return fn.coalesce(usual, fn.lit(False))


def texts_of(apart: Column) -> Column:
    """The texts (`secfilter.texts`) of a record of the usual form; keep them in a column."""
    return fn.split(apart, SEPARATOR, -1)


def _pattern(schema: Schema, written: TimeFormat, blanks: str) -> str:
    """The whole object; `blanks` is a pattern for what may stand between its parts.

    Matching is linear: no repetition can end but before a character that it does not take, and so
    a shorter one fails at once; a field that is there cannot be skipped to try again (possessive).
    """
    fields, follows = "", False
    for place, attribute in enumerate(schema.attributes):
        comma = f"{blanks}," if follows else _comma_if_any(blanks) if place else ""
        field = f"{comma}{blanks}{_field(attribute, written, blanks)}"
        fields += field if attribute.required else f"(?:{field})?+"
        follows = follows or attribute.required
    return rf"\A\{{{fields}{blanks}\}}{blanks}\z"


def _comma_if_any(blanks: str) -> str:
    """What stands before a field that may be the first one."""
    return rf"(?:(?<=\{{)|(?<!\{{){blanks},)"


def _field(attribute: Attribute, written: TimeFormat, blanks: str) -> str:
    is_time = attribute.type is Type.TIMESTAMP
    value = _TIMES[written] if is_time else _VALUES[attribute.type]
    if not attribute.required:
        value = f"(?:{value}|null)"
    return f'"{re.escape(attribute.name)}"{blanks}:{blanks}{value}'

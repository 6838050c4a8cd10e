"""The quick reading of JSON records in the usual form. It is much faster than the strict reading.

A regular expression matches a record that is exactly one object with the schema's fields in the
schema's order. Nothing in it may need interpretation: no escapes, no exponents, no number that
could be out of range, no byte that is not UTF-8. A record that matches is split into texts
(`secfilter.texts`). All other records go to the strict reading (`secfilter.strict_json`). The
strict reading would give the same result for each record that is read here. A record with nested
attributes is never in the usual form.
"""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.record_format import TimeFormat
from catalog.schema import Attribute, Schema, Type
from secfilter.lab import SEPARATOR
from secfilter.nested_records import is_nested

_BLANKS = r"[ \t\n\r]*"
# List the characters one by one, because a range would take half as long again.
_CONTROLS = "".join(rf"\x{code:02x}" for code in range(0x20))
# Each pattern has one group, which is never empty. They do not match a negative zero, because it
# would lose its sign when it is read as a decimal.
_VALUES: dict[Type, str] = {
    Type.BOOLEAN: "(true|false)",
    Type.BIGINT: "(0|-?[1-9][0-9]{0,17})",
    Type.DOUBLE: r"((?:0|-?[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?+)",
    # A string has its opening quotation mark (`secfilter.texts`). U+FFFD is excluded: Java uses it
    # for bytes that are not UTF-8, but a record may also contain it.
    Type.STRING: rf'("[^"\\{_CONTROLS}\uFFFD]*)"',
}
_NUMBER_OF_TIME = r"(-?[1-9][0-9]{0,17}(?:\.[0-9]{1,9})?+)"
_TIMES: dict[TimeFormat, str] = dict.fromkeys(TimeFormat, _NUMBER_OF_TIME) | {
    # Leave out the Z, because converting it to a zone would take longer than reading the time.
    TimeFormat.ISO: (
        r'"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?+'
        r'(?:(?=Z")|[+-][0-9]{2}:[0-9]{2}(?=")))Z?+"'
    )
}


def taken_apart(text: Column, schema: Schema, written: TimeFormat, *, blanks: bool) -> Column:
    """The values of a record in the usual form, each after a U+001F, or the text unchanged.

    The search for blanks between the parts takes a third of the time, and most records have none.
    So try without `blanks` first.
    """
    if is_nested(schema):
        return text
    values = "".join(f"{SEPARATOR}${n}" for n in range(1, len(schema.attributes) + 1))
    pattern = _pattern(schema, written, _BLANKS if blanks else "")
    return fn.regexp_replace(text, fn.lit(pattern), fn.lit(values))


def is_apart(apart: Column) -> Column:
    """Whether `apart` (`taken_apart` of a text that is an object) has the values."""
    return apart.startswith(SEPARATOR)


def is_usual(text: Column, apart: Column) -> Column:
    """Whether `apart` (`taken_apart` of `text`) is from a record in the usual form. Never NULL."""
    # A record could begin with the separator itself. Then it is not an object.
    usual = text.startswith("{") & is_apart(apart)
    return fn.coalesce(usual, fn.lit(False))


def texts_of(apart: Column) -> Column:
    """The texts (`secfilter.texts`) of a record in the usual form. Keep them in a column."""
    return fn.split(apart, SEPARATOR, -1)


def _pattern(schema: Schema, written: TimeFormat, blanks: str) -> str:
    """The pattern of the whole object. `blanks` is the pattern for the space between its parts.

    Matching is linear. A repetition can only end before a character that it does not accept, so a
    shorter match fails at once. A field that is present cannot be skipped (possessive).
    """
    fields, follows = "", False
    for place, attribute in enumerate(schema.attributes):
        comma = f"{blanks}," if follows else _comma_if_any(blanks) if place else ""
        field = f"{comma}{blanks}{_field(attribute, written, blanks)}"
        fields += field if attribute.required else f"(?:{field})?+"
        follows = follows or attribute.required
    return rf"\A\{{{fields}{blanks}\}}{blanks}\z"


def _comma_if_any(blanks: str) -> str:
    """The pattern before a field that may be the first one."""
    return rf"(?:(?<=\{{)|(?<!\{{){blanks},)"


def _field(attribute: Attribute, written: TimeFormat, blanks: str) -> str:
    if not isinstance(attribute.type, Type):
        raise TypeError("a nested attribute has no usual form")
    is_time = attribute.type is Type.TIMESTAMP
    value = _TIMES[written] if is_time else _VALUES[attribute.type]
    if not attribute.required:
        value = f"(?:{value}|null)"
    return f'"{re.escape(attribute.name)}"{blanks}:{blanks}{value}'

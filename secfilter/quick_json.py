"""A quick reading of JSON records of the usual form, at a fraction of what the strict one costs.

One regular expression says whether a record is exactly one object with the schema's fields, in the
schema's order, and nothing in it that needs interpreting: no escapes, no exponents, no number that
could be out of range. What it matches it takes apart, into texts (`secfilter.texts`). All else is
left to the strict reading (`secfilter.strict_json`), which says the same of every record that is
read here.
"""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.schema import Attribute, Schema, Type
from secfilter.lab import SEPARATOR

_BLANKS = r"[ \t\n\r]*+"
# Each with one group, which is never empty. A negative zero is not among them: read as a decimal
# it has no sign.
_VALUES: dict[Type, str] = {
    Type.BOOLEAN: "(true|false)",
    Type.BIGINT: "(0|-?[1-9][0-9]{0,17})",
    Type.DOUBLE: r"((?:0|-?[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?+)",
    # With the opening quotation mark (`secfilter.texts`).
    Type.STRING: r'("[^"\\\x00-\x1f]*+)"',
    # Without the Z: making a zone of it would take longer than reading the time.
    Type.TIMESTAMP: (
        r'"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?+'
        r'(?:(?=Z")|[+-][0-9]{2}:[0-9]{2}(?=")))Z?+"'
    ),
}


def taken_apart(text: Column, schema: Schema) -> Column:
    """The values of a record of the usual form, each behind U+001F; or the text unchanged."""
    groups = range(1, len(schema.attributes) + 1)
    return fn.regexp_replace(
        text, fn.lit(_pattern(schema)), fn.lit("".join(f"{SEPARATOR}${n}" for n in groups))
    )


def is_usual(text: Column, apart: Column) -> Column:
    """Whether `apart` (`taken_apart`) is of a record of the usual form; never NULL."""
    # A record could begin with the separator itself; it is no object then.
    usual = text.startswith("{") & apart.startswith(SEPARATOR)
    return fn.coalesce(usual, fn.lit(False))


def texts_of(apart: Column) -> Column:
    """The texts (`secfilter.texts`) of a record of the usual form; keep them in a column."""
    return fn.split(apart, SEPARATOR, -1)


def _pattern(schema: Schema) -> str:
    """Possessive throughout: what is matched is not tried again, so matching is linear."""
    fields = "".join(_field(a) for a in schema.attributes)
    return rf"\A\{{{_BLANKS}{fields}\}}{_BLANKS}\z"


def _field(attribute: Attribute) -> str:
    value = _VALUES[attribute.type]
    if not attribute.required:
        value = f"(?:{value}|null)"
    # A comma stands before another field and nowhere else.
    end = rf'(?:{_BLANKS},{_BLANKS}(?=")|{_BLANKS}(?=\}}))'
    field = rf'(?>"{re.escape(attribute.name)}"{_BLANKS}:{_BLANKS}{value}{end})'
    return field if attribute.required else f"{field}?+"

"""The kinds of JSON values: as Spark names them in the schema of a VARIANT, and in plain words."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.record_format import TimeFormat
from catalog.schema import AttributeType, Type

# The names in a VARIANT's schema for the values that an attribute of the type may have.
_SHAPES: dict[Type, str] = {
    Type.BOOLEAN: "BOOLEAN",
    Type.BIGINT: "BIGINT",
    Type.DOUBLE: r"(?:BIGINT|DOUBLE|DECIMAL\(\d+,\d+\))",
    Type.STRING: "STRING",
}
_TIME_SHAPES = dict.fromkeys(TimeFormat, r"(?:BIGINT|DECIMAL\(\d+,\d+\))") | {
    TimeFormat.ISO: "STRING"
}
_WORDS = {
    "BOOLEAN": "boolean",
    "BIGINT": "number",
    "DOUBLE": "number with an exponent or too many digits",
    "STRING": "string",
    "VOID": "null",
    "ARRAY": "array",
    "OBJECT": "object",
}


def shape_of(type_: Type, written: TimeFormat) -> str:
    """A pattern for the names of the kinds that a value of the type may have."""
    return _TIME_SHAPES[written] if type_ is Type.TIMESTAMP else _SHAPES[type_]


def in_words(kind: Column) -> Column:
    """The kind of a value in plain words. `kind` is its name in a VARIANT's schema."""
    pairs = (fn.lit(text) for pair in _WORDS.items() for text in pair)
    return fn.coalesce(fn.try_element_at(fn.create_map(*pairs), kind), fn.lit("number"))


def type_in_words(type_: AttributeType, written: TimeFormat) -> str:
    """What a record has for a value of the type, in plain words."""
    if type_ is not Type.TIMESTAMP:
        return str(type_)
    if written is TimeFormat.ISO:
        return "timestamp as a string (ISO 8601)"
    return f"timestamp as a number ({written})"


def other_kind(
    expected: Column, is_bigint: Column, kind: Column, digits: Column, scale: Column
) -> Column:
    """Why a value of this kind is not what was expected (`type_in_words`).

    `is_bigint` says whether that is a BIGINT. `digits` and `scale` are those of a decimal.
    """
    too_large = is_bigint & (digits.try_cast("int") > 18) & (scale == fn.lit("0"))
    fraction = is_bigint | (scale != fn.lit("0"))
    number = fn.when(fraction, "number with a fraction").otherwise("number")
    found = fn.when(kind == fn.lit("DECIMAL"), number).otherwise(in_words(kind))
    other = fn.concat(fn.lit("expected "), expected, fn.lit(", found "), found)
    return fn.when(too_large, "out of range of 64 bits").otherwise(other)

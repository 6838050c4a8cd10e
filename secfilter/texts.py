"""The texts of a record's attributes. Both readings of JSON give them, and lab topics get them.

They are an array of strings. Place 0 is empty. Place n is the n-th attribute of the schema. It is
empty for NULL. A string has a quotation mark before it, so that an empty string differs from NULL.
A nested value is its held form (`secfilter.nested`). A time is as `secfilter.times` reads it.
A number or a condition is as SQL reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.schema import AttributeType, Schema, Type
from secfilter.expressions import finite
from secfilter.lab import NULL_MARK, SEPARATOR, joined

QUOTE = '"'
_WHOLE = 2**31 - 1


def text_at(texts: Column, place: int | Column) -> Column:
    """The text of the attribute at that place, which counts from 1."""
    return fn.get(texts, fn.lit(place))


def places_of(schema: Schema, type_: Type) -> list[int]:
    """The places of the attributes of a type."""
    return [place for place, a in enumerate(schema.attributes, start=1) if a.type is type_]


def out_of_range(texts: Column, schema: Schema) -> Column:
    """The place of the first number that is too large for a double, or NULL if there is none."""

    def is_infinite(text: Column) -> Column:
        return _is_there(text) & finite(text.try_cast("double")).isNull()

    places = places_of(schema, Type.DOUBLE)
    return first_place({place: is_infinite(text_at(texts, place)) for place in places})


def holds_separator(texts: Column, schema: Schema) -> Column:
    """The place of the first string with a separator of lab topics, or NULL if there is none."""

    def holds(text: Column) -> Column:
        return fn.contains(text, fn.lit(NULL_MARK)) | fn.contains(text, fn.lit(SEPARATOR))

    places = places_of(schema, Type.STRING)
    return first_place({place: holds(text_at(texts, place)) for place in places})


def nested_bytes(texts: Column, schema: Schema) -> Column:
    """The length of all nested values together, as lab topics get them."""
    lengths = [
        fn.octet_length(text_at(texts, place)).cast("bigint")
        for place, a in enumerate(schema.attributes, start=1)
        if not isinstance(a.type, Type)
    ]
    return reduce(lambda a, b: a + b, lengths, fn.lit(0).cast("bigint"))


def first_place(conditions: Mapping[int, Column]) -> Column:
    """The first place whose condition is true, or NULL if there is none."""
    result = fn.when(fn.lit(False), fn.lit(0))
    for place, condition in conditions.items():
        result = result.when(condition, place)
    return result


def lab_value(texts: Column, times: dict[int, Column], schema: Schema) -> Column:
    """The record's value in lab.*, as text.

    `times` has the times that were read, by their place.
    """
    return joined(
        [
            _lab_text(text_at(texts, place), times.get(place), a.type)
            for place, a in enumerate(schema.attributes, start=1)
        ]
    )


def _lab_text(text: Column, time: Column | None, type_: AttributeType) -> Column:
    if time is not None:
        return fn.coalesce(fn.unix_micros(time).cast("string"), fn.lit(NULL_MARK))
    value = fn.substring(text, 2, _WHOLE) if type_ is Type.STRING else text
    return fn.when(_is_there(text), value).otherwise(NULL_MARK)


def _is_there(text: Column) -> Column:
    return text != fn.lit("")

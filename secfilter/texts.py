"""A record's attributes as texts: what both readings of its JSON give, checked and put into lab.*.

An array of strings. Place 0 is empty; place n is the schema's n-th attribute: empty for NULL, a
string behind a quotation mark (so that the empty one is something), a time as ISO 8601 (without a
zone it is UTC), a number or a condition as SQL reads it.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.schema import Schema, Type
from secfilter.expressions import finite
from secfilter.lab import NULL_MARK, SEPARATOR, joined

QUOTE = '"'
# Stands for a time that cannot be read.
NO_TIME = "?"
_WHOLE = 2**31 - 1


def text_at(texts: Column, place: int) -> Column:
    """The text of the attribute at that place, which counts from 1."""
    return fn.get(texts, fn.lit(place))


def places_of(schema: Schema, type_: Type) -> list[int]:
    """The places of the attributes of a type."""
    return [place for place, a in enumerate(schema.attributes, start=1) if a.type is type_]


def time_at(texts: Column, place: int) -> Column:
    """The time at that place, to the microsecond; NULL where there is none or it is unreadable."""
    return text_at(texts, place).try_cast("timestamp")


def is_unreadable(texts: Column, place: int, time: Column) -> Column:
    """Whether there is a time at that place, but `time_at` gave none."""
    return _is_there(text_at(texts, place)) & time.isNull()


def out_of_range(texts: Column, schema: Schema) -> Column:
    """Whether a number is larger than a double can be."""
    numbers = [text_at(texts, place) for place in places_of(schema, Type.DOUBLE)]
    return any_of([_is_there(n) & finite(n.try_cast("double")).isNull() for n in numbers])


def holds_separator(texts: Column, schema: Schema) -> Column:
    """Whether a string holds what separates fields in lab.*."""
    strings = [text_at(texts, place) for place in places_of(schema, Type.STRING)]
    marks = (fn.lit(NULL_MARK), fn.lit(SEPARATOR))
    return any_of([fn.contains(text, mark) for text in strings for mark in marks])


def lab_value(texts: Column, times: dict[int, Column], schema: Schema) -> Column:
    """The record's value in lab.* (text); `times` are those of `time_at` by their place."""
    return joined(
        [
            _lab_text(text_at(texts, place), times.get(place), a.type)
            for place, a in enumerate(schema.attributes, start=1)
        ]
    )


def _lab_text(text: Column, time: Column | None, type_: Type) -> Column:
    if time is not None:
        return fn.coalesce(fn.unix_micros(time).cast("string"), fn.lit(NULL_MARK))
    value = fn.substring(text, 2, _WHOLE) if type_ is Type.STRING else text
    return fn.when(_is_there(text), value).otherwise(NULL_MARK)


def _is_there(text: Column) -> Column:
    return text != fn.lit("")


def any_of(conditions: list[Column]) -> Column:
    """Whether one of them holds; false where there are none."""
    result = fn.lit(False)
    for condition in conditions:
        result = result | condition
    return result

"""Nested values in Spark: their held form, which is a text, and Spark's own types.

Everywhere but inside of one expression a nested value is its held form. So what stores,
compares or sends values needs no rule for nested ones. The form is JSON: without blanks, the fields
of a structure in the order of its type and without those that are NULL, the keys of a map in their
order, times as in results.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.functions import MAX_TEXT_BYTES
from catalog.schema import ArrayType, AttributeType, MapType, StructType, Type, held_as
from secfilter.columns import SPARK_TYPES, quoted

TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
_TIMES = {"timestampFormat": TIME_FORMAT, "timeZone": "UTC"}


def spark_type(type_: AttributeType, time: str = SPARK_TYPES[Type.TIMESTAMP]) -> str:
    """Spark's own type. `time` is the one of timestamps."""
    match type_:
        case ArrayType(element):
            return f"array<{spark_type(element, time)}>"
        case MapType(value):
            return f"map<string,{spark_type(value, time)}>"
        case StructType(fields):
            inner = (f"{quoted(each.name)}:{spark_type(each.type, time)}" for each in fields)
            return f"struct<{','.join(inner)}>"
        case Type.TIMESTAMP:
            return time
        case _:
            return SPARK_TYPES[type_]


def spark_value(held: Column, type_: AttributeType) -> Column:
    """The value of Spark's own type from the value that stands for it."""
    if isinstance(type_, Type):
        return held
    return fn.from_json(held, spark_type(type_), _TIMES)


def held_value(value: Column, type_: AttributeType) -> Column:
    """The value that stands for a value of Spark's own type: its held form if it is nested."""
    if isinstance(type_, Type):
        return value
    return fn.to_json(value, {**_TIMES, "ignoreNullFields": "true"})


def element(whole: Column, place: Column, type_: AttributeType) -> Column:
    """The element at a place of an array, or under a key of a map. It is NULL if there is none.

    A negative place counts from the end.
    """
    if isinstance(type_, MapType):
        return fn.try_element_at(whole, place)
    # Spark refuses place 0, and takes places of 32 bits.
    return fn.try_element_at(whole, fn.nullif(place.try_cast("int"), fn.lit(0)))


def size(whole: Column, type_: AttributeType) -> Column:
    """How many elements an array or a map has."""
    counted = fn.map_keys(whole) if isinstance(type_, MapType) else whole
    return fn.array_size(counted).cast("bigint")


def contains(whole: Column, value: Column, type_: AttributeType) -> Column:
    """Whether an array has the value, as IN says it: unknown if it is not there but a NULL is."""
    inner = type_.element if isinstance(type_, ArrayType) else type_
    return fn.array_contains(whole, value.cast(SPARK_TYPES[held_as(inner)]))


def array_form(values: Column, element_type: AttributeType) -> Column:
    """The held form of an array from Spark's array of its elements, each as it is held.

    It is NULL if it is longer than any record.
    """
    if isinstance(element_type, Type):
        form = held_value(values, ArrayType(element_type))
    else:
        parts = fn.array_join(values, ",", "null")
        form = fn.when(values.isNotNull(), fn.concat(fn.lit("["), parts, fn.lit("]")))
    return fn.when(fn.octet_length(form) <= fn.lit(MAX_TEXT_BYTES), form)

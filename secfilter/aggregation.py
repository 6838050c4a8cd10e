"""One aggregation of a group: the state that the engine keeps for it, and its value from that."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.aggregates import (
    FIRST,
    LAST,
    MAX_COLLECTED_BYTES,
    Collecting,
    collecting,
    keeps_values,
)
from catalog.expression import type_of
from catalog.plan import Aggregation
from catalog.schema import Schema, Type, held_as
from secfilter.columns import ID
from secfilter.expressions import finite, to_column
from secfilter.nested import array_form
from secfilter.timeline import CLOCK

PART = "__part_"
"""How the names of the columns of state begin."""
# Of FIRST and LAST: where the tuple is, and its value.
_HELD = "value"
# Of an array: whether a value was too long.
_LONG = "_long"
_ENDS = {FIRST: fn.min, LAST: fn.max}


def state_of(
    index: int, aggregation: Aggregation, schema: Schema, counts: Column | None = None
) -> list[Column]:
    """The state that the engine keeps for one aggregation. Only rows that it `counts` take part."""

    def taken(value: Column) -> Column:
        return value if counts is None else fn.when(counts, value)

    if keeps_values(aggregation.function):
        return []
    if aggregation.argument is None:
        return [fn.count(taken(fn.lit(1))).alias(_part(index))]
    value = taken(to_column(aggregation.argument, schema))
    is_text = held_as(type_of(aggregation.argument, schema)) is Type.STRING
    if _is_whole_sum(aggregation, schema):
        # Sum in two halves. So the order of the tuples does not decide whether the sum fits.
        high, low = fn.shiftright(value, 32), value.bitwiseAND(fn.lit(2**32 - 1))
        return [
            fn.try_sum(high).alias(_part(index, "_high")),
            fn.try_sum(low).alias(_part(index, "_low")),
        ]
    if aggregation.function in _ENDS:
        # Tuples of one event time are in the order of their lineages.
        placed = fn.struct(fn.col(CLOCK), fn.col(ID), value.alias(_HELD))
        end = _ENDS[aggregation.function]
        return [end(fn.when(value.isNotNull(), placed)).alias(_part(index))]
    array = collecting(aggregation.function)
    if array is not None:
        placed = fn.when(value.isNotNull(), fn.struct(fn.col(CLOCK), fn.col(ID)))
        return _collected(index, array, value, value if array.greatest else placed, is_text)
    functions = {
        "count": fn.count,
        "sum": fn.sum,
        "avg": fn.avg,
        "stddev": fn.stddev_samp,
        "min": fn.min,
        "max": fn.max,
    }
    return [functions[aggregation.function](value).alias(_part(index))]


def of_values(index: int, aggregation: Aggregation, value: Column, schema: Schema) -> list[Column]:
    """The state of an aggregate of different values, each of which is there once."""
    array = collecting(aggregation.function)
    if array is None or aggregation.argument is None:
        return [fn.count(value).alias(_part(index))]
    is_text = held_as(type_of(aggregation.argument, schema)) is Type.STRING
    return _collected(index, array, value, value, is_text)


def _collected(
    index: int, array: Collecting, value: Column, order: Column, is_text: bool
) -> list[Column]:
    """The values of an array, bounded in number and length, and whether a value was too long."""
    too_long = fn.octet_length(value) > fn.lit(MAX_COLLECTED_BYTES) if is_text else fn.lit(False)
    kept, place = (fn.when(~too_long, each) for each in (value, order))
    take = fn.max_by if array.greatest else fn.min_by
    return [
        take(kept, place, array.most).alias(_part(index)),
        fn.max(too_long).alias(_part(index, _LONG)),
    ]


def _array_result(index: int, aggregation: Aggregation, schema: Schema) -> Column:
    """The array of an aggregate: NULL of no value, and if a value was too long."""
    if aggregation.argument is None:
        raise TypeError("an array of no argument")
    values, too_long = fn.col(_part(index)), fn.col(_part(index, _LONG))
    there = (fn.array_size(values) > fn.lit(0)) & ~fn.coalesce(too_long, fn.lit(False))
    return fn.when(there, array_form(values, type_of(aggregation.argument, schema)))


def result_of(index: int, aggregation: Aggregation, schema: Schema) -> Column:
    """The value of the aggregation, computed from the engine's state."""
    if _is_whole_sum(aggregation, schema):
        high = fn.col(_part(index, "_high")).cast("decimal(20,0)")
        low = fn.col(_part(index, "_low")).cast("decimal(20,0)")
        return (high * fn.lit(2**32).cast("decimal(10,0)") + low).try_cast("bigint")
    if aggregation.function in _ENDS:
        return fn.col(_part(index)).getField(_HELD)
    if collecting(aggregation.function) is not None:
        return _array_result(index, aggregation, schema)
    value = fn.col(_part(index))
    return finite(value) if aggregation.function in ("sum", "avg", "stddev") else value


def _is_whole_sum(aggregation: Aggregation, schema: Schema) -> bool:
    argument = aggregation.argument
    return (
        aggregation.function == "sum"
        and argument is not None
        and type_of(argument, schema) is Type.BIGINT
    )


def _part(index: int, name: str = "") -> str:
    return f"{PART}{index}{name}"

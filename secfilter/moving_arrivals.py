"""The input of the operator of moving windows: what Spark computes for each tuple below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.changing_parts import ChangingParts, WindowPart
from catalog.checked_plan import CheckedNode
from catalog.expression import Expression, type_of
from catalog.pair_expressions import RowExpressions, values_of_sides
from catalog.plan import DELETED, Filter, Moving, Project, Source
from catalog.schema import Schema, Type
from secfilter.columns import ID, attribute, label_column
from secfilter.expressions import to_column
from secfilter.lab import encode_attribute, joined
from secfilter.timeline import CLOCK, IS_EVENT_TIME

BUCKET, TIME, SIDE, PARTITION, PASSES = "__bucket", "__time", "__side", "__partition", "__passes"
ROW, ARGUMENTS, PLACE = "__row", "__arguments", "__place"
Compile = Callable[[CheckedNode], DataFrame]


@dataclass(frozen=True, slots=True)
class _Side:
    """A window, and what is computed for each of its tuples."""

    window: WindowPart
    row: Column
    arguments: Column


def arrivals(
    parts: ChangingParts, compile_: Compile, words: Sequence[int], by: Sequence[str] = ()
) -> DataFrame:
    """For each tuple of each window what `secfilter.moving_window.Arrival` has, and the clock.

    `compile_` compiles what is below a window. The platform's columns `by` are kept.
    """
    kept = [*map(label_column, words), ID, *by]
    sides = (side for each in parts.relations() for side in _sides(each))
    ordered = sorted(sides, key=lambda side: side.window.window)
    made = reduce(DataFrame.unionByName, [_arrivals(each, compile_, kept) for each in ordered])
    rest = [fn.col(name) for name in made.columns if name != CLOCK]
    return made.select(*rest, place_column(), fn.lit(0).alias(BUCKET))


def place_column() -> Column:
    """The event time as Spark's operators need it."""
    # Spark leaves out what is older than the watermark, by the column with this metadata. It cannot
    # send times after 2262 to a worker, and the clock is there. So the column is a number.
    return fn.unix_micros(fn.col(CLOCK)).alias(PLACE, metadata=IS_EVENT_TIME)


def _sides(parts: ChangingParts) -> Iterator[_Side]:
    """The windows of one relation. Each tuple has the text of its row, of its group's key or of
    what a join compares, and that of what is read besides.
    """
    made = None if parts.join is None else RowExpressions(parts, parts.join)
    for each in values_of_sides(parts, made):
        if isinstance(each.side, WindowPart):
            several = (each.row, each.arguments)
            schema = each.side.schema
            texts = [value_texts([value_text(one, schema) for one in own]) for own in several]
            yield _Side(each.side, *texts)


def _arrivals(side: _Side, compile_: Compile, names: Sequence[str]) -> DataFrame:
    """The tuples below one window. Of the platform's columns they keep those with these names."""
    moving = side.window.moving
    if not isinstance(moving.node, Moving):
        raise TypeError("a relation without a moving window")
    kept = [fn.col(name) for name in (*names, CLOCK, TIME, PARTITION)]
    partition = value_texts(
        [value_text(key, moving.schema) for key in moving.node.window.partition]
    )
    made = compile_(moving.inputs[0]).withColumns(
        {
            TIME: fn.unix_micros(attribute(moving.event_time or "")),
            PARTITION: partition,
            PASSES: _is_there(moving.node),
        }
    )
    for step in side.window.steps:
        given = step.inputs[0].schema
        match step.node:
            case Filter(_, condition):
                true = fn.coalesce(to_column(condition, given), fn.lit(False))
                made = made.withColumn(PASSES, fn.col(PASSES) & true)
            case Project(_, columns):
                values = [to_column(c.expression, given).alias(c.name) for c in columns]
                made = made.select(*values, *kept, fn.col(PASSES))
    return made.select(
        *kept,
        fn.col(PASSES),
        side.row.alias(ROW),
        side.arguments.alias(ARGUMENTS),
        fn.lit(side.window.window).alias(SIDE),
    ).where(fn.col(TIME).isNotNull())


def _is_there(node: Moving) -> Column:
    """Whether a tuple of the window is a row. A deletion is none, and still takes its place."""
    if isinstance(node.input, Source) and node.input.relation.keys:
        return fn.coalesce(~attribute(DELETED), fn.lit(False))
    return fn.lit(True)


def value_texts(texts: Sequence[Column]) -> Column:
    """The texts of several values as one."""
    return joined(texts) if texts else fn.lit("")


def value_text(expression: Expression, schema: Schema) -> Column:
    """The text of a value. Zero and negative zero are one value, so they have one text."""
    kind = type_of(expression, schema)
    value = to_column(expression, schema)
    return encode_attribute(value + fn.lit(0.0) if kind is Type.DOUBLE else value, kind)

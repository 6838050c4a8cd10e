"""The input of the operator of moving windows: what Spark computes for each tuple below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.changing_parts import ChangingParts
from catalog.checked_plan import CheckedNode
from catalog.expression import AttributeRef, Expression, type_of
from catalog.pair_expressions import PairExpressions
from catalog.plan import Filter, Moving, MovingJoin, Project
from catalog.schema import Schema, Type
from secfilter.columns import ID, attribute, label_column
from secfilter.expressions import to_column
from secfilter.lab import encode_attribute, joined
from secfilter.timeline import CLOCK, IS_EVENT_TIME

BUCKET, TIME, SIDE, PARTITION, PASSES = "__bucket", "__time", "__side", "__partition", "__passes"
ROW, ARGUMENTS, PLACE = "__row", "__arguments", "__place"
Compile = Callable[[CheckedNode], DataFrame]


def arrivals(parts: ChangingParts, compile_: Compile, words: Sequence[int]) -> DataFrame:
    """For each tuple of each window what `secfilter.moving_window.Arrival` has, and the clock.

    `compile_` compiles what is below a window.
    """
    if isinstance(parts.base.node, MovingJoin):
        inputs = _sides(parts, compile_, words)
    else:
        row, arguments = _single(parts)
        inputs = [_arrivals(0, parts.base, parts.steps, compile_, words, row, arguments)]
    made = reduce(DataFrame.unionByName, inputs)
    # Spark leaves out what is older than the watermark, by the column with this metadata. It cannot
    # send times after 2262 to a worker, and the clock is there. So the column is a number.
    place = fn.unix_micros(fn.col(CLOCK)).alias(PLACE, metadata=IS_EVENT_TIME)
    rest = [fn.col(name) for name in made.columns if name != CLOCK]
    return made.select(*rest, place, fn.lit(0).alias(BUCKET))


def _sides(parts: ChangingParts, compile_: Compile, words: Sequence[int]) -> list[DataFrame]:
    node = parts.base.node
    if not isinstance(node, MovingJoin):
        raise TypeError("not a join of moving windows")
    expressions = PairExpressions(parts)
    found = []
    for number, ((moving, steps), side) in enumerate(
        zip(parts.windows(), parts.base.inputs, strict=True)
    ):
        keys = [pair[number] for pair in node.equal]
        values = expressions.sides.values("right" if number else "left")
        row = _texts([_text(key, side.schema) for key in keys])
        arguments = _texts([_text(value, side.schema) for value in values])
        made = _arrivals(number, moving, steps, compile_, words, row, arguments, keys)
        found.append(made)
    return found


def _single(parts: ChangingParts) -> tuple[Column, Column]:
    """The text of a tuple's row or of its group's key, and that of the aggregates' arguments."""
    schema, aggregate = parts.schema, parts.aggregate
    if aggregate is None:
        values = [_text(AttributeRef(name), schema) for name in schema.names]
        return _texts(values), fn.lit("")
    keys = [_text(key.expression, schema) for key in aggregate.keys]
    arguments = [
        _text(a.argument, schema) for a in aggregate.aggregations if a.argument is not None
    ]
    return _texts(keys), _texts(arguments)


def _arrivals(  # noqa: PLR0913, PLR0917 - one call for each window
    side: int,
    moving: CheckedNode,
    steps: Iterable[CheckedNode],
    compile_: Compile,
    words: Sequence[int],
    row: Column,
    arguments: Column,
    known: Sequence[AttributeRef] = (),
) -> DataFrame:
    """The tuples below one window. A tuple passes only if the attributes `known` are not NULL."""
    if not isinstance(moving.node, Moving):
        raise TypeError("a relation without a moving window")
    kept = [
        *(fn.col(label_column(index)) for index in words),
        *(fn.col(ID), fn.col(CLOCK), fn.col(TIME), fn.col(PARTITION)),
    ]
    partition = _texts([_text(key, moving.schema) for key in moving.node.window.partition])
    made = compile_(moving.inputs[0]).withColumns(
        {
            TIME: fn.unix_micros(attribute(moving.event_time or "")),
            PARTITION: partition,
            PASSES: fn.lit(True),
        }
    )
    for step in steps:
        given = step.inputs[0].schema
        match step.node:
            case Filter(_, condition):
                true = fn.coalesce(to_column(condition, given), fn.lit(False))
                made = made.withColumn(PASSES, fn.col(PASSES) & true)
            case Project(_, columns):
                values = [to_column(c.expression, given).alias(c.name) for c in columns]
                made = made.select(*values, *kept, fn.col(PASSES))
    passes = reduce(
        lambda found, ref: found & attribute(ref.name).isNotNull(), known, fn.col(PASSES)
    )
    return made.select(
        *kept,
        passes.alias(PASSES),
        row.alias(ROW),
        arguments.alias(ARGUMENTS),
        fn.lit(side).alias(SIDE),
    ).where(fn.col(TIME).isNotNull())


def _texts(texts: Sequence[Column]) -> Column:
    return joined(texts) if texts else fn.lit("")


def _text(expression: Expression, schema: Schema) -> Column:
    """The text of a value. Zero and negative zero are one value, so they have one text."""
    kind = type_of(expression, schema)
    value = to_column(expression, schema)
    return encode_attribute(value + fn.lit(0.0) if kind is Type.DOUBLE else value, kind)

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
from catalog.plan import DELETED, Filter, Moving, MovingWindow, Node, Project, Source
from catalog.schema import Schema, Type
from secfilter.class_views import ClassViews
from secfilter.columns import CLASS, ID, attribute, label_column
from secfilter.expressions import to_column
from secfilter.lab import NULL_MARK, encode_attribute, joined
from secfilter.timeline import CLOCK, IS_EVENT_TIME

BUCKET, TIME, SIDE, PARTITION, PASSES = "__bucket", "__time", "__side", "__partition", "__passes"
ROW, ARGUMENTS, PLACE = "__row", "__arguments", "__place"
# Gives what is below a moving window.
Compile = Callable[[CheckedNode], DataFrame]


@dataclass(frozen=True, slots=True)
class _Side:
    """A window, and what is computed for each of its tuples."""

    window: WindowPart
    row: Sequence[Column]
    arguments: Sequence[Column]


def arrivals(
    parts: ChangingParts, compile_: Compile, words: Sequence[int], views: ClassViews | None = None
) -> DataFrame:
    """For each tuple of each window what `secfilter.moving_window.Arrival` has, and the clock.

    `compile_` compiles what is below a window. With views, each tuple is there for a class. A
    window with one size for all gets the class's hidden tuples, too, without what they hold.
    """
    kept = [*map(label_column, words), ID, *(() if views is None else (CLASS,))]
    sides = (side for each in parts.relations() for side in _sides(each))
    ordered = sorted(sides, key=lambda side: side.window.window)
    frames = []
    for each in ordered:
        of_all = window_of(each.window.moving).of_all
        seen = views.seen() if of_all and views is not None else None
        frames.append(_arrivals(each, compile_, kept, seen))
    made = reduce(DataFrame.unionByName, frames)
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
            texts = [[value_text(one, schema) for one in own] for own in several]
            yield _Side(each.side, *texts)


def window_of(moving: CheckedNode) -> MovingWindow:
    """The window of a Moving."""
    if not isinstance(moving.node, Moving):
        raise TypeError("a relation without a moving window")
    return moving.node.window


def _arrivals(
    side: _Side, compile_: Compile, names: Sequence[str], seen: Column | None
) -> DataFrame:
    """The tuples below one window. Of the platform's columns they keep those with these names.

    `seen` says which of them their class may see. If it is None, it may see all of them.
    """
    moving = side.window.moving
    kept = [fn.col(name) for name in (*names, CLOCK, TIME, PARTITION)]
    partition = value_texts([value_text(key, moving.schema) for key in window_of(moving).partition])
    made = compile_(moving).withColumns(
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
    made = made.select(
        *kept,
        fn.col(PASSES),
        value_texts(side.row).alias(ROW),
        value_texts(side.arguments).alias(ARGUMENTS),
        fn.lit(side.window.window).alias(SIDE),
    )
    made = made if seen is None else _emptied(made, side, names, seen)
    return made.where(fn.col(TIME).isNotNull())


def _emptied(made: DataFrame, side: _Side, names: Sequence[str], seen: Column) -> DataFrame:
    """The tuples. Those that are not `seen` keep their time and their place, and nothing else."""
    labels = [name for name in names if name not in (ID, CLASS)]

    def nothing(texts: Sequence[Column]) -> Column:
        return value_texts([fn.lit(NULL_MARK) for _ in texts])

    instead = {
        PASSES: fn.lit(False),
        ROW: nothing(side.row),
        ARGUMENTS: nothing(side.arguments),
        **{name: fn.lit(0).cast("bigint") for name in labels},
    }
    # All of them at once, because the labels say what is seen.
    return made.withColumns(
        {name: fn.when(seen, fn.col(name)).otherwise(empty) for name, empty in instead.items()}
    )


def _is_there(node: Node) -> Column:
    """Whether a tuple of the window is a row. A deletion is none, and still takes its place."""
    if isinstance(node, Moving) and isinstance(node.input, Source) and node.input.relation.keys:
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

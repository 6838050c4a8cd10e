"""Interval joins: a result carries the categories of both sides (004 §3.2, strong semantics).

What is in no pair tells that the other side has no such tuple. So it also carries all that tuples
of the other side can carry.

A join compares event times, and the event time of a window's result is the window's end. Its clock
is a microsecond earlier, so that windows over it find the one in which it lies. So a join has a
clock of its own, and what is above it gets the clock of its tuples back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.expression import AttributeRef
from catalog.plan import Join, JoinKind
from catalog.schema import Schema
from secfilter.columns import ID, attribute, label_column, quoted
from secfilter.expressions import to_column
from secfilter.timeline import CLOCK, MOMENT, as_clock, to_clock

_RIGHT = "__right"
# What Spark computes. An anti join is what an outer join keeps of the left side. A semi join is
# the pairs, because the label of a row also has those of its witness.
_KINDS = {
    JoinKind.INNER: "inner",
    JoinKind.LEFT: "left_outer",
    JoinKind.RIGHT: "right_outer",
    JoinKind.FULL: "full_outer",
    JoinKind.SEMI: "inner",
    JoinKind.ANTI: "left_outer",
}


@dataclass(frozen=True, slots=True)
class Side:
    """The tuples of one side, and their attributes.

    `reach` has all that they can carry, as label words. `end` is the attribute with their event
    time if some of them are results of windows, otherwise None.
    """

    frame: DataFrame
    schema: Schema
    reach: tuple[int, ...]
    end: str | None = None

    def timed(self, *, clocked: bool) -> DataFrame:
        """The tuples with the clock that the join compares, and with their own if `clocked`."""
        if self.end is None and not clocked:
            return self.frame
        columns = {name: fn.col(quoted(name)) for name in self.frame.columns}
        if self.end is not None:
            columns[CLOCK] = as_clock(to_clock(attribute(self.end)))
        own = [fn.unix_micros(fn.col(CLOCK)).alias(MOMENT)] if clocked else []
        return self.frame.select(*columns.values(), *own)


def compile_join(
    node: Join,
    left: Side,
    right: Side,
    words: tuple[int, ...],
    by: tuple[str, ...] = (),
    *,
    clocked: bool = False,
) -> DataFrame:
    """Tuples with equal attributes and near event times, as a join of streams.

    The range of event time and the watermarks of both sides limit the state that Spark keeps. A
    tuple that is in no pair is given when no partner can come any more. Both tuples of a pair are
    also equal in the platform's columns `by`. The results have a clock if they are `clocked`.
    """
    kind = node.kind
    mine, other = (side.timed(clocked=clocked) for side in (left, right))
    mine = _present(mine, [pair[0] for pair in node.equal], kept=kind.keeps_left)
    moment = [MOMENT] if clocked else []
    renamed = (*map(label_column, words), ID, CLOCK, *by, *moment)
    other = _present(other, [pair[1] for pair in node.equal], kept=kind.keeps_right).select(
        *(attribute(name) for name in right.schema.names),
        *(fn.col(name).alias(_right(name)) for name in renamed),
    )
    both = Schema((*left.schema.attributes, *right.schema.attributes))
    condition = _matches(node, by)
    if node.condition is not None:
        # A condition on what is joined would also take away what is in no pair.
        condition = condition & fn.coalesce(to_column(node.condition, both), fn.lit(False))
    rows = mine.join(other, condition, _KINDS[kind])
    if kind is JoinKind.ANTI:
        rows = rows.where(fn.col(_right(ID)).isNull())
    shown = both if kind.shows_right else left.schema
    labels = [_combined(*each) for each in zip(words, left.reach, right.reach, strict=True)]
    own = [fn.coalesce(fn.col(name), fn.col(_right(name))).alias(name) for name in by]
    if kind is JoinKind.SEMI:
        return _once(rows, shown, [*labels, *own], by, moment)
    clock = [_clock(_right(MOMENT) if kind is JoinKind.RIGHT else MOMENT)] if clocked else []
    lineage = _lineage(kind, of_groups=left.end is not None or right.end is not None)
    attributes = (attribute(name) for name in shown.names)
    return rows.select(*attributes, *labels, lineage, *own, *clock)


def _once(
    pairs: DataFrame,
    shown: Schema,
    labels: Sequence[Column],
    by: Sequence[str],
    moment: Sequence[str],
) -> DataFrame:
    """Each left tuple once for each different label that it has with a witness."""
    times = [CLOCK, *moment]
    rows = pairs.select(
        *(attribute(name) for name in shown.names), *labels, *map(fn.col, (ID, *times))
    )
    names = [name for name in rows.columns if name not in {*times, *shown.names}]
    if rows.isStreaming:
        once = rows.dropDuplicatesWithinWatermark(names)
    else:
        once = rows.dropDuplicates(names)
    of_label = [fn.col(name).cast("string") for name in names if name not in by]
    return once.select(
        *(fn.col(quoted(name)) for name in once.columns if name not in {ID, *times}),
        fn.concat_ws("~", *of_label).alias(ID),
        *map(_clock, moment),
    )


def _clock(moment: str) -> Column:
    """The clock of the tuples themselves, from this column."""
    return as_clock(fn.timestamp_micros(fn.col(moment)))


def _present(frame: DataFrame, equal: Sequence[AttributeRef], *, kept: bool) -> DataFrame:
    """The tuples that can be in the result. One without an event time is left out.

    A tuple with NULL in `equal` has no partner. It is left out too, unless it is kept.
    """
    needed = [fn.col(CLOCK), *([] if kept else _attributes(equal))]
    return frame.where(_all_known(needed))


def _matches(node: Join, by: Sequence[str]) -> Column:
    mine, other = fn.col(CLOCK), fn.col(_right(CLOCK))
    early = mine + fn.lit(timedelta(milliseconds=node.lower_ms))
    late = mine + fn.lit(timedelta(milliseconds=node.upper_ms))
    condition = (other >= early) & (other <= late)
    for name in by:
        condition = condition & (fn.col(name) == fn.col(_right(name)))
    for left, right in node.equal:
        condition = condition & (attribute(left.name) == attribute(right.name))
    # Spark's join of streams would treat two NULL as equal. Normally Spark's optimizer removes such
    # tuples, but it does not do so here.
    for side, kept in enumerate((node.kind.keeps_left, node.kind.keeps_right)):
        if kept:
            condition = condition & _all_known(_attributes(pair[side] for pair in node.equal))
    return condition


def _attributes(refs: Iterable[AttributeRef]) -> list[Column]:
    return [attribute(ref.name) for ref in refs]


def _all_known(columns: Sequence[Column]) -> Column:
    return reduce(and_, (column.isNotNull() for column in columns))


def _right(name: str) -> str:
    return _RIGHT + name


def _combined(index: int, left: int, right: int) -> Column:
    """A label word of both sides. Of a side that is absent it has all that can be there."""
    name = label_column(index)
    mine = fn.coalesce(fn.col(name), _bigint(left))
    other = fn.coalesce(fn.col(_right(name)), _bigint(right))
    return mine.bitwiseOR(other).alias(name)


def _lineage(kind: JoinKind, *, of_groups: bool) -> Column:
    mine, other = fn.col(ID), fn.col(_right(ID))
    if kind.keeps_right:
        # What has no left side must not look like what has no right one.
        mine, other = (fn.coalesce(each, fn.lit("")) for each in (mine, other))
    # The lineage of a group has its keys, which may hold any text. So the length says where the
    # other one begins.
    length = [fn.length(mine).cast("string")] if of_groups else []
    return fn.concat_ws("~", *length, mine, other).alias(ID)


def _bigint(value: int) -> Column:
    return fn.lit(value).cast("bigint")

"""Interval join: its result carries the categories of both sides (004 §3.2, strong semantics)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.expression import AttributeRef
from catalog.plan import Join
from catalog.schema import Schema
from secfilter.columns import ID, attribute, label_column
from secfilter.expressions import to_column
from secfilter.timeline import CLOCK

_RIGHT = "__right"


@dataclass(frozen=True, slots=True)
class Side:
    """The tuples of one side, and their attributes."""

    frame: DataFrame
    schema: Schema


def compile_join(
    node: Join, left: Side, right: Side, words: tuple[int, ...], by: tuple[str, ...] = ()
) -> DataFrame:
    """Pairs with equal attributes and near event times, as a stream-stream inner join.

    The range of event time and the watermarks of both sides limit the state that Spark keeps. Both
    tuples of a pair are also equal in the platform's columns `by`.
    """
    renamed = _present(right.frame, [pair[1] for pair in node.equal]).select(
        *(attribute(name) for name in right.schema.names),
        *(fn.col(name).alias(_right(name)) for name in (*map(label_column, words), ID, CLOCK, *by)),
    )
    pairs = _present(left.frame, [pair[0] for pair in node.equal]).join(
        renamed, _matches(node, by), "inner"
    )
    both = Schema((*left.schema.attributes, *right.schema.attributes))
    if node.condition is not None:
        pairs = pairs.where(to_column(node.condition, both))
    return pairs.select(
        *(attribute(name) for name in both.names),
        *(_combined(label_column(i)) for i in words),
        fn.concat_ws("~", fn.col(ID), fn.col(_right(ID))).alias(ID),
        *map(fn.col, by),
    )


def _present(frame: DataFrame, equal: Sequence[AttributeRef]) -> DataFrame:
    """The tuples that can have a partner. A tuple with NULL in `equal` has none.

    Spark's join of streams would treat two NULL as equal. Normally Spark's optimizer removes such
    tuples, but it does not do so here.
    """
    compared = (fn.col(CLOCK), *(attribute(ref.name) for ref in equal))
    return frame.where(reduce(and_, (column.isNotNull() for column in compared)))


def _matches(node: Join, by: Sequence[str]) -> Column:
    mine, other = fn.col(CLOCK), fn.col(_right(CLOCK))
    early = mine + fn.lit(timedelta(milliseconds=node.lower_ms))
    late = mine + fn.lit(timedelta(milliseconds=node.upper_ms))
    condition = (other >= early) & (other <= late)
    for name in by:
        condition = condition & (fn.col(name) == fn.col(_right(name)))
    for left, right in node.equal:
        condition = condition & (attribute(left.name) == attribute(right.name))
    return condition


def _right(name: str) -> str:
    return _RIGHT + name


def _combined(word: str) -> Column:
    return fn.col(word).bitwiseOR(fn.col(_right(word))).alias(word)

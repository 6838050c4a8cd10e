"""Interval join: its result carries the categories of both sides (004 §3.2, strong semantics)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from operator import and_
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.plan import Join
from catalog.plan_check import event_time, output_schema
from secfilter.columns import ID, attribute, label_column
from secfilter.expressions import to_column

_RIGHT = "__right"


def compile_join(
    node: Join, left: DataFrame, right: DataFrame, words: tuple[int, ...]
) -> DataFrame:
    """Pairs with equal attributes and near event times, as a stream-stream inner join.

    The range on event time, with both sides' watermarks, bounds the state that Spark keeps.
    """
    mine, other = _sides(node)
    renamed = _present(right, other).select(
        *(attribute(name) for name in output_schema(node.right).names),
        *(fn.col(label_column(i)).alias(_right(label_column(i))) for i in words),
        fn.col(ID).alias(_right(ID)),
    )
    pairs = _present(left, mine).join(renamed, _matches(node), "inner")
    if node.condition is not None:
        pairs = pairs.where(to_column(node.condition, output_schema(node)))
    return pairs.select(
        *(attribute(name) for name in output_schema(node).names),
        *(_combined(label_column(i)) for i in words),
        fn.concat_ws("~", fn.col(ID), fn.col(_right(ID))).alias(ID),
    )


def _sides(node: Join) -> tuple[list[str], list[str]]:
    """What must be equal or near, on either side: event time first."""
    # check_plan has refused inputs without event time.
    mine, other = cast(str, event_time(node.left)), cast(str, event_time(node.right))
    pairs = [(left.name, right.name) for left, right in node.equal]
    return [mine, *(name for name, _ in pairs)], [other, *(name for _, name in pairs)]


def _present(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The tuples that can match at all: NULL equals nothing.

    Spark's join of streams would take two NULL for equal; it leaves it to the optimizer, which is
    not asked here, to keep them away.
    """
    return frame.where(reduce(and_, (attribute(name).isNotNull() for name in names)))


def _matches(node: Join) -> Column:
    (mine, *_), (other, *_) = _sides(node)
    early = attribute(mine) + fn.lit(timedelta(milliseconds=node.lower_ms))
    late = attribute(mine) + fn.lit(timedelta(milliseconds=node.upper_ms))
    condition = (attribute(other) >= early) & (attribute(other) <= late)
    for left, right in node.equal:
        condition = condition & (attribute(left.name) == attribute(right.name))
    return condition


def _right(name: str) -> str:
    return _RIGHT + name


def _combined(word: str) -> Column:
    return fn.col(word).bitwiseOR(fn.col(_right(word))).alias(word)

"""Moving windows in Spark: one operator that runs `secfilter.moving_window` over micro-batches.

Spark computes all expressions below the operator, and decodes its results above it. The operator
itself sees texts, times and label words only. It keeps its state as one text for each bucket.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from catalog.checked_plan import CheckedNode
from catalog.expression import AttributeRef, type_of
from catalog.plan import INSTANT, Aggregate, Filter, Moving, MovingWindow, Project, ToStream
from catalog.plan import Column as PlanColumn
from catalog.schema import Schema, Type
from secfilter.columns import ID, attribute, label_column
from secfilter.expressions import to_column
from secfilter.lab import decode_value, encode_attribute, joined
from secfilter.moving_aggregates import Computed, GroupRow
from secfilter.moving_window import Arrival, MovingRelation, Result, Window
from secfilter.timeline import CLOCK, IS_EVENT_TIME, SHIFT_MS

# A window holds so many tuples at most, also those whose time has not come. Their texts are in
# memory while a batch runs.
MAX_HELD = 200_000
# How the names of the observations begin that count the tuples beyond MAX_HELD.
FULL = "moving_window_full"
_BUCKET, _TIME, _PARTITION, _PASSES = "__bucket", "__time", "__partition", "__passes"
_PLACE = "__place"
_ROW, _ARGUMENTS, _NUMBER, _WITHHELD = "__row", "__arguments", "__number", "__withheld"
_STATE = "state string"
_END = 2**62


@dataclass(frozen=True, slots=True)
class _Relation:
    """The parts of a relation: its window, what is computed for each tuple, and its groups."""

    change: ToStream
    moving: CheckedNode
    # The filters and projections of single tuples, those first that come first.
    steps: tuple[CheckedNode, ...]
    aggregate: Aggregate | None
    # The schema of the tuples behind `steps`.
    schema: Schema
    shown: tuple[str, ...]

    @property
    def window(self) -> MovingWindow:
        node = self.moving.node
        if not isinstance(node, Moving):
            raise TypeError("a relation without a moving window")
        return node.window


def compile_moving(
    each: CheckedNode, compile_: Callable[[CheckedNode], DataFrame], words: Sequence[int]
) -> DataFrame:
    """The stream of a relation. `compile_` compiles what is below the window."""
    relation = _relation(each)
    given = _arrivals(relation, compile_(relation.moving.inputs[0]), words)
    columns = (f"{label_column(index)} bigint" for index in words)
    output = f"{_TIME} bigint, {_NUMBER} bigint, {_ROW} string, {', '.join(columns)}"
    operator = _Operator(_engine(relation), tuple(map(label_column, words)))
    made = _run(operator, given, f"{output}, {_WITHHELD} bigint")
    # A query may have several of these, and no two observations have one name.
    withheld = fn.coalesce(fn.sum(_WITHHELD), fn.lit(0)).alias("withheld")
    counted = made.observe(f"{FULL}_{uuid.uuid4().hex}", withheld)
    results = counted.where(fn.col(_WITHHELD) == fn.lit(0))
    instant = fn.timestamp_micros(fn.col(_TIME))
    shown = Schema(each.schema.attributes[1:])
    lineage = fn.concat_ws(
        ":", fn.lit(relation.change.change.value), fn.col(_TIME), fn.col(_NUMBER)
    )
    return results.select(
        instant.alias(INSTANT),
        *decode_value(fn.col(_ROW), shown),
        *(fn.col(label_column(index)) for index in words),
        lineage.alias(ID),
    )


def _run(operator: _Operator, given: DataFrame, output: str) -> DataFrame:
    buckets = given.groupBy(_BUCKET)
    if not given.isStreaming:

        def at_once(frame: pd.DataFrame) -> pd.DataFrame:
            # Spark counts the parameters, also the one of a method that is bound already.
            return operator.at_once(frame)

        return buckets.applyInPandas(at_once, output)
    timeout = GroupStateTimeout.EventTimeTimeout
    return buckets.applyInPandasWithState(operator, output, _STATE, "append", timeout)


def _relation(each: CheckedNode) -> _Relation:
    if not isinstance(each.node, ToStream):
        raise TypeError("no relation")
    below, shown = each.inputs[0], each.inputs[0].schema.names
    outer = below
    aggregated = any(isinstance(inner.node, Aggregate) for inner in below.walk())
    while aggregated and isinstance(below.node, Project):
        # Over an aggregate a Project gives other names and another order, and nothing else.
        shown = tuple(_inner_name(below.node.columns, name) for name in shown)
        below = below.inputs[0]
    aggregate = below.node if isinstance(below.node, Aggregate) else None
    if aggregate is not None:
        below = below.inputs[0]
    else:
        shown = outer.schema.names
    schema, steps = below.schema, []
    while not isinstance(below.node, Moving):
        steps.append(below)
        below = below.inputs[0]
    return _Relation(each.node, below, tuple(reversed(steps)), aggregate, schema, shown)


def _inner_name(columns: Sequence[PlanColumn], name: str) -> str:
    found = next(column.expression for column in columns if column.name == name)
    if not isinstance(found, AttributeRef):
        raise TypeError("a computed column over an aggregate of a moving window")
    return found.name


def _arrivals(relation: _Relation, frame: DataFrame, words: Sequence[int]) -> DataFrame:
    """The input of the operator: for each tuple what `Arrival` has, and the clock."""
    moving = relation.moving
    clock = fn.col(CLOCK)
    kept = [
        *(fn.col(label_column(index)) for index in words),
        *(fn.col(ID), clock, fn.col(_TIME), fn.col(_PARTITION)),
    ]
    partition = [_text(AttributeRef(key.name), moving.schema) for key in relation.window.partition]
    time = fn.unix_micros(attribute(moving.event_time or ""))
    made = frame.withColumns(
        {
            _TIME: time,
            _PARTITION: joined(partition) if partition else fn.lit(""),
            _PASSES: fn.lit(True),
        }
    )
    for step in relation.steps:
        given = step.inputs[0].schema
        match step.node:
            case Filter(_, condition):
                true = fn.coalesce(to_column(condition, given), fn.lit(False))
                made = made.withColumn(_PASSES, fn.col(_PASSES) & true)
            case Project(_, columns):
                values = [to_column(c.expression, given).alias(c.name) for c in columns]
                made = made.select(*values, *kept, fn.col(_PASSES))
    row, arguments = _texts(relation)
    # Spark leaves out what is older than the watermark, by the column with this metadata. It cannot
    # send times after 2262 to a worker, and the clock is there. So the column is a number.
    place = fn.unix_micros(clock).alias(_PLACE, metadata=IS_EVENT_TIME)
    return made.select(
        *(each for each in kept if each is not clock),
        place,
        fn.col(_PASSES),
        row.alias(_ROW),
        arguments.alias(_ARGUMENTS),
        fn.lit(0).alias(_BUCKET),
    ).where(fn.col(_TIME).isNotNull())


def _texts(relation: _Relation) -> tuple[Column, Column]:
    """The text of a tuple's row or of its group's key, and that of the aggregates' arguments."""
    schema, aggregate = relation.schema, relation.aggregate
    if aggregate is None:
        values = [encode_attribute(attribute(name), _type(schema, name)) for name in schema.names]
        return joined(values), fn.lit("")
    keys = [_text(key.expression, schema) for key in aggregate.keys]
    arguments = [
        _text(a.argument, schema) for a in aggregate.aggregations if a.argument is not None
    ]
    return (
        joined(keys) if keys else fn.lit(""),
        joined(arguments) if arguments else fn.lit(""),
    )


def _type(schema: Schema, name: str) -> Type:
    return type_of(AttributeRef(name), schema)


def _text(expression: Any, schema: Schema) -> Column:
    kind = type_of(expression, schema)
    value = to_column(expression, schema)
    # Zero and negative zero are one value of a key.
    return encode_attribute(value + fn.lit(0.0) if kind is Type.DOUBLE else value, kind)


def _engine(relation: _Relation) -> MovingRelation:
    """An empty relation, with its rules."""
    window, aggregate = relation.window, relation.aggregate
    moving = Window(
        None if window.range_ms is None else window.range_ms * 1_000,
        window.rows,
        None if window.slide_ms is None else window.slide_ms * 1_000,
    )
    summary = None
    if aggregate is not None:
        places = [key.name for key in aggregate.keys] + [a.name for a in aggregate.aggregations]
        summary = GroupRow(
            len(aggregate.keys),
            _computed(aggregate, relation.schema),
            tuple(places.index(name) for name in relation.shown),
        )
    return MovingRelation(moving, relation.change.change, summary, MAX_HELD)


def _computed(aggregate: Aggregate, schema: Schema) -> tuple[Computed, ...]:
    found, place = [], 0
    for each in aggregate.aggregations:
        if each.argument is None:
            found.append(Computed(each.function))
        else:
            found.append(Computed(each.function, type_of(each.argument, schema), place))
            place += 1
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Operator:
    """What Spark calls for each micro-batch that has tuples, or in which an instant is complete."""

    empty: MovingRelation
    # The names of the columns with the label words.
    words: tuple[str, ...]

    def __call__(
        self, _key: tuple[Any, ...], frames: Iterable[Any], state: GroupState
    ) -> Iterator[Any]:
        relation = _fresh(self.empty)
        if state.exists:
            (text,) = state.get
            relation.restore(text)
        for frame in frames:
            relation.take(self._arrivals(frame))
        watermark_ms = state.getCurrentWatermarkMs()
        results = relation.until((watermark_ms - SHIFT_MS) * 1_000)
        state.update((relation.to_text(),))
        following = relation.next_instant()
        if following is not None:
            # A timeout comes when the watermark is later than its time.
            place_ms = following // 1_000 + SHIFT_MS
            state.setTimeoutTimestamp(max(place_ms, watermark_ms + 1))
        if results or relation.withheld:
            yield self._frame(results, relation.withheld)

    def at_once(self, frame: Any) -> Any:
        """The results of tuples after which no others come. So all instants are complete."""
        relation = _fresh(self.empty)
        relation.take(self._arrivals(frame))
        return self._frame(relation.until(_END), relation.withheld)

    def _arrivals(self, frame: Any) -> Iterator[Arrival]:
        labels = zip(*(frame[name] for name in self.words), strict=True)
        columns = (frame[name] for name in (_TIME, ID, _PARTITION, _PASSES, _ROW, _ARGUMENTS))
        rows = zip(*columns, strict=True)
        for label, (time, lineage, partition, passes, row, arguments) in zip(
            labels, rows, strict=True
        ):
            words = tuple(map(int, label))
            yield Arrival(int(time), lineage, words, partition, bool(passes), row, arguments)

    def _frame(self, results: Sequence[Result], withheld: int) -> Any:
        rows = [(each.instant, each.number, each.row, *each.label, 0) for each in results]
        if withheld:
            rows.append((0, 0, "", *(0 for _ in self.words), withheld))
        return pd.DataFrame(rows, columns=[_TIME, _NUMBER, _ROW, *self.words, _WITHHELD])


def _fresh(empty: MovingRelation) -> MovingRelation:
    return MovingRelation(empty.window, empty.change, empty.summary, empty.limit)

"""Moving windows in Spark: one operator that runs `secfilter.moving_relation` over micro-batches.

Spark computes all expressions below the operator, and decodes its results above it. The operator
itself sees texts, times and label words only. It keeps its state as one text for each bucket.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.state import GroupState

from catalog.changing_parts import ChangingParts
from catalog.checked_plan import CheckedNode
from catalog.plan import INSTANT, Node, ToStream
from catalog.schema import Schema
from secfilter.buckets import complete_until, keep, kept_text, run_in_buckets
from secfilter.class_views import ClassViews, lineage_in
from secfilter.columns import CLASS, ID, label_column
from secfilter.lab import decode_value
from secfilter.moving_arrivals import (
    ARGUMENTS,
    PARTITION,
    PASSES,
    ROW,
    SIDE,
    TIME,
    Compile,
    arrivals,
)
from secfilter.moving_relation import MovingRelation, Result
from secfilter.moving_rules import RelationRules, rules_of
from secfilter.moving_window import Arrival, HeldLimits, Words

# The windows of a relation hold so much together at most, also with the tuples whose time has not
# come. Their texts are in memory while a batch runs. So much are the pairs of a join at most.
MAX_HELD = HeldLimits(tuples=200_000, characters=128 * 1024 * 1024)
# How the names of the observations begin that count the tuples beyond MAX_HELD.
FULL = "moving_window_full"
_NUMBER, _WITHHELD = "__number", "__withheld"
_END = 2**62
_DIGITS = 19
# Results are sent to Spark when there are so many, or when their texts are so long.
_FRAME = HeldLimits(tuples=10_000, characters=16 * 1024 * 1024)


def compile_moving(
    each: CheckedNode,
    compile_: Compile,
    words: Sequence[int],
    reach_of: Callable[[Node], Words],
    views: ClassViews | None = None,
) -> DataFrame:
    """The stream of a relation.

    `compile_` compiles what is below a window, and `reach_of` gives what the absence of its tuples
    tells of. With views, each class has a relation of its own.
    """
    if not isinstance(each.node, ToStream):
        raise TypeError("no relation")
    parts = ChangingParts.of(each.inputs[0])
    by = () if views is None else (CLASS,)
    given = arrivals(parts, compile_, words, by)
    columns = (f"{label_column(index)} bigint" for index in words)
    output = f"{TIME} bigint, {_NUMBER} bigint, {ROW} string, {', '.join(columns)}"
    operator = _Operator(
        rules_of(
            parts,
            each.node.change,
            MAX_HELD,
            [reach_of(window.moving.node) for window in parts.windows()],
        ),
        tuple(map(label_column, words)),
    )
    made = run_in_buckets(operator, given, f"{output}, {_WITHHELD} bigint", views)
    # A query may have several of these, and no two observations have one name.
    withheld = fn.coalesce(fn.sum(_WITHHELD), fn.lit(0)).alias("withheld")
    counted = made.observe(f"{FULL}_{uuid.uuid4().hex}", withheld)
    results = counted.where(fn.col(_WITHHELD) == fn.lit(0))
    instant = fn.timestamp_micros(fn.col(TIME))
    shown = Schema(each.schema.attributes[1:])
    number = fn.col(_NUMBER).cast("string")
    if views is not None:
        # Results of one instant are sorted by their lineages (`secfilter.order`).
        number = fn.lpad(number, _DIGITS, "0")
    lineage = fn.concat_ws(":", fn.lit(each.node.change.value), fn.col(TIME), number)
    return results.select(
        instant.alias(INSTANT),
        *decode_value(fn.col(ROW), shown),
        *(fn.col(label_column(index)) for index in words),
        lineage_in(by, lineage).alias(ID),
        *map(fn.col, by),
    )


@dataclass(frozen=True, slots=True)
class _Operator:
    """What Spark calls for each micro-batch that has tuples, or in which an instant is complete."""

    rules: RelationRules
    # The names of the columns with the label words.
    words: tuple[str, ...]

    def __call__(
        self, _key: tuple[Any, ...], frames: Iterable[Any], state: GroupState
    ) -> Iterator[Any]:
        relation = self.rules.empty()
        text = kept_text(state)
        if text is not None:
            relation.restore(text)
        for frame in frames:
            self._take(relation, frame)
        yield from self._frames(relation, complete_until(state))
        keep(state, relation.to_text(), relation.next_instant())

    def at_once(self, frame: Any) -> Any:
        """The results of tuples after which no others come. So all instants are complete."""
        relation = self.rules.empty()
        self._take(relation, frame)
        frames = [*self._frames(relation, _END)]
        return pd.concat(frames) if frames else self._frame([])

    def _take(self, relation: MovingRelation, frame: Any) -> None:
        for side in range(len(self.rules.windows)):
            relation.take(self._arrivals(frame[frame[SIDE] == side]), side)

    def _arrivals(self, frame: Any) -> Iterator[Arrival]:
        labels = zip(*(frame[name] for name in self.words), strict=True)
        columns = (frame[name] for name in (TIME, ID, PARTITION, PASSES, ROW, ARGUMENTS))
        rows = zip(*columns, strict=True)
        for label, (time, lineage, partition, passes, row, arguments) in zip(
            labels, rows, strict=True
        ):
            words = tuple(map(int, label))
            yield Arrival(int(time), lineage, words, partition, bool(passes), row, arguments)

    def _frames(self, relation: MovingRelation, until: int) -> Iterator[Any]:
        """The results up to an instant, and how many tuples were left out."""
        chunk: list[Result] = []
        characters = 0
        for result in relation.until(until):
            chunk.append(result)
            characters += len(result.row)
            if len(chunk) >= _FRAME.tuples or characters >= _FRAME.characters:
                yield self._frame(chunk)
                chunk, characters = [], 0
        if chunk:
            yield self._frame(chunk)
        if relation.withheld:
            yield self._frame([], relation.withheld)

    def _frame(self, results: Sequence[Result], withheld: int = 0) -> Any:
        rows = [(each.instant, each.number, each.row, *each.label, 0) for each in results]
        if withheld:
            rows.append((0, 0, "", *(0 for _ in self.words), withheld))
        return pd.DataFrame(rows, columns=[TIME, _NUMBER, ROW, *self.words, _WITHHELD])

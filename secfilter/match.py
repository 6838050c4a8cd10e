"""Event patterns in Spark: one operator that runs `secfilter.matching` over micro-batches.

Spark computes the values of rows below the operator, and decodes its results above it. The operator
itself sees texts, times and label words only. The partitions of a pattern are spread over buckets,
and the state of each bucket is one text. So a batch reads and writes only the buckets that change.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.state import GroupState

from catalog.checked_plan import CheckedNode
from catalog.label import Label
from catalog.match_expressions import MatchExpressions
from catalog.plan import MATCH_TIME, Match
from catalog.schema import Schema
from secfilter.buckets import (
    complete_until,
    frame_of,
    joined,
    keep,
    kept_text,
    run_in_buckets,
)
from secfilter.class_views import ClassViews, lineage_in
from secfilter.columns import CLASS, ID, attribute, label_column
from secfilter.lab import decode_value
from secfilter.match_rules import MatchRules, match_rules
from secfilter.matching import Matching, MatchResult
from secfilter.moving_arrivals import (
    ARGUMENTS,
    BUCKET,
    PARTITION,
    ROW,
    TIME,
    place_column,
    value_text,
    value_texts,
)
from secfilter.moving_window import Arrival, HeldLimits
from secfilter.remembered import IN_PROCESS

# So much the rows of a bucket are at most, with those whose time has not come. Their texts are in
# memory while a batch runs.
MAX_HELD = HeldLimits(tuples=50_000, characters=32 * 1024 * 1024)
# So many ways to read the rows of one partition are open at most. Each row costs so many steps.
MAX_WAYS = 1_000
# Another number would give a partition another bucket, and so lose its state.
_BUCKETS = 16
# How the names of the observations begin that count what is beyond these limits.
FULL = "pattern_full"
_LINEAGE, _WITHHELD = "__lineage", "__withheld"
_END = 2**62
_FRAME = 10_000


def compile_match(
    each: CheckedNode,
    given: DataFrame,
    words: Sequence[int],
    absent: Label,
    views: ClassViews | None = None,
) -> DataFrame:
    """The matches over the rows that are `given`, or their rows.

    `absent` has the categories of all that must not be there, in the bits of the layout. With
    views, each class has rows of its own.
    """
    node, schema = each.node, each.inputs[0].schema
    if not isinstance(node, Match):
        raise TypeError("no pattern")
    labels = tuple(map(label_column, words))
    by = () if views is None else (CLASS,)
    rows = _rows(node, each.inputs[0], given, (*labels, *by))
    never = tuple(map(absent.word, words)) if absent.bits else ()
    rules = match_rules(node, schema, never, MAX_HELD, MAX_WAYS)
    columns = ", ".join(f"{name} bigint" for name in labels)
    output = f"{TIME} bigint, {_LINEAGE} string, {ROW} string, {columns}, {_WITHHELD} bigint"
    # A query may have several of these, and no two observations have one name.
    name = uuid.uuid4().hex
    made = run_in_buckets(_Operator(name, rules, labels), rows, output, views)
    withheld = fn.coalesce(fn.sum(_WITHHELD), fn.lit(0)).alias("withheld")
    counted = made.observe(f"{FULL}_{name}", withheld)
    results = counted.where(fn.col(_WITHHELD) == fn.lit(0))
    shown = Schema(each.schema.attributes[1:])
    lineage = fn.concat(fn.lit("match:"), fn.col(_LINEAGE))
    if views is not None and views.by_role:
        # Two roles may see other rows behind the same first one.
        lineage = fn.concat_ws(":", lineage, fn.col(TIME), fn.sha2(fn.col(ROW), 256))
    values = decode_value(fn.col(ROW), shown) if shown.attributes else []
    return results.select(
        fn.timestamp_micros(fn.col(TIME)).alias(MATCH_TIME),
        *values,
        *(fn.col(name) for name in labels),
        lineage_in(views, lineage).alias(ID),
        *map(fn.col, by),
    )


def _rows(node: Match, below: CheckedNode, given: DataFrame, kept: Sequence[str]) -> DataFrame:
    """For each row what the operator reads, its place on the clock, and the columns `kept`."""
    values = MatchExpressions(node, below.schema).values
    partition = value_texts([value_text(key, below.schema) for key in node.partition])
    rows = given.select(
        fn.unix_micros(attribute(below.event_time or "")).alias(TIME),
        fn.col(ID),
        partition.alias(PARTITION),
        value_texts([value_text(value, below.schema) for value in values]).alias(ARGUMENTS),
        *(fn.col(name) for name in kept),
        place_column(),
    )
    bucket = fn.pmod(fn.crc32(fn.col(PARTITION)), fn.lit(_BUCKETS)).cast("int")
    return rows.where(fn.col(TIME).isNotNull()).withColumn(BUCKET, bucket)


@dataclass(frozen=True, slots=True)
class _Operator:
    """What Spark calls for each bucket that has rows, or in which a time is over."""

    # No other operator has this name.
    name: str
    rules: MatchRules
    # The names of the columns with the label words.
    words: tuple[str, ...]

    def __call__(
        self, _key: tuple[Any, ...], frames: Iterable[Any], state: GroupState
    ) -> Iterator[Any]:
        matching = IN_PROCESS.go_on(self.name, kept_text(state), self.rules.empty)
        for frame in frames:
            matching.take(self._arrivals(frame))
        yield from self._frames(matching, complete_until(state))
        # The state stays also when nothing waits: it says which rows are too late.
        keep(state, IN_PROCESS.keep(self.name, matching), matching.next_time())

    def at_once(self, frame: Any) -> Any:
        """The matches of rows after which no others come."""
        matching = self.rules.empty()
        matching.take(self._arrivals(frame))
        frames = [*self._frames(matching, _END)]
        return joined(frames) if frames else self._frame([])

    def _arrivals(self, frame: Any) -> Iterator[Arrival]:
        # Lists of Python's own numbers and texts: to ask pandas for each takes much longer.
        labels = zip(*(frame[name].tolist() for name in self.words), strict=True)
        given = (frame[name].tolist() for name in (TIME, ID, PARTITION, ARGUMENTS))
        for label, row in zip(labels, zip(*given, strict=True), strict=True):
            time, lineage, partition, arguments = row
            yield Arrival(time, lineage, label, partition, True, "", arguments)

    def _frames(self, matching: Matching, until: int) -> Iterator[Any]:
        """The matches up to a time, and how many rows and attempts were left out."""
        chunk: list[MatchResult] = []
        for result in matching.until(until):
            chunk.append(result)
            if len(chunk) >= _FRAME:
                yield self._frame(chunk)
                chunk = []
        if chunk:
            yield self._frame(chunk)
        if matching.withheld:
            yield self._frame([], matching.withheld)

    def _frame(self, results: Sequence[MatchResult], withheld: int = 0) -> Any:
        rows = [(each.time, each.lineage, each.row, *each.label, 0) for each in results]
        if withheld:
            rows.append((0, "", "", *(0 for _ in self.words), withheld))
        return frame_of(rows, [TIME, _LINEAGE, ROW, *self.words, _WITHHELD])

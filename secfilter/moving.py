"""Moving windows in Spark: one operator that runs `secfilter.moving_relation` over micro-batches.

Spark computes all expressions below the operator, and decodes its results above it. The operator
itself sees texts, times and label words only. It keeps its state as one text for each bucket.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.state import GroupState

from catalog.changing_parts import ChangingParts
from catalog.checked_plan import CheckedNode
from catalog.plan import INSTANT, Change, Node, ToStream
from catalog.run_counts import NO_ROOM
from catalog.schema import Schema
from catalog.upserts import keys_of
from secfilter.buckets import (
    call_again,
    complete_until,
    frame_of,
    joined,
    keep,
    kept_text,
    run_in_buckets,
)
from secfilter.class_views import ClassViews, lineage_in
from secfilter.columns import CLASS, GIVEN_TO, ID, LEFT_OUT, label_column
from secfilter.given_to import FOR_EVERYBODY, for_reader, for_topics, stands_again
from secfilter.lab import NULL_MARK, SEPARATOR, decode_value
from secfilter.left_out import LINEAGE, is_left_out, left_out_lineage, left_out_text
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
from secfilter.moving_window import Arrival, HeldLimits, Words, united
from secfilter.remembered import IN_PROCESS
from secfilter.standing import Kept, Receiver, Receivers

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


def compile_moving(  # noqa: PLR0913  # each is known to another part of the caller
    each: CheckedNode,
    compile_: Compile,
    words: Sequence[int],
    reach_of: Callable[[Node], Words],
    views: ClassViews | None = None,
    receivers: Receivers | None = None,
    *,
    tells: bool = False,
    readers: Collection[int] | None = None,
) -> DataFrame:
    """The stream of a relation.

    `compile_` compiles what is below a moving window, and `reach_of` gives what the absence of
    its tuples reveals. With views, each class has a relation of its own. `receivers` get the rows
    of upserts that stand. Upserts have a column that says to whom they go (`secfilter.given_to`).
    `readers` are the ids by which the outputs below give the run their rows that stand.

    With `tells`, tuples that are left out, because there is no room, come beside the results: their
    attributes are NULL, and the column `LEFT_OUT` says why (`secfilter.left_out`).
    """
    if not isinstance(each.node, ToStream):
        raise TypeError("no relation")
    parts = ChangingParts.of(each.inputs[0])
    by = () if views is None else (CLASS,)
    given = arrivals(parts, compile_, words, views)
    columns = (f"{label_column(index)} bigint" for index in words)
    output = f"{TIME} bigint, {_NUMBER} bigint, {ROW} string, {', '.join(columns)}"
    upserts = each.node.change is Change.UPSERT
    # A query may have several of these, and no two observations have one name.
    name = uuid.uuid4().hex
    operator = _Operator(
        name,
        rules_of(
            parts,
            each.node.change,
            MAX_HELD,
            [reach_of(window.moving.node) for window in parts.windows()],
            keys_of(each.node.input) if upserts else (),
            # A class with a relation of its own begins with what comes then.
            whole=views is None and given.isStreaming,
        ).read_by(readers),
        tuple(map(label_column, words)),
        receivers,
    )
    output = f"{output}, {_WITHHELD} bigint, {GIVEN_TO} string, {LINEAGE} string"
    made = run_in_buckets(operator, given, output, views)
    withheld = fn.coalesce(fn.sum(_WITHHELD), fn.lit(0)).alias("withheld")
    counted = made.observe(f"{FULL}_{name}", withheld)
    results = counted.where(fn.col(_WITHHELD) == fn.lit(0))
    if not tells:
        results = results.where(~is_left_out())
    instant = fn.timestamp_micros(fn.col(TIME))
    shown = Schema(each.schema.attributes[1:])
    nothing = fn.lit(SEPARATOR.join([NULL_MARK] * len(shown.attributes)))
    results = results.withColumn(ROW, fn.when(is_left_out(), nothing).otherwise(fn.col(ROW)))
    number = fn.col(_NUMBER).cast("string")
    if views is not None:
        # Results of one instant are sorted by their lineages (`secfilter.order`).
        number = fn.lpad(number, _DIGITS, "0")
    if views is not None and views.by_role:
        # The number depends on what else the role sees.
        number = fn.sha2(fn.col(ROW), 256)
    # A row that stands, and one that comes at the same instant, have other numbers.
    change = fn.lit(each.node.change.value)
    kind = fn.when(stands_again(), fn.lit("standing")).otherwise(change)
    lineage = fn.concat_ws(":", kind, fn.col(TIME), number)
    lineage = fn.when(is_left_out(), left_out_lineage(fn.col(_NUMBER))).otherwise(lineage)
    told = left_out_text(NO_ROOM, instant, fn.col(_NUMBER))
    return results.select(
        instant.alias(INSTANT),
        *decode_value(fn.col(ROW), shown),
        *(fn.col(label_column(index)) for index in words),
        lineage_in(views, lineage).alias(ID),
        *map(fn.col, by),
        *([fn.col(GIVEN_TO)] if upserts else []),
        *([told.alias(LEFT_OUT)] if tells else []),
    )


@dataclass(frozen=True, slots=True)
class _Operator:
    """What Spark calls for each micro-batch that has tuples, or in which an instant is complete."""

    # No other operator has this name.
    name: str
    rules: RelationRules
    # The names of the columns with the label words.
    words: tuple[str, ...]
    receivers: Receivers | None = None

    def __call__(
        self, _key: tuple[Any, ...], frames: Iterable[Any], state: GroupState
    ) -> Iterator[Any]:
        if self.receivers is not None:
            yield from self._with_standing(self.receivers, frames, state)
            return
        relation = self._relation(kept_text(state))
        for frame in frames:
            self._take(relation, frame)
        yield from self._frames(relation, complete_until(state))
        keep(state, IN_PROCESS.keep(self.name, relation), relation.next_instant())

    def _with_standing(
        self, receivers: Receivers, frames: Iterable[Any], state: GroupState
    ) -> Iterator[Any]:
        """The same, also with the rows that stand. The relation is read only if it is needed."""
        kept, until = Kept.of(kept_text(state)), complete_until(state)
        now_ms = state.getCurrentProcessingTimeMs()
        rows = (frame for frame in frames if len(frame))
        first = next(rows, None)
        due = receivers.due(kept.given, now_ms)
        if first is None and not due and not kept.changes_by(until):
            call_again(state, until if receivers.grow else kept.following)
            return
        relation = self._relation(kept.relation)
        for frame in chain(() if first is None else (first,), rows):
            self._take(relation, frame)
        yield from self._frames(relation, until)
        if kept.relation is None:
            # These are the first changes, so no class lacks any.
            due = tuple(each for each in due if each.reader is not None)
        yield from self._standing(receivers, relation, until, due)
        given, following = receivers.given(kept.given, now_ms), relation.next_instant()
        text = Kept(IN_PROCESS.keep(self.name, relation), given, following).text()
        keep(state, text, until if receivers.grow else following)

    def _standing(
        self,
        receivers: Receivers,
        relation: MovingRelation,
        until: int,
        due: Sequence[Receiver],
    ) -> Iterator[Any]:
        """The rows that stand at this instant, for those that are due. All changes are later."""
        topics = [topic for each in due for topic in each.topics]
        if topics:
            yield from self._chunks(relation.standing(until), for_topics(topics))
        mark = SEPARATOR.join(["true", *(NULL_MARK for _ in self.rules.keys)])
        for each in due:
            if each.reader is not None:
                to = for_reader(each.topics, each.reader)
                yield self._frame([Result(until, -1, mark, receivers.words)], to)

    def _relation(self, text: str | None) -> MovingRelation:
        return IN_PROCESS.go_on(self.name, text, self.rules.empty)

    def at_once(self, frame: Any) -> Any:
        """The results of tuples after which no others come. So all instants are complete."""
        relation = self.rules.empty()
        self._take(relation, frame)
        frames = [*self._frames(relation, _END)]
        return joined(frames) if frames else self._frame([])

    def _take(self, relation: MovingRelation, frame: Any) -> None:
        for side in range(len(self.rules.windows)):
            relation.take(self._arrivals(frame[frame[SIDE] == side]), side)

    def _arrivals(self, frame: Any) -> Iterator[Arrival]:
        # Lists of Python's own values: to ask pandas for each takes much longer.
        labels = zip(*(frame[name].tolist() for name in self.words), strict=True)
        columns = (TIME, ID, PARTITION, PASSES, ROW, ARGUMENTS)
        rows = zip(*(frame[name].tolist() for name in columns), strict=True)
        for label, (time, lineage, *others) in zip(labels, rows, strict=True):
            yield Arrival(time, lineage, label, *others)

    def _frames(self, relation: MovingRelation, until: int) -> Iterator[Any]:
        """The results up to an instant, and how many tuples were left out."""
        yield from self._chunks(relation.until(until), FOR_EVERYBODY)
        if relation.left_out and self.rules.tells:
            yield self._left_out(relation)
        if relation.withheld:
            yield self._frame([], withheld=relation.withheld)

    def _left_out(self, relation: MovingRelation) -> Any:
        """The tuples that were left out. That there is no room reveals all that the windows hold.

        So each of them carries all labels that can be there.
        """
        rows = []
        for side, each in relation.left_out:
            if self.rules.windows[side].of_all and not each.passes:
                # It may be one that its class may not see.
                continue
            label = united((each.label, self.rules.reach)) if self.rules.reach else each.label
            rows.append((each.time, side, "", *label, 0, FOR_EVERYBODY, each.lineage))
        return self._of_rows(rows)

    def _chunks(self, results: Iterable[Result], to: str) -> Iterator[Any]:
        chunk: list[Result] = []
        characters = 0
        for result in results:
            chunk.append(result)
            characters += len(result.row)
            if len(chunk) >= _FRAME.tuples or characters >= _FRAME.characters:
                yield self._frame(chunk, to)
                chunk, characters = [], 0
        if chunk:
            yield self._frame(chunk, to)

    def _frame(self, results: Sequence[Result], to: str = FOR_EVERYBODY, withheld: int = 0) -> Any:
        rows = [(each.instant, each.number, each.row, *each.label, 0, to, "") for each in results]
        if withheld:
            rows.append((0, 0, "", *(0 for _ in self.words), withheld, to, ""))
        return self._of_rows(rows)

    def _of_rows(self, rows: Sequence[tuple[Any, ...]]) -> Any:
        return frame_of(rows, [TIME, _NUMBER, ROW, *self.words, _WITHHELD, GIVEN_TO, LINEAGE])

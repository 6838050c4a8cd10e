"""Compiles a plan to a DataFrame: one rule for each node, with labels as columns (004 §3.2).

Filter and Project copy the label. Union makes the labels of its inputs equal in shape. Join
combines the labels of both sides. Aggregate combines the labels of the whole group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from catalog.checked_plan import CheckedNode, CheckedPlan, StateKind
from catalog.conflict_class import LEVEL, ConflictClass
from catalog.label import PUBLIC, Label, combine
from catalog.label_layout import LabelLayout
from catalog.plan import (
    Aggregate,
    Filter,
    Join,
    Match,
    Moving,
    MovingJoin,
    Node,
    Plan,
    Project,
    Ranked,
    SessionWindow,
    Source,
    ToStream,
    Union,
    Unnest,
    Windowed,
    walk,
)
from catalog.plan import Column as PlanColumn
from catalog.reach import ReachOf, reach
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, SenderNumbers
from catalog.schema import Schema
from catalog.upserts import upsert_keys
from secfilter.aggregate import Grouping, compile_aggregate
from secfilter.class_views import ClassViews
from secfilter.columns import (
    CLASS,
    ECHO,
    ID,
    LEFT_OUT,
    SENDER,
    TICK_COLUMN,
    attribute,
    check_names,
    label_column,
)
from secfilter.elements import Elements
from secfilter.expressions import to_column
from secfilter.join import Side, compile_join
from secfilter.label_words import packed_words, with_floor, words
from secfilter.levels import level_of
from secfilter.match import compile_match
from secfilter.moving import compile_moving
from secfilter.standing import Receivers
from secfilter.timeline import CLOCK, moved_by_ticks, no_clock, to_clock

NumbersOf = Callable[[Relation], SenderNumbers]
"""Gives the independent senders of a stream."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A plan as a DataFrame: attributes of `schema`, the label words of `layout`, `__id`.

    If the plan was compiled for viewers, each result also has its class, `__class`. `event_time` is
    the attribute with the event time, or None. If it `tells`, there is a column `LEFT_OUT`.
    """

    frame: DataFrame
    schema: Schema
    layout: LabelLayout
    keys: tuple[str, ...] = ()
    event_time: str | None = None
    tells: bool = False


def compile_plan(  # noqa: PLR0913  # each is known to another part of the caller
    checked: CheckedPlan,
    source: Callable[[Relation], DataFrame],
    reach_of: ReachOf,
    numbers_of: NumbersOf = lambda _relation: {},
    *,
    layout: LabelLayout | None = None,
    narrow: bool = False,
    classes: Sequence[ConflictClass] = (),
    floor: Label = PUBLIC,
    viewers: Sequence[FanOutClass] | None = None,
    by_role: bool = False,
    beside: Sequence[str] = (),
    receivers: Receivers | None = None,
    repeats: bool = False,
    tells: bool = False,
    readers: Collection[int] | None = None,
) -> Compiled:
    """Compile a plan.

    `source` gives a relation's tuples: its attributes, its label words (those of `reach_of`) and
    `__id`. If the plan counts the relation's senders (`catalog.reach.counted_streams`), it also
    gives `__sender`. In a plan that keeps state, it also gives the ticks of a relation that has
    some, and their column. It is called once for each Source. `numbers_of` gives a relation's
    independent senders. `layout` is the layout of the checkpoint, and must hold the plan's reach;
    without it the plan gets a new one. `narrow` says that each source has one partition. Stateful
    nodes then need no shuffle. `classes` are the
    conflict classes of the levels that the plan shows. Each result also carries `floor`. With
    `viewers`, the plan runs over the tuples that each of these classes may see, for each one by
    itself, and each result is of one class. If they are views `by_role`, a class has several, and
    `secfilter.merged_views` merges their results. `beside` are columns that `source` also gives,
    and each result has those of its tuple; a plan that keeps state has none. If
    `secfilter.columns.ECHO` is one of them, `source` also gives ticks, and nothing in the plan
    leaves them out. `receivers` get the rows that stand of a plan that gives upserts. With
    `repeats`, a tuple of a stream may come twice, with one lineage. With `tells`, the tuples that
    moving windows leave out come beside the results (`secfilter.left_out`). `readers` are the ids
    by which outputs give the run their rows that stand. Raises InvalidInput for a plan that uses
    the name of one of the platform's own columns.
    """
    for each in checked.root.walk():
        check_names(each.schema)
    reached = reach(checked.plan, reach_of) | floor
    layout = LabelLayout.of(reached) if layout is None else layout
    if not layout.holds(reached):
        # Categories without a bit would be lost, and their tuples visible to everybody.
        raise ValueError("the layout has no bit for a category that the plan reaches")
    known = {each.id: each for each in classes}
    views = None if viewers is None else ClassViews(tuple(viewers), layout, by_role)
    compiler = _Compiler(
        *(source, reach_of, numbers_of, layout, checked, known, narrow, views),
        *(tuple(beside), receivers, repeats, tells, readers),
    )
    frame = with_floor(compiler.compile(checked.root), layout, floor)
    keys = upsert_keys(checked.plan)
    return Compiled(frame, checked.schema, layout, keys, checked.event_time, tells)


@dataclass(frozen=True, slots=True)
class _Compiler:
    source: Callable[[Relation], DataFrame]
    reach_of: ReachOf
    numbers_of: NumbersOf
    layout: LabelLayout
    checked: CheckedPlan
    classes: Mapping[int, ConflictClass]
    narrow: bool
    views: ClassViews | None
    beside: tuple[str, ...]
    receivers: Receivers | None
    # Whether a tuple of a stream may come twice, as one of an output may.
    repeats: bool
    # Whether the compiled node gives what is left out, too.
    tells: bool
    readers: Collection[int] | None
    # Whether the compiled node is below a join, a moving window, a pattern or a session window.
    pairing: bool = False
    # Whether the compiled node is below an aggregate that counts senders.
    counting: bool = False
    # Whether the compiled node is below one that keeps state, so that its tuples need a clock.
    clocked: bool = False
    # Whether each class gets the tuples that it may not see, too. The window above shows none.
    hidden: bool = False

    def compile(self, each: CheckedNode) -> DataFrame:
        match each.node:
            case Source():
                return self._results(self._source(each.node))
            case Filter(_, condition):
                wanted = to_column(condition, each.inputs[0].schema)
                return self.compile(each.inputs[0]).where(self._or_no_tuple(wanted))
            case Project(_, columns):
                return self._project(columns, each.inputs[0])
            case Union():
                return self._union(each)
            case Unnest():
                return self._unnest(each.node, each.inputs[0])
            case Join():
                left, right = map(self._side, each.inputs)
                joined = compile_join(
                    *(each.node, left, right, words(self.layout), self._class()),
                    clocked=self.clocked,
                )
                return self._results(joined)
            case Windowed():
                # The aggregate above puts the tuples into the windows.
                return self.compile(each.inputs[0])
            case Aggregate():
                return self._results(self._aggregate(each.node, each.inputs[0]))
            case ToStream():
                below = self._below(pairing=True)
                return compile_moving(
                    *(each, below._below_window, words(self.layout), self._reach_words, self.views),
                    self._receivers(),
                    tells=self.tells,
                    readers=self.readers,
                )
            case Match():
                rows = self._below(pairing=True).compile(each.inputs[0])
                absent = self._absent(each.node)
                return self._results(
                    compile_match(each, rows, words(self.layout), absent, self.views)
                )
            case Moving() | MovingJoin() | Ranked():
                raise TypeError("a moving window is compiled with the stream of its relation")

    def _below_window(self, moving: CheckedNode) -> DataFrame:
        """What is below a moving window, also the hidden tuples if they count there."""
        of_all = isinstance(moving.node, Moving) and moving.node.window.of_all
        return replace(self, hidden=of_all).compile(moving.inputs[0])

    def _results(self, frame: DataFrame) -> DataFrame:
        """Tuples none of which was left out."""
        nothing = fn.lit(None).cast("string")
        return frame.withColumn(LEFT_OUT, nothing) if self.tells else frame

    def _or_no_tuple(self, condition: Column) -> Column:
        """The condition, or true for what has no attributes: ticks, and what was left out."""
        for name in (*([ECHO] if ECHO in self.beside else []), *self._told()):
            condition |= fn.col(name).isNotNull()
        return condition

    def _told(self) -> tuple[str, ...]:
        return (LEFT_OUT,) if self.tells else ()

    def _source(self, node: Source) -> DataFrame:
        relation = node.relation
        classes = [self.classes[each] for each in relation.conflict_classes if node.shows_level]
        level = level_of(classes, self.reach_of(relation)).alias(LEVEL)
        frame = self.source(relation).select(
            *_attributes(relation.schema),
            *([level] if node.shows_level else []),
            *packed_words(self.layout, self.reach_of(relation)),
            fn.col(ID),
            *([fn.col(SENDER)] if self.counting else []),
            *([_clock(relation).alias(CLOCK)] if self.checked.keeps_state else []),
            *([fn.col(TICK_COLUMN)] if self._by_ticks(relation) else []),
            *map(fn.col, self.beside),
        )
        if self.checked.keeps_state and relation.event_time is not None:
            timed = self._timed(frame, relation)
            # Do this after the watermark, because Spark forgets there that it has one partition.
            narrowed = timed.coalesce(1) if self.narrow else timed
            return self._each_once(self._divided(narrowed, relation), relation)
        return self._divided(frame, relation)

    def _divided(self, frame: DataFrame, relation: Relation) -> DataFrame:
        """Each tuple once for each class that sees it. All tuples move time, for all classes."""
        if self.views is None:
            return frame
        divide = self.views.to_all if self.hidden else self.views.divided
        return divide(frame, relation.kind)

    def _class(self) -> tuple[str, ...]:
        """The columns by which all state is apart, besides what the plan itself names."""
        return () if self.views is None else (CLASS,)

    def _each_once(self, timed: DataFrame, relation: Relation) -> DataFrame:
        """The relation's tuples without those that come again.

        A repeated tuple has the same lineage. On one machine a stream needs no state for this,
        because ingest never writes a tuple to a stream's lab topic twice.
        """
        if self._may_repeat(relation) and timed.isStreaming:
            return timed.dropDuplicatesWithinWatermark([*self._class(), ID])
        return timed

    def _may_repeat(self, relation: Relation) -> bool:
        return self.repeats or relation.kind is RelationKind.OUTPUT

    def _side(self, side: CheckedNode) -> Side:
        """One side of a join."""
        frame = self._below(pairing=True).compile(side)
        of_windows = any(each.state is StateKind.GROUPS for each in side.walk())
        end = side.event_time if of_windows else None
        return Side(frame, side.schema, self._reach_words(side.node), end)

    def _reach_words(self, node: Node) -> tuple[int, ...]:
        """What the absence of a node's tuples reveals, as words of the layout.

        That is all that its tuples can carry. But a class that has a view of its own learns of no
        tuple that it may not see, so there it is nothing.
        """
        if self.views is not None:
            return tuple(0 for _ in words(self.layout))
        packed = self.layout.packed(reach(Plan(node), self.reach_of))
        return tuple(packed.word(index) for index in words(self.layout))

    def _receivers(self) -> Receivers | None:
        """The receivers with the words of their mark."""
        if self.receivers is None:
            return None
        packed = self.layout.packed(self.receivers.mark)
        own = tuple(packed.word(index) for index in words(self.layout))
        return replace(self.receivers, words=own)

    def _aggregate(self, node: Aggregate, windows: CheckedNode) -> DataFrame:
        grouping = Grouping(
            *(node, windows, self.checked.emission), views=self.views, clocked=self.clocked
        )
        if grouping.least is None:
            # A tuple may be exactly as old as the end of its session.
            following = isinstance(grouping.window, SessionWindow)
            given = self._below(pairing=following).compile(windows)
            return compile_aggregate(grouping, given, self.layout)
        # What counts senders is over one stream.
        (stream,) = (n.relation for n in walk(node) if isinstance(n, Source))
        counted = replace(grouping, independent=self.numbers_of(stream))
        given = replace(self._below(), counting=True).compile(windows)
        return compile_aggregate(counted, given, self.layout)

    def _below(self, *, pairing: bool = False) -> _Compiler:
        """The compiler of what is below a node that keeps state."""
        return replace(self, clocked=True, pairing=self.pairing or pairing, tells=False)

    def _absent(self, node: Match) -> Label:
        """What a match tells by saying that streams have no tuple (see `_reach_words`)."""
        if self.views is not None:
            return PUBLIC
        streams = (each.relation for each in walk(node) if isinstance(each, Source))
        named = (self.reach_of(stream) for stream in streams if stream.name in node.absent)
        return self.layout.packed(combine(named))

    def _by_ticks(self, relation: Relation) -> bool:
        return self.checked.keeps_state and relation.by_ticks

    def _timed(self, frame: DataFrame, relation: Relation) -> DataFrame:
        """The relation's tuples, behind what moves time."""
        if self._by_ticks(relation):
            return moved_by_ticks(frame)
        # Do this before any filter, because all tuples of the relation move time forward.
        return frame.withWatermark(CLOCK, f"{self._delay_ms(relation)} milliseconds")

    def _delay_ms(self, relation: Relation) -> int:
        """How far Spark's watermark stays behind the relation's newest tuple (ms).

        Joins and the removal of repeated tuples also drop a tuple that is exactly as old as the
        watermark. But a tuple that lags by exactly the lateness is in time.
        """
        inclusive = self.pairing or self._may_repeat(relation)
        return relation.lateness_ms + 1 if inclusive else relation.lateness_ms

    def _project(self, columns: Sequence[PlanColumn], given: CheckedNode) -> DataFrame:
        made = [to_column(c.expression, given.schema).alias(c.name) for c in columns]
        return self.compile(given).select(*made, *self._carried(), *self._clock())

    def _unnest(self, node: Unnest, given: CheckedNode) -> DataFrame:
        elements = Elements.of(node, given.schema)
        frame = elements.spread(self.compile(given))
        if not node.keeps:
            frame = frame.where(self._or_no_tuple(elements.is_there()))
        return frame.select(
            *_attributes(given.schema),
            *elements.columns(),
            *self._carried(),
            *self._clock(),
        )

    def _union(self, each: CheckedNode) -> DataFrame:
        clock = self._clock()
        frames = [self._branch(index, below, clock) for index, below in enumerate(each.inputs)]
        result = frames[0]
        for frame in frames[1:]:
            result = result.union(frame)
        return result

    def _branch(self, index: int, branch: CheckedNode, clock: Sequence[Column]) -> DataFrame:
        # A tuple may come through two branches. That gives two results.
        lineage = fn.concat(fn.lit(f"{index}/"), fn.col(ID)).alias(ID)
        attributes = _attributes(branch.schema)
        own = (*self._words(), *map(fn.col, (*self._class(), *self.beside, *self._told())))
        return self.compile(branch).select(*attributes, *own, lineage, *clock)

    def _words(self) -> list[Column]:
        return [fn.col(label_column(index)) for index in words(self.layout)]

    def _clock(self) -> list[Column]:
        return [fn.col(CLOCK)] if self.clocked else []

    def _carried(self) -> Iterable[Column]:
        sender = (SENDER,) if self.counting else ()
        own = (ID, *sender, *self._class(), *self.beside, *self._told())
        return (*self._words(), *map(fn.col, own))


def _clock(relation: Relation) -> Column:
    return no_clock() if relation.event_time is None else to_clock(attribute(relation.event_time))


def _attributes(schema: Schema) -> list[Column]:
    return [attribute(name) for name in schema.names]

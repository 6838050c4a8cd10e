"""The plan of a query: a tree of frozen values that depends on no language and no engine.

Each node holds its inputs. `catalog.analysis.analyse` computes the schema and the other properties
of each node. A plan does not mention labels. All nodes have one rule for them: a result carries
the union of the labels of all tuples from which it was derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from catalog.conflict_class import LEVEL
from catalog.expression import AttributeRef, Expression
from catalog.pattern import PAST_LAST_ROW, Definition, Pattern, Reading, Skip, rows_ahead
from catalog.relation import Relation
from catalog.schema import Attribute, Schema, Type

_LEVEL = Attribute(LEVEL, Type.STRING, required=True)


@dataclass(frozen=True, slots=True)
class Source:
    """All tuples of a relation, from the moment when the query was added.

    With `shows_level` they have one more attribute, which is called `level`: the level of the tuple
    as a text (001 §3).
    """

    relation: Relation
    shows_level: bool = False

    @property
    def schema(self) -> Schema:
        """The attributes of the tuples."""
        own = self.relation.schema
        return Schema((*own.attributes, _LEVEL)) if self.shows_level else own


@dataclass(frozen=True, slots=True)
class Filter:
    """The tuples for which the condition is true (not false, not NULL)."""

    input: Node
    condition: Expression


@dataclass(frozen=True, slots=True)
class Column:
    """A named result of a Project."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Project:
    """A new tuple with exactly these columns for each tuple (Borealis: map)."""

    input: Node
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """All tuples of all inputs. The schemas of the inputs have equal names and types."""

    inputs: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unnest:
    """Each tuple once for each element of an array (SQL: UNNEST, EXPLODE).

    The result has the attributes of the input and the element as `name`. If `number` is a name, it
    has the place of the element there, from 1. Of an array with more than `MAX_ELEMENTS` (in
    `catalog.plan_check`) elements, the first ones count. With `keeps`, a tuple without elements is
    there once, and both are NULL.
    """

    input: Node
    array: Expression
    name: str
    number: str | None = None
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """Windows over event time: [offset + n·slide, offset + n·slide + size), in milliseconds.

    They are counted from 1970 UTC. `slide == size` is a tumbling window (TUMBLE), a smaller slide a
    hopping one (HOP). The offset is from 0 to below the slide. A week with an offset of four days
    begins on Monday, because 1970 began on a Thursday.
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """Windows over event time that follow the tuples (SESSION).

    Tuples of equal keys are in one window if each is at most `gap_ms` behind the one before. The
    window begins with its first tuple and ends `gap_ms` behind its last one.
    """

    gap_ms: int


@dataclass(frozen=True, slots=True)
class Windowed:
    """The tuples of its input, each in all windows that contain its event time.

    The tuples keep their attributes. An Aggregate reads them window by window. Over results of
    another Aggregate, a tuple is in the windows that contain the last microsecond of its own one.
    """

    input: Node
    window: Window | SessionWindow


@dataclass(frozen=True, slots=True)
class MovingWindow:
    """CQL's window over a stream: the tuples that its changing relation holds (001 §3).

    With `range_ms` these are the tuples of the last `range_ms`, both ends included. 0 is [NOW].
    With `slide_ms` the window moves only at the multiples of it, counted from 1970 UTC.
    With `rows` these are the newest `rows` tuples, of each partition if `partition` names
    attributes. If both are None, the window is [UNBOUNDED]: no tuple ever leaves it.
    With `slide_rows` the window is a *window of tuples* (002 §2.2): it is empty until a partition
    has had `rows` tuples, and moves with each `slide_rows`-th tuple after that.
    With `of_all`, `rows` is one size for all tuples together, where classes have views of their own
    (000 §5.2.1): the tuples of the stream that a class may not see take their places there, and are
    in no row.
    """

    range_ms: int | None = None
    rows: int | None = None
    partition: tuple[AttributeRef, ...] = ()
    slide_ms: int | None = None
    slide_rows: int | None = None
    of_all: bool = False


@dataclass(frozen=True, slots=True)
class Moving:
    """The changing relation of a stream's moving window: at each instant it holds other tuples.

    Filter, Project, Union, Aggregate, MovingJoin and Ranked over it give a changing relation.
    ToStream makes a stream of it.
    """

    input: Node
    window: MovingWindow


class JoinKind(StrEnum):
    """Which rows a join gives.

    INNER: the pairs. LEFT, RIGHT, FULL: also the rows of that side (or both) that are in no pair,
    with NULL for the attributes of the other side. SEMI: the left rows that are in a pair. ANTI:
    the left rows that are in none.
    """

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"

    @property
    def keeps_left(self) -> bool:
        """Whether a left row that is in no pair is there."""
        return self in (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI)

    @property
    def keeps_right(self) -> bool:
        """Whether a right row that is in no pair is there."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)

    @property
    def shows_right(self) -> bool:
        """Whether the rows have the attributes of the right side."""
        return self not in (JoinKind.SEMI, JoinKind.ANTI)


@dataclass(frozen=True, slots=True)
class MovingJoin:
    """A join of two changing relations, at each instant (CQL: FROM a [NOW], b [ROWS 1]).

    `equal` holds (left, right) attribute pairs, at least one. `condition` is a further condition on
    the attributes of both, whose names must differ. With `nulls_equal`, two NULL are equal. So the
    join compares rows as EXCEPT and INTERSECT do.
    """

    left: Node
    right: Node
    equal: tuple[tuple[AttributeRef, AttributeRef], ...]
    condition: Expression | None = None
    kind: JoinKind = JoinKind.INNER
    nulls_equal: bool = False


@dataclass(frozen=True, slots=True)
class OrderKey:
    """An attribute by which rows are ordered. NULL is before all other values, or last of all if
    the order is descending.
    """

    attribute: AttributeRef
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A named value of another row of the partition: the row so many places before (LAG).

    A negative offset is behind (LEAD). The value is NULL if there is no such row.
    """

    name: str
    attribute: AttributeRef
    offset: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """Rows of a changing relation with their places in an order (ROW_NUMBER, LAG, LIMIT).

    The rows of each partition are ordered. With `limit` only the first so many of each are there.
    The result has the attributes of the input, the number of the row in its partition (from 1) if
    it has a name, and the neighbours.
    """

    input: Node
    partition: tuple[AttributeRef, ...]
    order: tuple[OrderKey, ...]
    limit: int | None
    number: str | None = None
    neighbours: tuple[Neighbour, ...] = ()

    @property
    def by_place(self) -> bool:
        """Whether a row depends on all rows before it, and not on its neighbours alone."""
        return self.limit is not None or self.number is not None


class Change(StrEnum):
    """What of a changing relation makes a stream (CQL).

    ISTREAM: each row that an instant adds. DSTREAM: each row that it takes away. RSTREAM: all rows,
    at each instant at which a tuple comes into the window or leaves it. UPSERT: the new row of each
    group that an instant changes, and a deletion of each group that it ends.
    """

    ISTREAM = "istream"
    DSTREAM = "dstream"
    RSTREAM = "rstream"
    UPSERT = "upsert"


@dataclass(frozen=True, slots=True)
class ToStream:
    """The changes of a changing relation as a stream.

    The result has the attribute `instant`, and those of the changing relation. With UPSERT it also
    has `deleted`, which says whether it takes its group back.

    Its event time is the instant.
    """

    input: Node
    change: Change


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A named result of an Aggregate. If `argument` is None, it is count(*)."""

    name: str
    function: str
    argument: Expression | None


@dataclass(frozen=True, slots=True)
class Enough:
    """Which groups have results: those with tuples of at least `minimum` independent senders.

    For each attribute in `of`, so many of them must have sent values of it.
    """

    minimum: int
    of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One tuple per window and keys. The input is Windowed, or a changing relation.

    Over a changing relation it may compute nothing. Then it has a row for each combination of keys
    and label (SELECT DISTINCT).

    The result's attributes are `window_start`, `window_end`, the keys, the aggregations. Over a
    changing relation there are no edges of a window.

    With `enough`, other groups have no result. Only a role's view sets it (003: Ω), over one stream
    with nothing but conditions and computed columns between.
    """

    input: Node
    keys: tuple[Column, ...]
    aggregations: tuple[Aggregation, ...]
    enough: Enough | None = None


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs with equal attributes whose event times are near each other (interval join).

    `equal` holds (left, right) attribute pairs, at least one. The right tuple's event time lies in
    [left + lower_ms, left + upper_ms]. `condition` is a further condition on the attributes of
    both. The result has the attributes of both, whose names must differ. Its event time is the left
    one's, with RIGHT the right one's, and with FULL there is none.
    """

    left: Node
    right: Node
    equal: tuple[tuple[AttributeRef, AttributeRef], ...]
    lower_ms: int
    upper_ms: int
    condition: Expression | None = None
    kind: JoinKind = JoinKind.INNER


@dataclass(frozen=True, slots=True)
class Match:
    """The matches of a pattern in a partition (SQL: MATCH_RECOGNIZE; 003 §3).

    The rows of a partition are in the order of their event times. A match is rows that follow each
    other directly, fulfil the pattern, and lie within `within_ms`. `definitions` has the conditions
    of variables; a variable without one fits every row. They use `readings`. A match gives one
    tuple: `match_time`, the partition's attributes, and `measures`. If it is `per_row`, it gives
    one for each of its rows: `match_time`, the row's attributes, and `measures`. `match_time` is
    the event time of the match's last row. `absent` names the streams of which the pattern says
    that they have no tuple between others (SEQ with NOT).
    """

    input: Node
    partition: tuple[AttributeRef, ...]
    measures: tuple[Reading, ...]
    pattern: Pattern
    within_ms: int
    definitions: tuple[Definition, ...] = ()
    readings: tuple[Reading, ...] = ()
    skip: Skip = PAST_LAST_ROW
    absent: tuple[str, ...] = ()
    per_row: bool = False

    @property
    def rows_ahead(self) -> int:
        """How many rows behind a row must be known before the pattern is tried at it (NEXT)."""
        return rows_ahead((*self.readings, *self.measures))

    @property
    def held_ms(self) -> int:
        """For how long a match may wait behind its first row (ms).

        It waits for all rows that could make it longer, and then for those that NEXT may read
        behind them.
        """
        return self.within_ms * (2 if self.rows_ahead else 1)


Node = (
    Source
    | Filter
    | Project
    | Union
    | Unnest
    | Windowed
    | Aggregate
    | Join
    | Moving
    | MovingJoin
    | Ranked
    | ToStream
    | Match
)
MATCH_TIME = "match_time"
WINDOW_START, WINDOW_END = "window_start", "window_end"
INSTANT = "instant"
DELETED = "deleted"


class Emission(StrEnum):
    """When the results of a plan are sent.

    CLOSED: each result is sent once, when no tuple can change it any more. The result of a window
    is sent when the watermark has passed the window's end. UPDATES (EMIT UPDATES): the result of a
    group is sent each time that new tuples come into the group. It covers all tuples that the group
    has then, so the last one is the result of the complete group.
    """

    CLOSED = "closed"
    UPDATES = "updates"


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole query: what it computes, and when it sends the results."""

    root: Node
    emission: Emission = Emission.CLOSED


def inputs(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads."""
    match node:
        case Source():
            return ()
        case Filter(below) | Project(below) | Unnest(below) | Windowed(below) | Aggregate(below):
            return (below,)
        case Moving(below) | Ranked(below) | ToStream(below) | Match(below):
            return (below,)
        case Union(several):
            return several
        case Join(left, right) | MovingJoin(left, right):
            return (left, right)


def walk(root: Node) -> Iterator[Node]:
    """All nodes, inputs first. There is no recursion, so it works for plans that are too deep."""
    waiting = [(root, False)]
    while waiting:
        node, ready = waiting.pop()
        if ready:
            yield node
        else:
            waiting.append((node, True))
            waiting.extend((below, False) for below in reversed(inputs(node)))


def sources(plan: Plan) -> tuple[Relation, ...]:
    """The relations that a plan reads, each once, in reading order."""
    found = {each.relation.name: each.relation for each in source_nodes(plan)}
    return tuple(found.values())


def source_nodes(plan: Plan) -> tuple[Source, ...]:
    """The places where a plan reads a relation, in reading order."""
    return tuple(node for node in walk(plan.root) if isinstance(node, Source))


def at_sources(plan: Plan, rewrite: Callable[[Source], Node]) -> Plan:
    """The plan with each Source replaced by the result of `rewrite`.

    All code that changes a plan at its sources uses this function. The result is a new plan, so it
    must be analysed.
    """
    return replace(plan, root=_rewritten(plan.root, rewrite))


def _rewritten(node: Node, rewrite: Callable[[Source], Node]) -> Node:
    if isinstance(node, Source):
        return rewrite(node)
    return with_inputs(node, tuple(_rewritten(below, rewrite) for below in inputs(node)))


def with_inputs(node: Node, below: tuple[Node, ...]) -> Node:
    """The node over other inputs, which are as many as `inputs` gives, in the same order."""
    match node:
        case Source():
            return node
        case Union():
            return Union(below)
        case Join() | MovingJoin():
            return replace(node, left=below[0], right=below[1])
        case _:
            return replace(node, input=below[0])


def is_stateful(plan: Plan) -> bool:
    """Whether the plan keeps state. It then runs in micro-batches, otherwise in real-time mode."""
    return any(isinstance(node, Aggregate | Join | Moving | Match) for node in walk(plan.root))

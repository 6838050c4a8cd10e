"""What tests of moving windows compare: the engine over arrivals, and the oracle over tuples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from hypothesis import strategies as st

from catalog.analysis import analyse_node
from catalog.changing_parts import ChangingParts, WindowPart
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.label import Label
from catalog.pair_expressions import RowExpressions, values_of_sides
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    Project,
    Ranked,
    Source,
    ToStream,
    walk,
)
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.upserts import keys_of
from secfilter.lab import SEPARATOR
from secfilter.moving_relation import MovingRelation, Result
from secfilter.moving_rules import rules_of
from secfilter.moving_values import text_of
from secfilter.moving_window import Arrival, HeldLimits
from secfilter.remembered import Remembered
from tests.lanes import number_of
from tests.oracle.expressions import evaluate
from tests.oracle.plans import run
from tests.oracle.values import Row, Tuple, Value, microseconds, timestamp

NAMES = ("at", "key", "price")
SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP, required=True),
        Attribute("key", Type.BIGINT),
        Attribute("price", Type.BIGINT),
    )
)
STREAMS = {
    name: Relation(number + 1, name, RelationKind.STREAM, SCHEMA, "at", 0)
    for number, name in enumerate("abc")
}
KEY, PRICE = AttributeRef("key"), AttributeRef("price")
EXPENSIVE = Call(">", (PRICE, Literal(1, Type.BIGINT)))
LEFT, RIGHT = AttributeRef("a.price"), AttributeRef("b.price")
MORE = Call("-", (LEFT, RIGHT))
# The streams have no category in common, so that one does not stand for another.
REACH = {"a": Label.of(*range(6)), "b": Label.of(*range(6, 12)), "c": Label.of(*range(12, 18))}
# A tuple: time (ms), key, price, the category of its label.
Given = tuple[int, int | None, int, int]
EXAMPLES = number_of("MOVING_WINDOW_EXAMPLES", sample=40, long=400)
GIVENS = st.lists(
    st.tuples(
        st.integers(0, 12), st.none() | st.integers(0, 2), st.integers(0, 3), st.integers(0, 5)
    ),
    max_size=14,
)
WINDOWS_OF_TUPLES = st.integers(2, 4).flatmap(
    lambda rows: st.builds(
        MovingWindow,
        rows=st.just(rows),
        partition=st.sampled_from([(), (KEY,), (PRICE,)]),
        slide_rows=st.integers(1, rows),
    )
)
WINDOWS = st.one_of(
    st.builds(MovingWindow),
    st.builds(MovingWindow, range_ms=st.integers(0, 5)),
    st.builds(MovingWindow, range_ms=st.integers(1, 5), slide_ms=st.integers(1, 7)),
    WINDOWS_OF_TUPLES,
    st.builds(MovingWindow, rows=st.integers(1, 4)),
    st.builds(MovingWindow, rows=st.integers(1, 3), partition=st.just((KEY,))),
    st.builds(MovingWindow, rows=st.integers(1, 3), partition=st.just((PRICE,))),
)


def aggregations(value: Expression) -> tuple[Aggregation, ...]:
    return (
        Aggregation("n", "count", None),
        Aggregation("total", "sum", value),
        Aggregation("low", "min", value),
        Aggregation("kinds", "count_distinct", value),
    )


def shown(node: Node, *names: str) -> Node:
    return Project(node, tuple(Column(name, AttributeRef(name)) for name in names))


def renamed(node: Node, **names: str) -> Node:
    """A projection that gives some attributes other names: the new name, and the old one."""
    return Project(node, tuple(Column(new, AttributeRef(old)) for new, old in names.items()))


def side(draw: st.DrawFn, alias: str, stream: str) -> Node:
    """A window with attributes of its own names, perhaps behind a condition."""
    made: Node = Moving(Source(STREAMS[stream]), draw(WINDOWS))
    if draw(st.booleans()):
        made = Filter(made, EXPENSIVE)
    return named(made, alias)


def named(node: Node, alias: str) -> Node:
    """A relation of a stream with attributes of its own names."""
    return Project(node, tuple(Column(f"{alias}.{n}", AttributeRef(n)) for n in NAMES))


def join(draw: st.DrawFn, left: Node, right: Node, kinds: Sequence[JoinKind], alias: str) -> Node:
    """A join of two relations on `key`; the right one has this alias."""
    equal = ((AttributeRef("a.key"), AttributeRef(f"{alias}.key")),)
    more = Call("<=", (LEFT, AttributeRef(f"{alias}.price")))
    condition = draw(st.none() | st.just(more))
    kind, nulls_equal = draw(st.sampled_from(kinds)), draw(st.booleans())
    return MovingJoin(left, right, equal, condition, kind, nulls_equal)


def engine(
    root: Node, change: Change, limit: int = 999, characters: int = 100_000
) -> MovingRelation:
    limits, parts = HeldLimits(limit, characters), ChangingParts.of(analyse_node(root))
    reaches = [(REACH[window_name(window)].bits,) for window in parts.windows()]
    keys = keys_of(root) if change is Change.UPSERT else ()
    return rules_of(parts, change, limits, reaches, keys).empty()


def window_name(window: WindowPart) -> str:
    """The name of the stream below a window."""
    moving = window.moving.node
    assert isinstance(moving, Moving)
    assert isinstance(moving.input, Source)
    return moving.input.relation.name


def arrivals(root: Node, tables: dict[str, list[Tuple]]) -> list[tuple[int, Arrival]]:
    """The number of its window, and what Spark computes for it, of each tuple."""
    made = []
    for each in ChangingParts.of(analyse_node(root)).relations():
        join = None if each.join is None else RowExpressions(each, each.join)
        for values in values_of_sides(each, join):
            if isinstance(values.side, WindowPart):
                made += _of_window(values.side, values.row, values.arguments, tables)
    return sorted(made, key=lambda pair: pair[0])


def _of_window(
    window: WindowPart,
    keys: Sequence[Expression],
    arguments: Sequence[Expression],
    tables: dict[str, list[Tuple]],
) -> list[tuple[int, Arrival]]:
    moving = window.moving.node
    assert isinstance(moving, Moving)
    made = []
    for number, each in enumerate(tables[window_name(window)]):
        row, passes = Row(SCHEMA, each.values), True
        part = texts(moving.window.partition, row)
        for step in window.steps:
            if isinstance(step.node, Filter):
                passes = passes and evaluate(step.node.condition, row) is True
            elif isinstance(step.node, Project):
                shown_ = tuple(evaluate(c.expression, row) for c in step.node.columns)
                row = Row(step.schema, shown_)
        time, words = microseconds(each.values[0]), (each.label.bits,)  # type: ignore[union-attr, arg-type]
        arrival = Arrival(
            *(time, f"{number:05}", words, part, passes),
            *(texts(keys, row), texts(arguments, row)),
        )
        made.append((window.window, arrival))
    return made


def texts(expressions: Sequence[Expression], row: Row) -> str:
    return SEPARATOR.join(text(evaluate(each, row)) for each in expressions)


def text(value: Value) -> str:
    return text_of(microseconds(value) if hasattr(value, "tzinfo") else value)  # type: ignore[arg-type]


def table(rows: Sequence[Given], lowest: int) -> list[Tuple]:
    return [
        Tuple((timestamp(time * 1_000), key, price), Label.of(lowest + category))
        for time, key, price, category in rows
    ]


def expected(
    tables: dict[str, list[Tuple]], root: Node, change: Change
) -> Counter[tuple[object, ...]]:
    found = run(ToStream(root, change), tables, lambda relation: REACH[relation.name])
    return Counter((*map(text, each.values), each.label) for each in found)


def seen(results: Sequence[Result]) -> Counter[tuple[object, ...]]:
    return Counter(
        (str(each.instant), *each.row.split(SEPARATOR), Label(each.label[0])) for each in results
    )


def check(
    root: Node,
    change: Change,
    rows: tuple[list[Given], list[Given], list[Given]],
    data: st.DataObject,
) -> None:
    """Compare the engine, over batches that `data` draws, with the oracle."""
    tables = {
        name: table(several, 6 * number)
        for number, (name, several) in enumerate(zip("abc", rows, strict=True))
    }
    # Batches in any order within a lateness of two milliseconds. Each goes to one of two processes.
    processes, stored = [Remembered(10**6), Remembered(10**6)], None
    order = sorted(
        arrivals(root, tables),
        key=lambda each: each[1].time + data.draw(st.integers(0, 2)) * 1_000,
    )
    results: list[Result] = []
    newest = -(10**9)
    while order:
        size = data.draw(st.integers(1, len(order)))
        batch, order = order[:size], order[size:]
        process = data.draw(st.sampled_from(processes))
        moving = process.go_on("moving", stored, lambda: engine(root, change))
        for side, each in batch:
            moving.take([each], side)
        newest = max(newest, *(each.time for _, each in batch))
        results += moving.until(newest - 2_000 - 1 if order else 10**9)
        assert moving.withheld == 0
        stored = process.keep("moving", moving)
        again = engine(root, change)
        again.restore(stored)
        assert again.to_text() == stored
    assert seen(results) == expected(tables, root, change)
    assert len({(each.instant, each.number) for each in results}) == len(results)


def check_standing(root: Node, rows: tuple[list[Given], list[Given], list[Given]], at: int) -> None:
    """Compare the rows that stand at an instant with the newest upsert of each key."""
    tables = {
        name: table(several, 6 * number)
        for number, (name, several) in enumerate(zip("abc", rows, strict=True))
    }
    instant = at * 1_000
    moving = engine(root, Change.UPSERT)
    for number, arrival in arrivals(root, tables):
        moving.take([arrival], number)
    assert {result.instant for result in moving.until(instant)} <= {*range(instant + 1)}
    keys = [name in keys_of(root) for name in analyse_node(root).schema.names]
    last: dict[tuple[Value, ...], Tuple] = {}
    upserts = run(ToStream(root, Change.UPSERT), tables, lambda relation: REACH[relation.name])
    for each in sorted(upserts, key=_when):
        if _when(each) <= instant:
            own = zip(each.values[2:], keys, strict=True)
            last[tuple(value for value, key in own if key)] = each
    wanted = {
        SEPARATOR.join(map(text, each.values[1:])): each.label
        for each in last.values()
        if each.values[1] is False
    }
    found = {each.row: Label(each.label[0]) for each in moving.standing(instant)}
    assert found.keys() == wanted.keys()
    nodes = [*walk(root)]
    by_rows = any(isinstance(each, Moving) and each.window.rows is not None for each in nodes)
    groups = [each for each in nodes if isinstance(each, Aggregate | Ranked)]
    # The label of a group over partitions, or over groups, follows from what these hold now.
    if len(groups) < 2 and not (by_rows and groups):
        assert found == wanted


def _when(upsert: Tuple) -> int:
    """The instant of an upsert."""
    instant = upsert.values[0]
    assert isinstance(instant, datetime)
    return microseconds(instant)

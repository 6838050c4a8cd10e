"""The changes of moving windows, against an oracle that computes each instant from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    Moving,
    MovingWindow,
    Node,
    Project,
    Source,
    ToStream,
)
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from secfilter.lab import SEPARATOR
from secfilter.moving_aggregates import Computed, GroupRow
from secfilter.moving_window import Arrival, MovingRelation, Result, Window
from tests.oracle.plans import run
from tests.oracle.values import Tuple, microseconds, timestamp

SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP, required=True),
        Attribute("key", Type.BIGINT),
        Attribute("price", Type.BIGINT),
    )
)
STREAM = Relation(1, "a", RelationKind.STREAM, SCHEMA, "at", 0)
KEY, PRICE = AttributeRef("key"), AttributeRef("price")
EXPENSIVE = Call(">", (PRICE, Literal(1, Type.BIGINT)))
AGGREGATIONS = (
    Aggregation("n", "count", None),
    Aggregation("total", "sum", PRICE),
    Aggregation("low", "min", PRICE),
)
# A tuple: time (ms), key, price, the category of its label.
Given = tuple[int, int, int, int]
GIVENS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 2), st.integers(0, 3), st.integers(0, 5)),
    max_size=14,
)
WINDOWS = st.one_of(
    st.builds(MovingWindow, range_ms=st.integers(0, 5)),
    st.builds(MovingWindow, range_ms=st.integers(1, 5), slide_ms=st.integers(1, 7)),
    st.builds(MovingWindow, rows=st.integers(1, 4)),
    st.builds(MovingWindow, rows=st.integers(1, 3), partition=st.just((KEY,))),
    st.builds(MovingWindow, rows=st.integers(1, 3), partition=st.just((PRICE,))),
)


def relation(window: MovingWindow, *, grouped: bool, shown: Sequence[str]) -> Node:
    passing = Filter(Moving(Source(STREAM), window), EXPENSIVE)
    rows = Aggregate(passing, (Column("key", KEY),), AGGREGATIONS) if grouped else passing
    return Project(rows, tuple(Column(name, AttributeRef(name)) for name in shown))


def engine(
    window: MovingWindow, change: Change, *, grouped: bool, shown: Sequence[str]
) -> MovingRelation:
    range_us = None if window.range_ms is None else window.range_ms * 1_000
    places = ("key", *(each.name for each in AGGREGATIONS))
    computed = tuple(
        Computed(a.function, Type.BIGINT if a.argument else None, 0 if a.argument else None)
        for a in AGGREGATIONS
    )
    summary = None
    if grouped:
        summary = GroupRow(1, computed, tuple(places.index(name) for name in shown))
    slide_us = None if window.slide_ms is None else window.slide_ms * 1_000
    return MovingRelation(Window(range_us, window.rows, slide_us), change, summary, 99)


def arrivals(
    given: Sequence[Given], window: MovingWindow, *, grouped: bool, shown: Sequence[str]
) -> list[Arrival]:
    made = []
    for number, (time, key, price, category) in enumerate(given):
        values = {"at": str(time * 1_000), "key": str(key), "price": str(price)}
        row = str(key) if grouped else SEPARATOR.join(values[name] for name in shown)
        part = SEPARATOR.join(values[each.name] for each in window.partition)
        lineage, words = f"{number:05}", (1 << category,)
        made.append(Arrival(time * 1_000, lineage, words, part, price > 1, row, str(price)))
    return made


def expected(given: Sequence[Given], root: Node, change: Change) -> Counter[tuple[object, ...]]:
    table = [
        Tuple((timestamp(time * 1_000), key, price), Label.of(category))
        for time, key, price, category in given
    ]
    found = run(ToStream(root, change), {"a": table}, lambda _relation: Label.of(*range(6)))
    return Counter(
        (microseconds(each.values[0]), *map(text, each.values[1:]), each.label)  # type: ignore[arg-type]
        for each in found
    )


def text(value: object) -> str:
    return str(value)


def seen(results: Sequence[Result]) -> Counter[tuple[object, ...]]:
    return Counter(
        (each.instant, *each.row.split(SEPARATOR), Label(each.label[0])) for each in results
    )


@pytest.mark.parametrize("change", Change)
@pytest.mark.parametrize("grouped", [True, False], ids=["groups", "tuples"])
@settings(max_examples=200, deadline=None)
@given(rows=GIVENS, window=WINDOWS, data=st.data())
def test_an_engine_gives_what_each_instant_from_scratch_gives(
    change: Change, grouped: bool, rows: list[Given], window: MovingWindow, data: st.DataObject
) -> None:
    shown = data.draw(
        st.sampled_from(
            [("key", "n", "total", "low"), ("total",), ("low", "key")]
            if grouped
            else [("key", "price"), ("price",), ("key",)]
        )
    )
    given = arrivals(rows, window, grouped=grouped, shown=shown)
    moving = engine(window, change, grouped=grouped, shown=shown)
    # Batches in any order within a lateness of two milliseconds; the state goes through its text.
    order = sorted(given, key=lambda each: each.time + data.draw(st.integers(0, 2)) * 1_000)
    results, newest = [], -(10**9)
    while order:
        size = data.draw(st.integers(1, len(order)))
        batch, order = order[:size], order[size:]
        moving.take(batch)
        newest = max(newest, *(each.time for each in batch))
        results += moving.until(newest - 2_000 - 1)
        stored = moving.to_text()
        moving = engine(window, change, grouped=grouped, shown=shown)
        moving.restore(stored)
        assert moving.to_text() == stored
    results += moving.until(10**9)
    assert moving.withheld == 0
    assert seen(results) == expected(rows, relation(window, grouped=grouped, shown=shown), change)
    assert len({(each.instant, each.number) for each in results}) == len(results)


def test_what_is_beyond_the_limit_is_withheld_and_counted() -> None:
    moving = MovingRelation(Window(None, 1), Change.ISTREAM, None, 2)
    moving.take(Arrival(n, str(n), (1,), "", True, str(n), "") for n in range(3))
    assert [each.row for each in moving.until(5)] == ["0", "1"]
    assert moving.withheld == 1
    # There is room again, because the window holds one row. What is too old is withheld as well.
    moving.take(Arrival(n, str(n), (1,), "", True, str(n), "") for n in (4, 6))
    assert [each.row for each in moving.until(9)] == ["6"]
    assert moving.withheld == 2


def test_a_state_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="another form"):
        engine(MovingWindow(rows=1), Change.ISTREAM, grouped=False, shown=("key",)).restore(
            '{"form":2}'
        )

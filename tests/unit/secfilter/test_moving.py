"""Moving windows on Spark, batch by batch: from records of a stream to the rows of a relation.

What a window gives is shown without Spark, too (test_moving_window.py): the sample lane has half.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from catalog.expression import AttributeRef, Call, Literal
from catalog.plan import (
    INSTANT,
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Neighbour,
    Node,
    OrderKey,
    Project,
    Ranked,
    Source,
    ToStream,
    Union,
    Window,
)
from catalog.relation import Relation, RelationKind
from catalog.schema import Type
from catalog.time_source import TimeSource
from secfilter.columns import label_column
from tests.lanes import sampled
from tests.plans import grouped
from tests.unit.secfilter.batches import SCHEMA, Given, Gives, giving

STREAM = Relation(1, "a", RelationKind.STREAM, SCHEMA, "at", 0, time=TimeSource.DATA)


@pytest.fixture
def gives(spark: SparkSession, tmp_path: Path) -> Gives:
    """All results of a plan over batches of tuples."""
    return giving(spark, tmp_path, INSTANT)


def rows(found: Sequence[Row], *names: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row[name] for name in (INSTANT, *names, label_column(0))) for row in found)


END = [(1_000, "end", 0.0, 128)]
S = 1_000_000


SYMBOL, PRICE = AttributeRef("key"), AttributeRef("price")


def test_who_leaves_because_others_came_carries_their_labels(gives: Gives) -> None:
    relation = Moving(Source(STREAM), MovingWindow(rows=2))
    plan = ToStream(relation, Change.DSTREAM)
    found = gives(plan, [(2, "b", 2.0, 2), (1, "a", 1.0, 1)], [(3, "c", None, 4)], END)
    # The first tuple leaves because the third one came, so who sees it go must see both.
    assert rows(found, "key", "price") == [(3 * S, "a", 1.0, 1 | 2 | 4)]


def test_an_average_over_the_last_rows_of_each_key(gives: Gives) -> None:
    relation = Moving(Source(STREAM), MovingWindow(rows=2, partition=(SYMBOL,)))
    dear = Filter(relation, Call(">", (PRICE, Literal(0.5, Type.DOUBLE))))
    plan = Project(
        Aggregate(dear, (Column("key", SYMBOL),), (Aggregation("p", "avg", PRICE),)),
        (Column("mean", AttributeRef("p")), Column("symbol", SYMBOL)),
    )
    found = gives(
        Filter(ToStream(plan, Change.ISTREAM), Call("is_null", (AttributeRef("symbol"),))),
        [(5, None, 4.0, 1), (4, "a", 9.0, 8), (3, None, 1.0, 2)],
        [(6, None, 0.25, 4), (7, None, 6.0, 16)],
        END,
    )
    # The cheap tuple counts for the window's rows, though not for the average.
    assert rows(found, "mean", "symbol") == [
        (3 * S, 1.0, None, 2),
        (5 * S, 2.5, None, 1 | 2),
        (6 * S, 4.0, None, 1 | 4),
        (7 * S, 6.0, None, 4 | 16),
    ]


def test_a_range_has_both_its_ends_and_time_alone_lets_a_row_go(gives: Gives) -> None:
    relation = Moving(Source(STREAM), MovingWindow(range_ms=2_000))
    counted = Aggregate(relation, (), (Aggregation("n", "count", None),))
    found = gives(
        ToStream(counted, Change.ISTREAM),
        [(1, "a", 1.0, 1)],
        [(3, "b", 1.0, 2), (2, "c", 1.0, 4)],
        END,
    )
    assert rows(found, "n") == [
        (1 * S, 1, 1),
        (2 * S, 2, 1 | 4),
        (3 * S, 3, 1 | 2 | 4),
        (3 * S + 1, 2, 2 | 4),
        (4 * S + 1, 1, 2),
    ]


@pytest.mark.long
def test_now_as_a_stream_of_the_whole_relation(gives: Gives) -> None:
    plan = ToStream(
        Project(Moving(Source(STREAM), MovingWindow(range_ms=0)), (Column("key", SYMBOL),)),
        Change.RSTREAM,
    )
    found = gives(plan, [(1, "a", 1.0, 1), (1, "b", 1.0, 2)], [(2, "c", None, 4)], END)
    assert rows(found, "key") == [(S, "a", 3), (S, "b", 3), (2 * S, "c", 4)]


def test_values_arrive_as_they_were(gives: Gives) -> None:
    plan = ToStream(Moving(Source(STREAM), MovingWindow(rows=1)), Change.ISTREAM)
    given: Given = [
        (-62_135_596_800, "é😀\n", 0.1 + 0.2, 1),
        (1, None, -1e308, 2),
        (2, "", None, 4),
    ]
    found = gives(plan, given, END)
    assert rows(found, "key", "price") == [
        (at * S, key, price, label) for at, key, price, label in given
    ]


@pytest.mark.long
def test_two_moving_windows_and_a_tumbling_one_in_one_query(gives: Gives) -> None:
    relations = [Moving(Source(STREAM), MovingWindow(rows=rows)) for rows in (1, 2)]
    counts = [
        ToStream(Aggregate(each, (), (Aggregation("n", "count", None),)), Change.ISTREAM)
        for each in relations
    ]
    tumbling = grouped(
        Source(STREAM), Window(10_000, 10_000), (), (Aggregation("n", "count", None),)
    )
    closed = Project(
        tumbling, (Column(INSTANT, AttributeRef("window_end")), Column("n", AttributeRef("n")))
    )
    found = gives(Union((*counts, closed)), [(1, "a", 1.0, 1)], [(2, "b", 1.0, 2)], END)
    assert rows(found, "n") == [(1 * S, 1, 1), (1 * S, 1, 1), (2 * S, 2, 3), (10 * S, 2, 3)]


def side(alias: str, window: MovingWindow) -> Node:
    names = ("at", "key", "price")
    moving = Moving(Source(STREAM), window)
    return Project(moving, tuple(Column(f"{alias}.{n}", AttributeRef(n)) for n in names))


def pairs(left: MovingWindow, right: MovingWindow) -> MovingJoin:
    keys = ((AttributeRef("l.key"), AttributeRef("r.key")),)
    later = Call(">", (AttributeRef("l.at"), AttributeRef("r.at")))
    return MovingJoin(side("l", left), side("r", right), keys, later)


@pytest.mark.long
def test_pairs_of_two_windows_of_one_stream(gives: Gives) -> None:
    both = pairs(MovingWindow(range_ms=0), MovingWindow(rows=1, partition=(SYMBOL,)))
    # The tuple of now is the newest of its key, so nothing is before it.
    assert gives(ToStream(project_pair(both), Change.ISTREAM), [(1, "a", 1.0, 1)], END) == []


def project_pair(both: Node) -> Node:
    more = Call("-", (AttributeRef("l.price"), AttributeRef("r.price")))
    took = Call("micros_between", (AttributeRef("l.at"), AttributeRef("r.at")))
    return Project(
        both,
        (Column("key", AttributeRef("l.key")), Column("more", more), Column("took", took)),
    )


@pytest.mark.long
def test_pairs_carry_who_has_stayed_in_a_window_of_rows(gives: Gives) -> None:
    both = pairs(MovingWindow(rows=2), MovingWindow(range_ms=10_000))
    found = gives(
        ToStream(project_pair(both), Change.ISTREAM),
        [(1, "a", 1.0, 1), (2, None, 9.0, 2), (3, "b", 9.0, 4)],
        [(2, None, 8.0, 8), (4, "a", 3.5, 16), (5, "b", None, 32)],
        END,
    )
    # The newer tuple of each pair has just come, and the other one is in a window of time.
    assert rows(found, "key", "more", "took") == [
        (4 * S, "a", 2.5, 3 * S, 1 | 16),
        (5 * S, "b", None, 2 * S, 4 | 32),
    ]


@pytest.mark.long
def test_groups_of_pairs(gives: Gives) -> None:
    both = pairs(MovingWindow(rows=2), MovingWindow(range_ms=2_000))
    counted = Aggregate(
        project_pair(both),
        (Column("key", AttributeRef("key")),),
        (Aggregation("n", "count", None), Aggregation("most", "max", AttributeRef("more"))),
    )
    found = gives(
        ToStream(counted, Change.ISTREAM),
        [(1, "a", 1.0, 1), (2, "a", 3.0, 2)],
        [(3, "a", 4.0, 4)],
        END,
    )
    assert rows(found, "key", "n", "most") == [
        (2 * S, "a", 1, 2.0, 1 | 2),
        # 3 with 1 and 2, and 2 with 1.
        (3 * S, "a", 3, 3.0, 1 | 2 | 4),
        # The first tuple has left the range.
        (3 * S + 1, "a", 1, 1.0, 2 | 4),
    ]


def test_different_values_of_a_window_of_time_are_counted_over_batches(gives: Gives) -> None:
    results = (
        Aggregation("kinds", "count_distinct", PRICE),
        Aggregation("n", "count", None),
        Aggregation("total", "sum", PRICE),
        Aggregation("high", "max", PRICE),
    )
    counted = grouped(Source(STREAM), Window(10_000, 10_000), (Column("key", SYMBOL),), results)
    names = ("key", "kinds", "n", "total", "high")
    shown = Project(
        counted,
        (
            Column(INSTANT, AttributeRef("window_end")),
            *(Column(name, AttributeRef(name)) for name in names),
        ),
    )
    found = gives(
        shown,
        [(1, "a", 1.0, 1), (2, "a", 1.0, 2)],
        [(3, "a", 2.0, 4), (4, "a", None, 8), (5, "b", 0.0, 16), (5, "b", -0.0, 16)],
        [(11, "a", 1.0, 32)],
        END,
    )
    assert rows(found, *names) == [
        (10 * S, "a", 2, 4, 4.0, 2.0, 1 | 2 | 4 | 8),
        (10 * S, "b", 1, 2, 0.0, 0.0, 16),
        (20 * S, "a", 1, 1, 1.0, 1.0, 32),
    ]


def aliased(alias: str, window: MovingWindow) -> Node:
    names = SCHEMA.names
    columns = (Column(f"{alias}.{name}", AttributeRef(name)) for name in names)
    return Project(Moving(Source(STREAM), window), tuple(columns))


def test_a_row_without_a_partner_carries_all_that_the_other_side_can_carry(gives: Gives) -> None:
    left, right = (aliased(a, MovingWindow(range_ms=n)) for a, n in (("a", 2_000), ("b", 0)))
    equal = ((AttributeRef("a.price"), AttributeRef("b.price")),)
    other = Call(">", (AttributeRef("b.key"), AttributeRef("a.key")))
    joined = MovingJoin(left, right, equal, other, JoinKind.LEFT)
    plan = Project(joined, (Column("a", AttributeRef("a.key")), Column("b", AttributeRef("b.key"))))
    found = gives(
        ToStream(plan, Change.ISTREAM), [(1, "x", 1.0, 1)], [(2, "y", 1.0, 2)], [(9, "end", 0.0, 8)]
    )
    # Both sides are windows of one stream, so its whole reach is in the label.
    assert rows(found, "a", "b") == [
        (1 * S, "x", None, 255),
        (2 * S, "x", "y", 1 | 2),
        (2 * S, "y", None, 255),
        (2 * S + 1, "x", None, 255),
    ]


def test_places_in_an_order(gives: Gives) -> None:
    window = Moving(Source(STREAM), MovingWindow(range_ms=2_000))
    dear = OrderKey(PRICE, descending=True)
    node = Ranked(window, (), (dear,), 2, "rn", (Neighbour("next", PRICE, -1),))
    names = ("key", "rn", "next")
    plan = Project(node, tuple(Column(name, AttributeRef(name)) for name in names))
    found = gives(
        ToStream(plan, Change.ISTREAM),
        [(1, "a", 9.0, 1)],
        [(2, "b", 11.0, 2), (2, "c", None, 4)],
        [(9, "end", 0.0, 8)],
    )
    # As texts, 9.0 would come before 11.0.
    assert rows(found, *names) == [
        (1 * S, "a", 1, None, 1),
        (2 * S, "a", 2, None, 1 | 2 | 4),
        (2 * S, "b", 1, 9.0, 1 | 2),
        (3 * S + 1, "b", 1, None, 2 | 4),
        (3 * S + 1, "c", 2, None, 2 | 4),
    ]


def test_the_row_before_of_all_tuples_so_far(gives: Gives) -> None:
    """Each batch begins with the state of the one before, which has one row of each key."""
    order = (OrderKey(AttributeRef("at")),)
    before = (Neighbour("before", PRICE, 1),)
    relation = Ranked(Moving(Source(STREAM), MovingWindow()), (SYMBOL,), order, None, None, before)
    found = gives(
        ToStream(relation, Change.ISTREAM),
        [(1, "a", 1.0, 1)],
        [(3, "a", 3.0, 2), (2, "b", 9.0, 4)],
        [(4, "a", 4.0, 8)],
        END,
    )
    assert rows(found, "key", "price", "before") == [
        (1 * S, "a", 1.0, None, 1),
        (2 * S, "b", 9.0, None, 4),
        (3 * S, "a", 3.0, 1.0, 1 | 2),
        (4 * S, "a", 4.0, 3.0, 2 | 8),
    ]


@pytest.mark.long
def test_groups_of_groups_without_an_end(gives: Gives) -> None:
    counts = Aggregate(
        Moving(Source(STREAM), MovingWindow()),
        (Column("key", SYMBOL),),
        (Aggregation("n", "count", None),),
    )
    often = (Column("n", AttributeRef("n")),)
    relation = Aggregate(counts, often, (Aggregation("keys", "count", None),))
    found = gives(
        ToStream(relation, Change.ISTREAM),
        [(2, "b", 1.0, 2), (1, "a", 1.0, 1)],
        [(3, "a", None, 4)],
        END,
    )
    # What says how often a key was there may change. So each row has the labels of all keys.
    assert rows(found, "n", "keys") == [
        (1 * S, 1, 1, 1),
        (2 * S, 1, 2, 1 | 2),
        (3 * S, 1, 1, 1 | 2 | 4),
        (3 * S, 2, 1, 1 | 2 | 4),
    ]


@pytest.mark.parametrize("price", sampled((1e10, 0.1 + 0.2, 1e-7, -0.0), 4, first=1))
def test_a_number_of_spark_is_equal_to_the_same_number_of_python(
    gives: Gives, price: float
) -> None:
    highest = Aggregate(
        Moving(Source(STREAM), MovingWindow(range_ms=5_000)),
        (Column("h.key", SYMBOL),),
        (Aggregation("h.price", "max", PRICE),),
    )
    equal = tuple((AttributeRef(f"l.{n}"), AttributeRef(f"h.{n}")) for n in ("key", "price"))
    join = MovingJoin(side("l", MovingWindow(range_ms=0)), highest, equal)
    relation = Project(join, (Column("key", AttributeRef("l.key")),))
    found = gives(
        ToStream(relation, Change.ISTREAM),
        [(1, "a", price, 1)],
        [(2, "a", price - 1.0, 2), (3, "b", 0.0, 4)],
        END,
    )
    assert rows(found, "key") == [(1 * S, "a", 1), (3 * S, "b", 4)]

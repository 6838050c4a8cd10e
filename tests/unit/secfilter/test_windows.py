"""Windows of time on Spark, batch by batch: state that goes on, and results that come once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from catalog.aggregates import COUNT_DISTINCT, FIRST, LAST
from catalog.expression import AttributeRef
from catalog.plan import (
    INSTANT,
    WINDOW_END,
    Aggregate,
    Aggregation,
    Change,
    Column,
    Moving,
    MovingWindow,
    SessionWindow,
    Source,
    ToStream,
    Window,
)
from catalog.relation import Relation, RelationKind
from catalog.time_source import TimeSource
from secfilter.columns import ID, label_column
from tests.plans import grouped
from tests.unit.secfilter.batches import SCHEMA, Gives, giving

STREAM = Relation(1, "a", RelationKind.STREAM, SCHEMA, "at", 2_000, time=TimeSource.DATA)
KEY, PRICE, END = AttributeRef("key"), AttributeRef("price"), AttributeRef(WINDOW_END)
BY_KEY = (Column("key", KEY),)
COUNT = Aggregation("n", "count", None)
S = 1_000_000
# It closes all windows before it.
LAST_OF_ALL = [(1_000, "end", 0.0, 128)]


@pytest.fixture
def gives(spark: SparkSession, tmp_path: Path) -> Gives:
    """All results of a plan over batches of tuples."""
    return giving(spark, tmp_path, WINDOW_END)


def rows(found: Sequence[Row], *names: str) -> list[tuple[object, ...]]:
    assert len({row[ID] for row in found}) == len(found)
    return sorted(tuple(row[name] for name in (*names, label_column(0))) for row in found)


def test_a_tuple_that_comes_later_joins_two_sessions(gives: Gives) -> None:
    plan = grouped(Source(STREAM), SessionWindow(5_000), BY_KEY, (COUNT,))
    found = gives(
        plan,
        [(10, "a", 1.0, 1), (19, "a", 1.0, 2), (19, "b", 1.0, 4)],
        # Exactly the gap behind one, and before the other.
        [(14, "a", 1.0, 8), (24, "a", 1.0, 16)],
        [(31, "a", 1.0, 32)],
        LAST_OF_ALL,
    )
    assert rows(found, WINDOW_END, "key", "n") == [
        (24 * S, "b", 1, 4),
        (29 * S, "a", 4, 1 | 2 | 8 | 16),
        (36 * S, "a", 1, 32),
    ]


def test_a_tuple_that_is_late_by_the_lateness_is_in_the_session_that_ends_there(
    gives: Gives,
) -> None:
    plan = grouped(Source(STREAM), SessionWindow(5_000), (), (COUNT,))
    found = gives(plan, [(10, "a", 1.0, 1)], [(17, "b", 1.0, 2)], [(15, "a", 1.0, 4)], LAST_OF_ALL)
    assert rows(found, WINDOW_END, "n") == [(22 * S, 3, 1 | 2 | 4)]


@pytest.mark.long
def test_a_window_of_windows(gives: Gives) -> None:
    seconds = grouped(Source(STREAM), Window(1_000, 1_000), BY_KEY, (COUNT,))
    most = (Aggregation("most", "max", AttributeRef("n")), Aggregation("groups", "count", None))
    plan = grouped(seconds, Window(10_000, 10_000), (), most)
    found = gives(
        plan,
        [(10, "a", 1.0, 1), (10, "a", 1.0, 1), (19, "b", 1.0, 2)],
        [(20, "a", 1.0, 4), (19, "b", 1.0, 8)],
        [(31, "a", 1.0, 16)],
        LAST_OF_ALL,
    )
    assert rows(found, WINDOW_END, "most", "groups") == [
        (20 * S, 2, 2, 1 | 2 | 8),
        (30 * S, 1, 1, 4),
        (40 * S, 1, 1, 16),
    ]


@pytest.mark.long
def test_sessions_of_windows_of_windows(gives: Gives) -> None:
    seconds = grouped(Source(STREAM), Window(1_000, 1_000), BY_KEY, (COUNT,))
    pairs = grouped(
        seconds, Window(2_000, 2_000), (), (Aggregation("n", "sum", AttributeRef("n")),)
    )
    plan = grouped(pairs, SessionWindow(4_000), (), (Aggregation("n", "sum", AttributeRef("n")),))
    found = gives(
        plan,
        [(10, "a", 1.0, 1), (11, "a", 1.0, 2)],
        [(14, "b", 1.0, 4)],
        [(20, "b", 1.0, 8)],
        LAST_OF_ALL,
    )
    # A result of a window is at the last microsecond of it.
    assert rows(found, WINDOW_END, "n") == [(20 * S - 1, 3, 1 | 2 | 4), (26 * S - 1, 1, 8)]


@pytest.mark.long
def test_different_values_beside_other_aggregates(gives: Gives) -> None:
    results = (
        Aggregation("keys", COUNT_DISTINCT, KEY),
        Aggregation("prices", COUNT_DISTINCT, PRICE),
        Aggregation("mean", "avg", PRICE),
        Aggregation("first", FIRST, PRICE),
        Aggregation("last", LAST, KEY),
    )
    plan = grouped(Source(STREAM), Window(10_000, 10_000), (), results)
    found = gives(
        plan,
        [(10, "b", 1.0, 1), (19, "a", 3.0, 2)],
        [(19, "c", None, 4), (18, "b", 1.0, 8)],
        [(10, "a", 7.0, 16)],
        LAST_OF_ALL,
    )
    names = (WINDOW_END, *(each.name for each in results))
    # Of tuples of one time, the order is that of their lineages.
    assert rows(found, *names) == [(20 * S, 3, 3, 3.0, 1.0, "c", 31)]


def test_a_moving_window_over_an_output_takes_each_result_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    output = replace(STREAM, kind=RelationKind.OUTPUT)
    counted = Aggregate(Moving(Source(output), MovingWindow(rows=2)), (), (COUNT,))
    once = giving(spark, tmp_path, INSTANT)
    found = once(
        ToStream(counted, Change.ISTREAM),
        [(10, "a", 1.0, 1), (12, "a", 1.0, 2)],
        [(13, "b", 1.0, 4)],
        LAST_OF_ALL,
        repeated=True,
    )
    assert rows(found, INSTANT, "n") == [(10 * S, 1, 1), (12 * S, 2, 1 | 2)]

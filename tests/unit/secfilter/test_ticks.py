"""In queries that keep state, ticks alone move the time of a stream with the broker's time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from catalog.aggregates import COUNT_DISTINCT, FIRST, LAST
from catalog.expression import Literal
from catalog.plan import (
    WINDOW_START,
    Aggregate,
    Aggregation,
    Change,
    Column,
    Filter,
    JoinKind,
    Moving,
    MovingWindow,
    Node,
    SessionWindow,
    Source,
    ToStream,
    Window,
)
from catalog.relation import RelationKind
from catalog.schema import Type
from catalog.time_source import TimeSource
from tests.lanes import is_long, sampled
from tests.plans import checked, grouped, updating
from tests.unit.catalog.plans import call, ref
from tests.unit.secfilter.test_lateness import YEARS, counted, late, paired, relation
from tests.unit.secfilter.ticked import Entry, results_of

Gives = Callable[..., tuple[list[Row], StreamingQuery]]
Rows = list[tuple[int, ...]]
COUNT = (Aggregation("n", "count", None),)
A = replace(relation("a", RelationKind.STREAM), time=TimeSource.BROKER)


@pytest.fixture
def gives(spark: SparkSession, tmp_path: Path) -> Gives:
    """As `results_of`."""
    return partial(results_of, spark, tmp_path)


def windows(found: Sequence[Row]) -> dict[int, int]:
    return {row[WINDOW_START]: row["n"] for row in found}


def test_a_window_closes_at_the_first_tick_past_its_end(gives: Gives) -> None:
    found, _ = gives(counted(A), {"a": [[(5, 1)], [10]]})
    assert windows(found) == {}
    found, query = gives(counted(A), {"a": [[(5, 1)], [11], [(11, 2)]]})
    assert windows(found) == {0: 1}
    observed = [each.observedMetrics["o_a"]["withheld"] for each in query.recentProgress]
    assert set(observed) == {0}


def test_a_tuple_that_is_far_ahead_moves_no_time(gives: Gives) -> None:
    found, query = gives(counted(A), {"a": [[(9_999_999, 1)], [(5, 2)], [(6, 3)], [20]]})
    assert windows(found) == {0: 2}
    assert late(query) == 0


def test_a_tuple_of_the_ticks_time_is_in_time(gives: Gives) -> None:
    """Also for operators that drop what is exactly as old as the watermark."""
    found, query = gives(
        paired(TimeSource.BROKER), {"a": [[(5, 1), 5], [(5, 2)]], "b": [[(5, 1), 5], [(5, 2)]]}
    )
    assert sorted(row["a_key"] for row in found) == [1, 2]
    assert late(query) == 0


# The smaller the pieces, the more batches there are, of a third of a second each.
SIZES = (1, 2, 4, 11) if is_long() else (2, 11)


def test_the_results_do_not_depend_on_how_the_input_is_cut(gives: Gives) -> None:
    entries: list[Entry] = [
        (3, 1),
        (12, 2),
        2,
        (4, 3),
        (2, 4),
        10,
        (10, 5),
        (25, 6),
        21,
        (29, 7),
        31,
    ]
    results = []
    for size in SIZES:
        cut = [entries[n : n + size] for n in range(0, len(entries), size)]
        found, query = gives(counted(A), {"a": cut})
        results.append(windows(found))
        assert late(query) == 0
    assert results == [{0: 3, 10: 2, 20: 2}] * len(SIZES)


def test_the_slower_stream_holds_the_time_of_a_join(gives: Gives) -> None:
    joined = replace(paired(TimeSource.BROKER), lower_ms=-2_000, upper_ms=2_000)
    mine, other = [[(5, 1)], [100], [(101, 9)]], [[2], [(4, 1)], [3]]
    found, query = gives(joined, {"a": mine, "b": other})
    assert [(row["a_key"], row["b_at"]) for row in found] == [(1, 4)]
    assert late(query) == 0


@pytest.mark.parametrize("year", sampled(YEARS, 3))
def test_ticks_of_any_year_close_windows(gives: Gives, year: int) -> None:
    start = YEARS[year] // 10 * 10
    found, query = gives(counted(A), {"a": [[(start, 1), (start + 1, 2)], [start + 11], []]})
    assert windows(found) == {start: 2}
    assert late(query) == 0


def test_updates_are_given_whatever_ticks_come(gives: Gives) -> None:
    found, query = gives(updating(counted(A)), {"a": [[(5, 1)], [5], [(6, 2)]]}, "update")
    assert [row["n"] for row in found] == [1, 2]
    assert late(query) == 0


def test_conditions_of_a_query_stop_no_tick(gives: Gives) -> None:
    """Spark moves conditions as far down as it can, and no tick has attributes."""
    wanted = Filter(Source(A), call(">", ref("key"), Literal(1, Type.BIGINT)))
    plan = grouped(wanted, Window(10_000, 10_000), (), (Aggregation("n", "count", None),))
    found, query = gives(plan, {"a": [[(5, 1), (6, 2)], [11], []]})
    assert windows(found) == {0: 1}
    assert late(query) == 0


def test_pairs_leave_the_state_with_ticks(gives: Gives) -> None:
    batches = {"a": [[(5, 1)], [20], [21]], "b": [[(5, 2)], [20], [21]]}
    _, query = gives(paired(TimeSource.BROKER), batches)
    assert query.recentProgress[-1].stateOperators[0].numRowsTotal == 0


ENTRIES: list[Entry] = [
    *((3, 1), (12, 2), 2, (4, 1), (8, 3), (2, 4), 9, (17, 5), (9, 1), 13),
    *((25, 6), 21, (29, 7), (28, 7), 40, 41),
]
_SECONDS = grouped(Source(A), Window(5_000, 5_000), (Column("key", ref("key")),), COUNT)
CUT: dict[str, tuple[Node, Rows]] = {
    "sessions": (
        grouped(Source(A), SessionWindow(5_000), (), COUNT),
        [(2, 22, 7), (25, 34, 3)],
    ),
    "sessions of keys": (
        grouped(Source(A), SessionWindow(5_000), (Column("key", ref("key")),), COUNT),
        [
            *((2, 7, 4, 1), (3, 14, 1, 3), (8, 13, 3, 1), (12, 17, 2, 1), (17, 22, 5, 1)),
            *((25, 30, 6, 1), (28, 34, 7, 2)),
        ],
    ),
    "windows of windows": (
        grouped(_SECONDS, Window(10_000, 10_000), (), (Aggregation("n", "max", ref("n")),)),
        [(0, 10, 2), (10, 20, 1), (20, 30, 2)],
    ),
    "different values": (
        grouped(
            Source(A),
            Window(10_000, 10_000),
            (),
            (
                Aggregation("keys", COUNT_DISTINCT, ref("key")),
                Aggregation("times", COUNT_DISTINCT, ref("at")),
                Aggregation("first", FIRST, ref("key")),
                Aggregation("last", LAST, ref("key")),
            ),
        ),
        [(0, 10, 3, 5, 4, 1), (10, 20, 2, 2, 2, 5), (20, 30, 2, 3, 6, 7)],
    ),
}


PIECES = (1, 3) if is_long() else (3,)


@pytest.mark.parametrize("name", sampled(CUT, 4, first=1))
def test_windows_do_not_depend_on_how_the_input_is_cut(gives: Gives, name: str) -> None:
    plan, wanted = CUT[name]
    for size in (*PIECES, len(ENTRIES)):
        cut = [ENTRIES[n : n + size] for n in range(0, len(ENTRIES), size)]
        found, query = gives(plan, {"a": [*cut, [42]]})
        shown = checked(plan).schema.names
        assert sorted(tuple(row[each] for each in shown) for row in found) == wanted
        assert late(query) == 0


# Pairs of the left key and the right time.
KINDS: dict[JoinKind, list[tuple[int, int | None]]] = {
    JoinKind.INNER: [(1, 5), (1, 6)],
    JoinKind.LEFT: [(1, 5), (1, 6), (2, None)],
    JoinKind.SEMI: [(1, None)],
    JoinKind.ANTI: [(2, None)],
}


@pytest.mark.parametrize("kind", sampled(KINDS, 4, first=1))
def test_joins_do_not_depend_on_how_the_input_is_cut(gives: Gives, kind: JoinKind) -> None:
    joined = replace(paired(TimeSource.BROKER), upper_ms=2_000, kind=kind)
    mine: list[Entry] = [(4, 1), 2, (5, 2), 5, 10, 20]
    other: list[Entry] = [(5, 1), (3, 1), 3, (6, 1), 7, 21]
    for size in (*((1, 2) if is_long() else (2,)), len(mine)):
        cut = [[side[n : n + size] for n in range(0, len(side), size)] for side in (mine, other)]
        found, query = gives(joined, {"a": [*cut[0], [22]], "b": [*cut[1], [22]]})
        right = [row["b_at"] if kind.shows_right else None for row in found]
        pairs = zip((row["a_key"] for row in found), right, strict=True)
        assert sorted(pairs, key=str) == KINDS[kind]
        assert late(query) == 0
        assert sum(each.numRowsTotal for each in query.recentProgress[-1].stateOperators) == 0


@pytest.mark.long
def test_a_moving_window_over_an_output_is_one_that_spark_can_run(gives: Gives) -> None:
    output = Source(relation("a", RelationKind.OUTPUT))
    counting = Aggregate(Moving(output, MovingWindow(range_ms=1_000)), (), COUNT)
    plan = ToStream(counting, Change.ISTREAM)
    # A result that came twice, as after a crash, counts once.
    found, query = gives(plan, {"a": [[(5, 1)], [(5, 1), (6, 2)], [(20, 3)]]})
    assert sorted((row["instant"], row["n"]) for row in found) == [(5, 1), (6, 1), (6, 2)]
    assert late(query) == 0

"""Joins of streams on Spark, batch by batch: what is in a pair, and what is in none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from catalog.expression import AttributeRef, Call, Literal
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregation,
    Column,
    Filter,
    Join,
    JoinKind,
    Node,
    Project,
    Source,
    Window,
)
from catalog.relation import Relation, RelationKind
from catalog.schema import Type
from catalog.time_source import TimeSource
from secfilter.columns import ID, label_column
from tests.plans import grouped
from tests.unit.secfilter.batches import SCHEMA, Gives, giving

STREAM = Relation(1, "a", RelationKind.STREAM, SCHEMA, "at", 2_000, time=TimeSource.DATA)
# All that the tuples of the stream can carry.
REACH = 255
BATCHES = (
    [(10, "a", 1.0, 1), (10, "b", 2.0, 2), (11, None, 3.0, 16)],
    [(12, "a", 10.0, 4), (13, "a", 11.0, 4 | 8), (12, None, 12.0, 64)],
    # It has the label of a witness before, and comes exactly at the end.
    [(15, "a", 13.0, 4), (15, "b", 0.5, 32)],
    [(21, "b", 14.0, 1)],
    # Each side moves its own time. These are in no pair yet.
    [(1_000, "end", 0.0, 128), (1_000, "fin", 10.0, 128)],
)
PAIRS = [
    (1.0, 10.0, 1 | 4),
    (1.0, 11.0, 1 | 4 | 8),
    (1.0, 13.0, 1 | 4),
]
LEFT = [(0.5, None, REACH), (2.0, None, REACH), (3.0, None, REACH)]
RIGHT = [(None, 12.0, REACH), (None, 14.0, REACH)]


def join(kind: JoinKind) -> Node:
    """Cheap tuples with dear ones of the same key that come up to five seconds later."""
    dear = Call(">=", (AttributeRef("price"), Literal(10.0, Type.DOUBLE)))
    right = Project(
        Filter(Source(STREAM), dear),
        tuple(Column(f"r.{name}", AttributeRef(name)) for name in SCHEMA.names),
    )
    equal = ((AttributeRef("key"), AttributeRef("r.key")),)
    left = Filter(Source(STREAM), Call("not", (dear,)))
    both = Join(left, right, equal, 0, 5_000, kind=kind)
    if not kind.shows_right:
        return both
    names = {"at": "at", "price": "price", "r.price": "r_price"}
    return Project(both, tuple(Column(new, AttributeRef(name)) for name, new in names.items()))


@pytest.fixture
def gives(spark: SparkSession, tmp_path: Path) -> Gives:
    """All results of a plan over batches of tuples."""
    return giving(spark, tmp_path, "at")


def rows(found: Sequence[Row], *names: str) -> list[tuple[object, ...]]:
    assert len({row[ID] for row in found}) == len(found)
    given = [tuple(row[name] for name in (*names, label_column(0))) for row in found]
    return sorted(given, key=str)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        pytest.param(JoinKind.INNER, PAIRS, marks=pytest.mark.long),
        pytest.param(JoinKind.LEFT, PAIRS + LEFT, marks=pytest.mark.long),
        pytest.param(JoinKind.RIGHT, PAIRS + RIGHT, marks=pytest.mark.long),
        # It has what the others have.
        (JoinKind.FULL, PAIRS + LEFT + RIGHT),
    ],
)
def test_a_join(gives: Gives, kind: JoinKind, wanted: list[tuple[object, ...]]) -> None:
    found = gives(join(kind), *BATCHES)
    assert rows(found, "price", "r_price") == sorted(wanted, key=str)


def test_a_semi_join_gives_a_tuple_once_for_each_label(gives: Gives) -> None:
    found = gives(join(JoinKind.SEMI), *BATCHES)
    assert rows(found, "price") == [(1.0, 1 | 4 | 8), (1.0, 1 | 4)]


def test_an_anti_join_tells_that_the_other_side_has_nothing(gives: Gives) -> None:
    found = gives(join(JoinKind.ANTI), *BATCHES)
    assert rows(found, "price") == [(0.5, REACH), (2.0, REACH), (3.0, REACH)]


TEN_S = Window(10_000, 10_000)
COUNT, END = Aggregation("n", "count", None), AttributeRef(WINDOW_END)
KEY = (Column("key", AttributeRef("key")),)
S = 1_000_000


def renamed(node: Node, *names: str) -> Project:
    """The node's attributes of these names, each with `r.` before it."""
    return Project(node, tuple(Column(f"r.{name}", AttributeRef(name)) for name in names))


def windows_with_stream() -> Join:
    """The number of tuples of ten seconds and a key, with each of them."""
    counted = grouped(Source(STREAM), TEN_S, KEY, (COUNT,))
    stream = renamed(Source(STREAM), *SCHEMA.names)
    inside = Call("<", (AttributeRef("r.at"), AttributeRef(WINDOW_END)))
    equal = ((AttributeRef("key"), AttributeRef("r.key")),)
    return Join(counted, stream, equal, -10_000, 0, inside)


def closing(spark: SparkSession, folder: Path) -> Gives:
    return giving(spark, folder, WINDOW_END)


def test_a_window_s_result_finds_the_tuples_that_are_in_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = (WINDOW_END, "key", "n", "r.price")
    shown = Project(
        windows_with_stream(),
        tuple(Column(name.replace("r.", "r_"), AttributeRef(name)) for name in names),
    )
    found = closing(spark, tmp_path)(
        shown,
        [(10, "a", 1.0, 1), (19, "a", 2.0, 2), (20, "a", 3.0, 4)],
        [(18, "a", 4.0, 8), (25, "b", 5.0, 16)],
        [(1_000, "end", 0.0, 128)],
        [(1_001, "end", 0.0, 128)],
    )
    group = 1 | 2 | 8
    assert rows(found, WINDOW_END, "key", "n", "r_price") == sorted(
        [
            (20 * S, "a", 3, 1.0, group),
            (20 * S, "a", 3, 2.0, group),
            (20 * S, "a", 3, 4.0, group),
            (30 * S, "a", 1, 3.0, 4),
            (30 * S, "b", 1, 5.0, 16),
        ],
        key=str,
    )


def test_a_window_over_pairs_closes_when_no_pair_can_come_any_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its tuples may wait three seconds for a partner, and come two seconds late."""
    right = renamed(Source(STREAM), *SCHEMA.names)
    equal = ((AttributeRef("key"), AttributeRef("r.key")),)
    later = Call("<", (AttributeRef("at"), AttributeRef("r.at")))
    pairs = Join(Source(STREAM), right, equal, 0, 3_000, later)
    found = closing(spark, tmp_path)(
        grouped(pairs, TEN_S, KEY, (COUNT,)),
        [(18, "a", 1.0, 1), (19, "a", 2.0, 2)],
        # Time is at 22: the pairs of 18 are complete, and those of 19 are not.
        [(24, "z", 0.0, 128)],
        [(22, "a", 3.0, 4)],
        [(1_000, "end", 0.0, 128)],
        [(1_001, "end", 0.0, 128)],
    )
    assert rows(found, WINDOW_END, "key", "n") == [(20 * S, "a", 2, 1 | 2 | 4)]


def test_a_key_cannot_look_like_another_pair(spark: SparkSession, tmp_path: Path) -> None:
    """The lineage of a group has its key. What has no partner is told from what has one."""
    by_key = grouped(Source(STREAM), TEN_S, KEY, (COUNT,))
    all_keys = renamed(grouped(Source(STREAM), TEN_S, (), (COUNT,)), WINDOW_START, WINDOW_END)
    equal = ((AttributeRef(WINDOW_START), AttributeRef(f"r.{WINDOW_START}")),)
    only = Call("=", (AttributeRef("key"), Literal("a", Type.STRING)))
    both = Join(by_key, all_keys, equal, 0, 0, only, JoinKind.LEFT)
    shown = Project(
        both,
        (*KEY, Column("other", AttributeRef(f"r.{WINDOW_END}")), Column(WINDOW_END, END)),
    )
    found = closing(spark, tmp_path)(
        shown,
        [(10, "a", 1.0, 1), (11, f"a~w{10 * S}", 1.0, 2)],
        [(1_000, "end", 0.0, 128)],
        [(1_001, "end", 0.0, 128)],
    )
    early = [row for row in found if row[WINDOW_END] == 20 * S]
    assert len(early) == 2
    assert len({row[ID] for row in early}) == 2

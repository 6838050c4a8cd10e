"""Joins of streams on Spark, batch by batch: what is in a pair, and what is in none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from catalog.expression import AttributeRef, Call, Literal
from catalog.plan import Column, Filter, Join, JoinKind, Node, Project, Source
from catalog.relation import Relation, RelationKind
from catalog.schema import Type
from catalog.time_source import TimeSource
from secfilter.columns import ID, label_column
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
        (JoinKind.INNER, PAIRS),
        (JoinKind.LEFT, PAIRS + LEFT),
        (JoinKind.RIGHT, PAIRS + RIGHT),
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

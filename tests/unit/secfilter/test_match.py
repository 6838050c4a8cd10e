"""Event patterns on Spark, batch by batch: from records of a stream to its matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from catalog.expression import AttributeRef, Call
from catalog.pattern import (
    NEXT_ROW,
    Definition,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
    Reading,
)
from catalog.plan import MATCH_TIME, Match, Source
from catalog.relation import Relation, RelationKind
from catalog.time_source import TimeSource
from secfilter.columns import label_column
from tests.unit.secfilter.batches import SCHEMA, Gives, giving

STREAM = Relation(1, "a", RelationKind.STREAM, SCHEMA, "at", 2_000, time=TimeSource.DATA)
KEY, PRICE = AttributeRef("key"), AttributeRef("price")
S = 1_000_000
RISING = Call(">", (PRICE, AttributeRef("row.0")))
RISES = Match(
    Source(STREAM),
    (KEY,),
    (
        Reading("low", "first", "low", PRICE),
        Reading("high", "last", "up", PRICE),
        Reading("n", "count", "up", None),
    ),
    PatternSequence((PatternVariable("low"), PatternRepeat(PatternVariable("up"), 1, None))),
    10_000,
    (Definition("up", RISING),),
    (Reading("row.0", "last", None, PRICE, moved=-1),),
)


@pytest.fixture
def gives(spark: SparkSession, tmp_path: Path) -> Gives:
    """All results of a plan over batches of tuples."""
    return giving(spark, tmp_path, MATCH_TIME)


def rows(found: Sequence[Row], *names: str) -> list[tuple[object, ...]]:
    return sorted(
        (row[MATCH_TIME], *(row[name] for name in names), row[label_column(0)]) for row in found
    )


END = [(1_000, "end", 0.0, 128)]


def test_matches_over_batches_with_tuples_out_of_order(gives: Gives) -> None:
    found = gives(
        RISES,
        [(3, "a", 3.0, 4), (1, "a", 1.0, 1), (1, "b", 5.0, 16)],
        # The second tuple of `a` comes late, but in time.
        [(2, "a", 2.0, 2), (4, "a", 2.5, 8)],
        [(5, "b", 6.0, 32)],
        END,
    )
    assert rows(found, "key", "low", "high", "n") == [
        # The tuple that falls ends the match, so it is in the label.
        (3 * S, "a", 1.0, 3.0, 2, 1 | 2 | 4 | 8),
        (5 * S, "b", 5.0, 6.0, 1, 16 | 32),
    ]


def test_a_match_that_waits_ends_when_its_time_has_passed(gives: Gives) -> None:
    found = gives(
        RISES,
        [(1, None, 1.0, 1), (2, None, 2.0, 2)],
        # Ten seconds after the first row the match is over, and this row begins another one. It
        # could have ended a match that begins at the second one, so it depends on that one.
        [(12, None, 3.0, 4), (13, None, 4.0, 8)],
        END,
    )
    assert rows(found, "key", "low", "high") == [
        (2 * S, None, 1.0, 2.0, 1 | 2),
        (13 * S, None, 3.0, 4.0, 1 | 2 | 4 | 8),
    ]


def test_each_row_of_a_match_is_a_tuple_with_the_label_of_all(gives: Gives) -> None:
    """It waits over a batch for the row that NEXT reads."""
    per_row = replace(
        RISES,
        measures=(
            Reading("part", "classifier", None, None),
            Reading("so_far", "count", None, None),
            Reading("top", "last", "up", PRICE, final=True),
            Reading("behind", "last", None, PRICE, moved=1),
        ),
        per_row=True,
    )
    found = gives(
        per_row,
        [(1, "a", 1.0, 1), (2, "a", 2.0, 2)],
        [(3, "a", 3.0, 4)],
        [(4, "a", 2.5, 8)],
        END,
    )
    assert rows(found, "key", "price", "part", "so_far", "top", "behind") == [
        (3 * S, "a", float(n), part, n, 3.0, behind, 1 | 2 | 4 | 8)
        for n, part, behind in [(1, "low", 2.0), (2, "up", 3.0), (3, "up", 2.5)]
    ]
    assert len({row["at"] for row in found}) == 3


def test_the_absence_of_a_stream_s_tuples_is_in_the_label(gives: Gives) -> None:
    one = Match(Source(STREAM), (), (), PatternVariable("a"), 1_000, skip=NEXT_ROW, absent=("a",))
    found = gives(one, [(1, "a", 1.0, 1)], END)
    assert rows(found) == [(1 * S, 255)]

"""What lags by no more than a relation's lateness counts, in any year, batch by batch."""

from __future__ import annotations

import json
import os
from calendar import timegm
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from catalog.expression import AttributeRef
from catalog.label import Label
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    Column,
    Join,
    Project,
    Source,
    Window,
)
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from catalog.time_source import TimeSource
from secfilter.columns import ID, label_column
from secfilter.compiler import compile_plan
from secfilter.kafka_options import KafkaOptions
from secfilter.queries import Engine
from secfilter.running_query import RunningQuery
from tests.lanes import sampled
from tests.plans import AnyPlan, checked, grouped, updating
from tests.unit.secfilter.collected import collected

# A tuple is a second since 1970 and a key, which also tells it from the others.
Batch = Sequence[tuple[int, int]]
_SCHEMA = Schema((Attribute("at", Type.TIMESTAMP, required=True), Attribute("key", Type.BIGINT)))
_COUNT = (Aggregation("n", "count", None),)
Gives = Callable[..., tuple[list[Row], StreamingQuery]]


def relation(name: str, kind: RelationKind, lateness_ms: int = 0) -> Relation:
    number = {"a": 1, "b": 2}[name]
    return Relation(number, name, kind, _SCHEMA, "at", lateness_ms)


def counted(source: Relation) -> Aggregate:
    return grouped(Source(source), Window(10_000, 10_000), (), _COUNT)


def paired(time: TimeSource = TimeSource.DATA) -> Join:
    sides = [
        Project(
            Source(replace(relation(name, RelationKind.STREAM), time=time)),
            tuple(Column(f"{name}_{a}", AttributeRef(a)) for a in _SCHEMA.names),
        )
        for name in ("a", "b")
    ]
    return Join(sides[0], sides[1], ((AttributeRef("a_key"), AttributeRef("b_key")),), 0, 0)


@pytest.fixture
def gives(spark: SparkSession, tmp_path: Path) -> Gives:
    """All results of a plan over batches of tuples, by relation, and its query, which has ended.

    Times are seconds since 1970: Python has no year 10000.
    """

    def run(
        plan: AnyPlan, batches: Mapping[str, Sequence[Batch]], mode: str = "append"
    ) -> tuple[list[Row], StreamingQuery]:
        for name, each in batches.items():
            write(tmp_path / name, each)

        def source(relation: Relation) -> DataFrame:
            columns = f"at bigint, key bigint, {label_column(0)} bigint, {ID} string"
            reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
            read = reader.json(str(tmp_path / relation.name))
            return read.withColumn("at", fn.timestamp_seconds("at"))

        frame = compile_plan(checked(plan), source, lambda _relation: Label.of(0)).frame
        return collected(frame, mode, tmp_path / "checkpoint")

    return run


def write(folder: Path, batches: Sequence[Batch]) -> None:
    """A file for each batch, in their order."""
    folder.mkdir()
    for number, batch in enumerate(batches):
        file = folder / f"{number}.json"
        rows = ({"at": s, "key": k, label_column(0): 1, ID: f"{k}"} for s, k in batch)
        file.write_text("\n".join(map(json.dumps, rows)))
        os.utime(file, (1_000_000 + number, 1_000_000 + number))


# Of one time, as the groups of a window are, read in several pieces.
_PIECES: Sequence[Batch] = [[(5, n)] for n in range(5)]


def test_pairs_of_one_time_are_all_given(gives: Gives) -> None:
    pairs, _ = gives(paired(), {"a": _PIECES, "b": _PIECES})
    assert sorted(row["a_key"] for row in pairs) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("lateness_ms", [0, 3_000])
def test_an_outputs_results_of_one_time_all_count(gives: Gives, lateness_ms: int) -> None:
    source = relation("a", RelationKind.OUTPUT, lateness_ms)
    late = [[(8, 99)], *([(8 - lateness_ms // 1_000, n)] for n in range(4)), [(30, 100)]]
    (window,), _ = gives(counted(source), {"a": late})
    assert window["n"] == 5


def test_a_streams_window_closes_at_its_end(gives: Gives) -> None:
    found, _ = gives(counted(relation("a", RelationKind.STREAM)), {"a": [[(9, 1)], [(10, 2)]]})
    assert [row["n"] for row in found] == [1]


def test_what_is_late_is_told(spark: SparkSession, gives: Gives) -> None:
    stream = relation("a", RelationKind.STREAM)
    on_time: Sequence[Batch] = [[(5, 1)], [(20, 2)], [(21, 3)]]
    _, query = gives(counted(stream), {"a": [*on_time, [(1, 4)]]})
    nothing = cast(Any, None)
    engine = Engine(spark, KafkaOptions({}), nothing, nothing, "")
    running = RunningQuery(query, engine.leftovers_of(query))
    assert running.withheld() == {"late": 1}
    assert running.withheld() == {}, "it was told"


MINUTE, WEEK = 60, 7 * 24 * 3_600
# The first second of a minute in each of these years.
YEARS = {
    1: timegm((1, 1, 1, 0, 0, 0)),
    1900: timegm((1900, 2, 28, 23, 59, 0)),
    1969: timegm((1969, 12, 31, 23, 59, 0)),
    9999: timegm((9999, 12, 31, 23, 55, 0)),
}


def late(query: StreamingQuery) -> int:
    states = [state for each in query.recentProgress for state in each.stateOperators]
    assert states
    return sum(state.numRowsDroppedByWatermark for state in states)


@pytest.mark.parametrize("year", sampled(YEARS, 3))
def test_windows_of_any_year_close(gives: Gives, year: int) -> None:
    """Hopping ones, of a week and aligned to 1970, over an output, whose repeats are left out."""
    start = YEARS[year]
    source = Source(relation("a", RelationKind.OUTPUT))
    plan = grouped(source, Window(2_000 * WEEK, 1_000 * WEEK), (), _COUNT)
    found, query = gives(
        plan, {"a": [[(start, 1)], [(start + 1, 2), (start, 1)], [(start + 5 * WEEK, 3)]]}
    )
    last = start // WEEK * WEEK
    counted = {row[WINDOW_START]: (row[WINDOW_END], row["n"]) for row in found}
    assert counted == {last - WEEK: (last + WEEK, 2), last: (last + 2 * WEEK, 2)}
    assert late(query) == 0


@pytest.mark.parametrize("year", sampled(YEARS, 3))
def test_updates_of_any_year_are_given(gives: Gives, year: int) -> None:
    start = YEARS[year]
    plan = updating(counted(relation("a", RelationKind.STREAM)))
    batches = [[(start + 1, 1)], [(start, 2)], [(start + 3, 3)]]
    found, query = gives(plan, {"a": batches}, "update")
    assert [(row[WINDOW_START], row["n"]) for row in found] == [(start, n) for n in (1, 2, 3)]
    assert late(query) == 0


@pytest.mark.parametrize("year", sampled(YEARS, 3))
def test_pairs_of_any_year_are_given(gives: Gives, year: int) -> None:
    start = YEARS[year]
    mine = [[(start, 1)], [(start + MINUTE, 2)], [(start + 2 * MINUTE, 3)]]
    other = [[(start - 2, 1)], [(start + MINUTE - 3, 2)], [(start + 2 * MINUTE + 1, 3)]]
    found, query = gives(
        replace(paired(), lower_ms=-2_000, upper_ms=1_000), {"a": mine, "b": other}
    )
    assert sorted((row["a_key"], row["b_at"] - row["a_at"]) for row in found) == [(1, -2), (3, 1)]
    assert late(query) == 0

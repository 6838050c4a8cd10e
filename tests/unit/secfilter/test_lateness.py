"""What lags by no more than a relation's lateness counts, micro-batch by micro-batch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from catalog.expression import AttributeRef
from catalog.label import Label
from catalog.plan import Aggregate, Aggregation, Column, Join, Plan, Project, Source, Window
from catalog.relation import Relation, RelationKind
from catalog.schema import Attribute, Schema, Type
from secfilter.columns import ID, label_column
from secfilter.compiler import compile_plan
from secfilter.kafka_options import KafkaOptions
from secfilter.queries import Engine, RunningQuery

# A tuple is a second and a key, which also tells it from the others.
Batch = Sequence[tuple[int, int]]
_SCHEMA = Schema((Attribute("at", Type.TIMESTAMP, required=True), Attribute("key", Type.BIGINT)))
_COUNT = (Aggregation("n", "count", None),)
Gives = Callable[..., tuple[list[Row], StreamingQuery]]


def relation(name: str, kind: RelationKind, lateness_ms: int = 0) -> Relation:
    number = {"a": 1, "b": 2}[name]
    return Relation(number, name, kind, _SCHEMA, "at", lateness_ms, Label.of(0))


def counted(source: Relation) -> Aggregate:
    return Aggregate(Source(source), Window(10_000, 10_000), (), _COUNT)


def paired() -> Join:
    sides = [
        Project(
            Source(relation(name, RelationKind.STREAM)),
            tuple(Column(f"{name}_{a}", AttributeRef(a)) for a in _SCHEMA.names),
        )
        for name in ("a", "b")
    ]
    return Join(sides[0], sides[1], ((AttributeRef("a_key"), AttributeRef("b_key")),), 0, 0)


@pytest.fixture
def gives(spark: SparkSession, tmp_path: Path) -> Gives:
    """All results of a plan over batches of tuples, by relation, and its query, which has ended."""

    def run(plan: Plan, batches: Mapping[str, Sequence[Batch]]) -> tuple[list[Row], StreamingQuery]:
        for name, each in batches.items():
            write(tmp_path / name, each)

        def source(relation: Relation) -> DataFrame:
            columns = f"at timestamp, key bigint, {label_column(0)} bigint, {ID} string"
            reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
            return reader.json(str(tmp_path / relation.name))

        found: list[Row] = []
        writer = compile_plan(plan, source).frame.writeStream
        writer = writer.foreachBatch(lambda frame, _: found.extend(frame.collect()))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return found, query

    return run


def write(folder: Path, batches: Sequence[Batch]) -> None:
    """A file for each batch, in their order."""
    folder.mkdir()
    for number, batch in enumerate(batches):
        file = folder / f"{number}.json"
        rows = ({"at": _at(s), "key": k, label_column(0): 1, ID: f"{k}"} for s, k in batch)
        file.write_text("\n".join(map(json.dumps, rows)))
        os.utime(file, (1_000_000 + number, 1_000_000 + number))


def _at(second: int) -> str:
    return f"2026-01-31T12:{second // 60:02d}:{second % 60:02d}Z"


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
    assert RunningQuery(query, engine).withheld() == {"late": 1}

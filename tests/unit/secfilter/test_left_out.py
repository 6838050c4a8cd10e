"""What a query leaves out because its state is full: who gets a record of which tuple."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.output_relation import output_relation
from catalog.placement import Placement
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
    Union,
)
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, QueryRun
from catalog.schema import Type
from secfilter import moving
from secfilter.columns import ID, label_column
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from secfilter.moving_relation import MOST_TOLD
from secfilter.moving_window import Arrival, HeldLimits
from tests.plans import checked
from tests.unit.secfilter.batches import SCHEMA
from tests.unit.secfilter.moving_world import STREAMS, engine

KEY = "00" * 32
STREAM = Relation(1, "a", RelationKind.STREAM, SCHEMA, "at", 0)
ENDLESS = Moving(Source(STREAMS["a"]), MovingWindow())
# Of the stream: its source category, and two others.
SOURCE, ONE, TWO = 0, 1, 2
REACH = Label.of(SOURCE, ONE, TWO)
COVERS_ALL = Clearance.of(SOURCE, ONE, TWO)
COVERS_ONE = Clearance.of(SOURCE, ONE)
# Second since 1970, key, price, the label word.
ROWS = ((1, "a", 1.0, 1), (2, "a", 2.0, 1), (3, "b", 3.0, 3), (4, "b", 4.0, 5), (5, "c", 5.0, 3))


def tuples(several: range) -> list[Arrival]:
    return [Arrival(n, f"{n:05}", (1,), "", True, "", "") for n in several]


def test_what_comes_too_late_is_counted_and_not_told() -> None:
    relation = engine(Aggregate(ENDLESS, (), (Aggregation("n", "first", PRICE),)), Change.ISTREAM)
    assert [*relation.until(9)] == []
    relation.take(tuples(range(8, 12)))
    assert (relation.withheld, relation.left_out) == (2, [])


def test_so_many_are_told_in_a_batch_and_the_others_are_counted() -> None:
    relation = engine(ENDLESS, Change.ISTREAM, 3)
    relation.take(tuples(range(1_000)))
    assert relation.withheld == 997
    assert [each.time for _, each in relation.left_out] == [*range(3, 3 + MOST_TOLD)]


PRICE = AttributeRef("price")


def told(row: Row) -> dict[str, str]:
    return {each["key"]: bytes(each["value"]).decode() for each in row["headers"]}


def fanned_out(spark: SparkSession, root: Node, run: QueryRun) -> Mapping[str, Sequence[Row]]:
    """The records of each topic over the rows above, in their order."""
    columns = f"at bigint, key string, price double, {label_column(0)} bigint, {ID} string"

    def source(_relation: Relation) -> DataFrame:
        rows = [(*row, f"1:0:{number}") for number, row in enumerate(ROWS)]
        made = spark.createDataFrame(rows, columns).coalesce(1)
        return made.withColumn("at", fn.timestamp_seconds("at"))

    compiled = compile_plan(
        checked(root), source, lambda _relation: REACH, viewers=run.viewers, tells=True
    )
    found: dict[str, list[Row]] = {}
    for row in fan_out(compiled, run, KEY).collect():
        found.setdefault(row["topic"], []).append(row)
    return found


def run_of(root: Node, placement: Placement, *classes: FanOutClass) -> QueryRun:
    output = output_relation(9, "result", checked(root))
    labelled = placement is Placement.SINK
    return QueryRun(
        *("result", checked(root).plan, (FedOutput(output, classes, labelled),)),
        *(Label.of(SOURCE), {}),
        reaches={STREAM.object_id: REACH},
        placement=placement,
    )


def plan(window: MovingWindow, change: Change = Change.ISTREAM) -> Node:
    """A query with steps over the stream of its relation, and beside it."""
    relation = Moving(Source(STREAM), window)
    dear = Filter(ToStream(relation, change), Call(">", (PRICE, Literal(0.0, Type.DOUBLE))))
    columns = (Column("key", AttributeRef("key")), Column("twice", Call("+", (PRICE, PRICE))))
    cheap = Filter(Source(STREAM), Call("<", (PRICE, Literal(0.0, Type.DOUBLE))))
    return Union((Project(dear, columns), Project(cheap, columns)))


CLASSES = (
    FanOutClass("all", COVERS_ALL, id=1),
    FanOutClass("one", COVERS_ONE, id=2),
    FanOutClass("weak", COVERS_ALL, weak=True, id=3),
)


@pytest.fixture
def full_with_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "MAX_HELD", HeldLimits(3, 10_000))


def of_results(rows: Sequence[Row]) -> list[Any]:
    return sorted(json.loads(row["value"])["twice"] for row in rows if row["value"])


def left_out(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """The times of what was left out, and the labels."""
    found = []
    for row in rows:
        headers = told(row)
        if "left-out" in headers:
            assert (row["key"], row["value"]) == (None, None)
            assert {*headers} == {"label", "id", "left-out", "fence"}
            text = json.loads(headers["left-out"])
            assert (text["reason"], text["window"]) == ("window_full", 1)
            found.append((text["time"], headers["label"]))
    return sorted(found)


@pytest.mark.usefixtures("full_with_three")
def test_who_covers_all_that_a_window_can_hold_is_told(spark: SparkSession) -> None:
    root = plan(MovingWindow())
    topics = fanned_out(spark, root, run_of(root, Placement.SINK, *CLASSES))
    assert of_results(topics["all"]) == [2.0, 4.0, 6.0]
    times = [f"1970-01-01T00:00:0{second}.000000Z" for second in (4, 5)]
    assert left_out(topics["all"]) == [(time, "7") for time in times]
    # Of the second tuple the label would be covered. But that the window is full reveals others.
    assert of_results(topics["one"]) == [2.0, 4.0, 6.0]
    assert left_out(topics["one"]) == []
    assert left_out(topics["weak"]) == []
    # Other queries do not read it.
    assert len(topics["lab.result"]) == 3


@pytest.mark.usefixtures("full_with_three")
def test_a_class_with_a_window_of_its_own_is_told_of_that_one(spark: SparkSession) -> None:
    root = plan(MovingWindow())
    topics = fanned_out(spark, root, run_of(root, Placement.SOURCES, *CLASSES[:2]))
    times = [f"1970-01-01T00:00:0{second}.000000Z" for second in (4, 5)]
    assert left_out(topics["all"]) == [(times[0], "5"), (times[1], "3")]
    assert left_out(topics["one"]) == [(times[1], "3")]
    ids = [told(row)["id"] for rows in topics.values() for row in rows]
    assert len({*ids}) == len(ids)


@pytest.mark.usefixtures("full_with_three")
def test_hidden_tuples_fill_a_window_with_one_size_for_all_and_are_not_told(
    spark: SparkSession,
) -> None:
    root = plan(MovingWindow(rows=2, of_all=True))
    topics = fanned_out(spark, root, run_of(root, Placement.SOURCES, *CLASSES[:2]))
    times = [f"1970-01-01T00:00:0{second}.000000Z" for second in (4, 5)]
    assert left_out(topics["all"]) == [(times[0], "5"), (times[1], "3")]
    assert left_out(topics["one"]) == [(times[1], "3")]


@pytest.mark.usefixtures("full_with_three")
def test_of_windows_of_tuples_nobody_is_told(spark: SparkSession) -> None:
    """Policies may show them where they show no single tuple."""
    root = plan(MovingWindow(rows=2, slide_rows=2))
    topics = fanned_out(spark, root, run_of(root, Placement.SINK, *CLASSES))
    assert of_results(topics["all"]) == [2.0, 4.0]
    assert left_out(topics["all"]) == []


@pytest.mark.usefixtures("full_with_three")
def test_beside_upserts_it_has_no_key(spark: SparkSession) -> None:
    newest = MovingWindow(rows=1, partition=(AttributeRef("key"),))
    root = ToStream(Moving(Source(STREAM), newest), Change.UPSERT)
    topics = fanned_out(spark, root, run_of(root, Placement.SINK, *CLASSES))
    assert len(left_out(topics["all"])) == 2
    assert all(row["key"] is not None for row in topics["all"] if row["value"] is not None)

"""Who gets a result: all classes whose clearance covers its label, and nobody else."""

import json
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as fn

from catalog.clearance import Clearance
from catalog.label import PUBLIC, Label
from catalog.label_layout import LabelLayout
from catalog.plan import Source
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, QueryRun
from catalog.schema import Attribute, Schema, Type, held_as
from secfilter.columns import GIVEN_TO, SPARK_TYPES, label_column
from secfilter.compiler import Compiled
from secfilter.fanout import fan_out
from secfilter.given_to import FOR_EVERYBODY, for_reader, for_topics
from secfilter.lab import marked_reader, stands
from tests.plans import whole

SCHEMA = Schema(
    (
        Attribute("s", Type.STRING),
        Attribute("n", Type.BIGINT),
        Attribute("x", Type.DOUBLE),
        Attribute("b", Type.BOOLEAN),
        Attribute("t", Type.TIMESTAMP),
    )
)
REACH = Label.of(0, 1, 63, 64, 130)
OUTPUT = Relation(7, "o", RelationKind.OUTPUT, SCHEMA, None, 0)
# One category came later, and a word is not used yet.
LAYOUT = LabelLayout((0, 1, 63, 130, 64), words=2)
WORDS = range(LAYOUT.words)
KEY = "00" * 32


def run_of(*classes: FanOutClass, labelled: bool = False, sources: Label = PUBLIC) -> QueryRun:
    return QueryRun(
        "q", whole(Source(OUTPUT)), (FedOutput(OUTPUT, classes, labelled),), sources, {}
    )


def delivered(
    spark: SparkSession, run: QueryRun, rows: list[tuple[Any, ...]], max_bytes: int = 1000
) -> list[Row]:
    """Rows are attributes (time in µs), label (None for no words), lineage."""
    types = [f"{a.name} {SPARK_TYPES[held_as(a.type)]}" for a in SCHEMA.attributes[:-1]] + [
        "t bigint"
    ]
    types += [f"{label_column(i)} bigint" for i in WORDS] + ["__id string"]
    data = [
        (
            *values,
            *(None if label is None else LAYOUT.packed(label).word(i) for i in WORDS),
            lineage,
        )
        for *values, label, lineage in rows
    ]
    frame = spark.createDataFrame(data, ", ".join(types)).coalesce(1)
    typed = frame.withColumn("t", fn.timestamp_micros("t"))
    compiled = Compiled(typed, SCHEMA, LAYOUT, event_time="t")
    return list(fan_out(compiled, run, KEY, max_bytes).collect())


def headers(row: Row) -> dict[str, str]:
    return {h["key"]: bytes(h["value"]).decode() for h in row["headers"]}


VALUES = ("a", 1, 1.5, True, 1)


def test_value_and_headers(spark: SparkSession) -> None:
    run = run_of(FanOutClass("out.o.a", Clearance.of(0, 64)))
    (row,) = delivered(spark, run, [('é"\n', None, None, False, -1, Label.of(0, 64), "1:0:0")])
    assert row["value"] == (
        '{"s":"é\\"\\n","n":null,"x":null,"b":false,"t":"1969-12-31T23:59:59.999999Z"}'
    )
    assert list(headers(row)) == ["label", "id"] and headers(row)["label"] == "1,1"
    assert len(headers(row)["id"]) == 32


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_double_that_is_not_finite_is_null(spark: SparkSession, value: float) -> None:
    run = run_of(FanOutClass("out.o.a", Clearance.of(0)))
    (row,) = delivered(spark, run, [("a", 1, value, True, 1, Label.of(0), "1:0:0")])
    assert json.loads(row["value"])["x"] is None


@pytest.mark.parametrize("micros", [-(2**63), 2**63 - 1])
def test_no_timestamp_fails(spark: SparkSession, micros: int) -> None:
    run = run_of(FanOutClass("out.o.a", Clearance.of(0)), labelled=True)
    assert len(delivered(spark, run, [("a", 1, 1.0, True, micros, Label.of(0), "i")])) == 2


def test_ids_depend_on_lineage_and_output_alone(spark: SparkSession) -> None:
    run = run_of(FanOutClass("a", Clearance.of(0)), FanOutClass("b", Clearance.of(0)))
    rows = [(*VALUES, Label.of(0), "1:0:0"), (*VALUES, Label.of(0), "1:0:1")]
    first, second = delivered(spark, run, rows), delivered(spark, run, rows)
    assert [headers(r)["id"] for r in first] == [headers(r)["id"] for r in second]
    assert len({headers(r)["id"] for r in first}) == 2


def test_outputs_that_share_a_run_get_what_each_would_get_alone(spark: SparkSession) -> None:
    one, other = (
        FedOutput(
            replace(OUTPUT, object_id=number, name=name),
            (FanOutClass(f"out.{name}.a", Clearance.of(0)), *more),
            labelled=name == "p",
        )
        for number, name, more in (
            (7, "o", (FanOutClass("out.o.b", Clearance.of(0, 64)),)),
            (8, "p", ()),
        )
    )
    rows = [
        (*VALUES, Label.of(0), "1:0:0"),
        (*VALUES, Label.of(64), "1:0:1"),
        (*VALUES, Label.of(0), "1:0:2"),
    ]
    alone = [
        row
        for output in (one, other)
        for row in delivered(spark, replace(run_of(), outputs=(output,)), rows)
    ]
    shared = delivered(spark, replace(run_of(), outputs=(one, other)), rows)
    assert sorted(map(str, shared)) == sorted(map(str, alone))
    ids = {
        topic: {headers(row)["id"] for row in shared if row["topic"] == topic}
        for topic in ("out.o.a", "out.p.a")
    }
    assert [len(found) for found in ids.values()] == [2, 2]
    assert ids["out.o.a"].isdisjoint(ids["out.p.a"]), "ids do not tell that they share"


def test_no_label_is_never_seen(spark: SparkSession) -> None:
    everything = Clearance(REACH.bits)
    run = run_of(FanOutClass("a", everything), FanOutClass("w", everything, weak=True))
    assert delivered(spark, run, [(*VALUES, None, "1:0:0")]) == []


def test_lab_gets_every_result_with_its_id(spark: SparkSession) -> None:
    run = run_of(FanOutClass("a", Clearance.of(130)), labelled=True)
    given, row = delivered(spark, run, [(*VALUES, Label.of(130), "1:0:0")])
    assert (given["topic"], given["key"], row["topic"]) == ("a", None, "lab.o")
    assert row["value"] == "a\x1f1\x1f1.5\x1ftrue\x1f1"
    assert (row["key"], headers(row)) == (headers(given)["id"], {"tuple-3": "0,0,4"})


def test_labs_key_is_no_longer_for_a_long_lineage(spark: SparkSession) -> None:
    run = run_of(labelled=True)
    rows = [(*VALUES, Label.of(0), "k" * 1_000_000 + end) for end in "aab"]
    keys = [row["key"] for row in delivered(spark, run, rows)]
    assert [len(key) for key in keys] == [32, 32, 32]
    assert (keys[0] == keys[1]) and keys[1] != keys[2], "a repeated result has the key it had"


def test_without_classes_there_is_nothing(spark: SparkSession) -> None:
    assert delivered(spark, run_of(), [(*VALUES, Label.of(0), "1:0:0")]) == []


def test_what_the_broker_would_refuse_stops_nothing_else(spark: SparkSession) -> None:
    run = run_of(FanOutClass("a", Clearance.of(0)), labelled=True)
    large = ("x" * 1000, 1, 1.5, True, 1)
    rows = [(*large, Label.of(0), "1"), (*VALUES, Label.of(0), "2"), (*large, Label.of(1), "3")]
    assert [r["topic"] for r in delivered(spark, run, rows)] == ["a", "lab.o"]


bits = st.sets(st.sampled_from(REACH.categories())).map(lambda found: Label.of(*found))


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    clearances=st.lists(bits, min_size=1, max_size=6),
    labels=st.lists(bits, min_size=1, max_size=20),
    sources=bits,
    served=st.none() | bits.map(lambda found: Clearance(found.bits)),
    roles=st.lists(bits, min_size=1, max_size=3),
)
def test_the_fan_out_agrees_with_the_catalogs_check(
    spark: SparkSession,
    clearances: list[Label],
    labels: list[Label],
    sources: Label,
    served: Clearance | None,
    roles: list[Label],
) -> None:
    together = Clearance(reduce(or_, (each.bits for each in roles)))
    ways = tuple(Clearance(each.bits) for each in roles)
    classes = [
        FanOutClass("ways", together, ways=ways),
        *(
            FanOutClass(f"{weak}-{beyond}-{i}", Clearance(held.bits), weak, beyond)
            for i, held in enumerate(clearances)
            for weak in (False, True)
            for beyond in {None, served}
        ),
    ]
    rows = [(*VALUES[:1], n, *VALUES[2:], label, str(n)) for n, label in enumerate(labels)]
    run = run_of(*classes, sources=sources)
    got = {(r["topic"], json.loads(r["value"])["n"]) for r in delivered(spark, run, rows)}
    expected = {
        (c.topic, n)
        for c in classes
        for n, label in enumerate(labels)
        if c.delivery.takes(label, sources)
    }
    assert got == expected


UPSERTS = Schema(
    (
        Attribute("instant", Type.TIMESTAMP),
        Attribute("deleted", Type.BOOLEAN),
        Attribute("s", Type.STRING),
        Attribute("n", Type.BIGINT),
    )
)


def upserts(spark: SparkSession, run: QueryRun, rows: list[tuple[Any, ...]]) -> list[Row]:
    """Rows are attributes (time in µs), label words, lineage, and to whom they go."""
    types = ["instant bigint, deleted boolean, s string, n bigint"]
    types += [f"{label_column(i)} bigint" for i in WORDS] + ["__id string", f"{GIVEN_TO} string"]
    frame = spark.createDataFrame(rows, ", ".join(types)).coalesce(1)
    typed = frame.withColumn("instant", fn.timestamp_micros("instant"))
    return list(fan_out(Compiled(typed, UPSERTS, LAYOUT, ("s",)), run, KEY, 400).collect())


def test_a_row_that_stands_goes_to_the_named_topics_whose_classes_cover_it(
    spark: SparkSession,
) -> None:
    output = replace(OUTPUT, schema=UPSERTS, keys=("s",))
    classes = (
        FanOutClass("out.o.a", Clearance.of(0)),
        FanOutClass("out.o.b", Clearance.of(0, 64)),
        FanOutClass("out.o.c", Clearance.of(64)),
    )
    run = replace(run_of(), outputs=(FedOutput(output, classes, labelled=True),))
    label = [LAYOUT.packed(Label.of(0)).word(i) for i in WORDS]
    rows = [
        (1, False, "a", 1, *label, "i1", for_topics(["out.o.b", "out.o.c"])),
        (2, False, "b", 2, *label, "i2", for_topics(["lab.o"])),
        (3, True, None, None, *label, "i3", for_reader(["lab.o"], 11)),
        (4, False, "d", 4, *label, "i4", None),
    ]
    made = upserts(spark, run, rows)
    (mark,) = [each for each in made if each["topic"] == "lab.o" and ":11:" in each["key"]]
    assert marked_reader(f"9:{mark['key']}") == 11 and stands(f"9:{mark['key']}")
    found = {each["topic"]: each for each in made if each is not mark}
    assert found.keys() == {"out.o.b", "lab.o"}
    assert json.loads(found["out.o.b"]["value"])["n"] == 1
    assert found["lab.o"]["value"] == "2\x1ffalse\x1fb\x1f2"
    assert stands(f"9:{found['lab.o']['key']}") and not stands(f"9:{found['out.o.b']['key']}")


def test_upserts_have_a_key_and_a_version_and_a_deletion_is_a_tombstone(
    spark: SparkSession,
) -> None:
    label = [LAYOUT.packed(Label.of(0)).word(i) for i in WORDS]
    large = "x" * 500
    rows = [
        (5, False, "a", 1, *label, "i1"),
        (-7, True, "a", None, *label, "i2"),
        (8, False, None, 2, *label, "i3"),
        (9, False, large, 3, *label, "i4"),
    ]
    run = run_of(FanOutClass("out.o.a", Clearance.of(0)), FanOutClass("out.o.b", Clearance.of(1)))
    everybody = [(*row, FOR_EVERYBODY) for row in rows]
    first, deletion, null, *others = upserts(spark, run, everybody)
    assert others == [], "neither a class that does not cover it, nor what is too large"
    assert json.loads(first["value"])["n"] == 1
    assert [json.loads(each["key"]) for each in (first, deletion, null)] == [
        {"s": "a"},
        {"s": "a"},
        {"s": None},
    ]
    assert deletion["value"] is None
    versions = [headers(each)["row-version"] for each in (first, deletion, null)]
    assert versions == ["5", "-7", "8"]
    assert list(headers(deletion)) == ["label", "id", "row-version"]


def test_an_output_that_moves_gets_its_part_of_the_results(spark: SparkSession) -> None:
    """The times are in microseconds, and those of the turn in milliseconds."""
    parts: dict[str, tuple[int | None, int | None]] = {
        "all": (None, None),
        "new": (2, None),
        "old": (None, 2),
    }
    outputs = tuple(
        FedOutput(
            replace(OUTPUT, object_id=number, name=name),
            (FanOutClass(f"out.{name}", Clearance.of(0)),),
            labelled=True,
            after_ms=after_ms,
            until_ms=until_ms,
        )
        for number, (name, (after_ms, until_ms)) in enumerate(parts.items())
    )
    both = replace(run_of(), outputs=outputs)
    times = [1_000, 2_000, 2_001, 3_000, None]
    rows = [("a", at, 1.5, True, at, Label.of(0), str(at)) for at in times]
    found: dict[str, set[Any]] = {}
    for row in delivered(spark, both, rows):
        if row["topic"].startswith("out."):
            found.setdefault(row["topic"], set()).add(json.loads(row["value"])["n"])
        else:
            found.setdefault(row["topic"], set()).add(row["key"])
    assert found["out.all"] == set(times)
    assert found["out.new"] == {2_001, 3_000, None}
    assert found["out.old"] == {1_000, 2_000, None}
    inside = {name: len(found[f"lab.{name}"]) for name in parts}
    assert inside == {"all": 5, "new": 3, "old": 3}


def test_a_backfill_has_no_result_without_a_time(spark: SparkSession) -> None:
    """What such a result depends on may have come before the backfill begins."""
    run = run_of(FanOutClass("out.o", Clearance.of(0)))
    later = replace(run, backfill=True, outputs=(replace(run.outputs[0], after_ms=2),))
    rows = [("a", at, 1.5, True, at, Label.of(0), str(at)) for at in (2_000, 2_001, None)]
    assert [json.loads(each["value"])["n"] for each in delivered(spark, later, rows)] == [2_001]


def test_no_output_without_an_event_time_moves(spark: SparkSession) -> None:
    run = run_of(FanOutClass("out.o", Clearance.of(0)))
    moving = replace(run, outputs=(replace(run.outputs[0], until_ms=1),))
    frame = spark.range(0)
    with pytest.raises(ValueError, match="no event time"):
        fan_out(Compiled(frame, SCHEMA, LAYOUT), moving, KEY)

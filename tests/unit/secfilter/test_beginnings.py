"""An output of a shared run gets nothing that came before its query was added."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.plan import Column, Filter, Node, Project, Source, Union
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, QueryRun
from catalog.schema import Attribute, Schema, Type
from secfilter.beginnings import begun, late_outputs
from secfilter.columns import BEGUN
from secfilter.compiler import compile_plan
from secfilter.fanout import fan_out
from secfilter.lab import HEADERS_TYPE, read_lab
from tests.plans import checked, whole

SCHEMA = Schema((Attribute("n", Type.BIGINT),))
ONE, TWO = (
    Relation(number, f"s{number}", RelationKind.STREAM, SCHEMA, None, 0) for number in (1, 2)
)
LABEL = Label.of(0)
EARLY = {"lab.s1": {"0": 0, "1": 0}, "lab.s2": {"0": 0}}
LATER = {"lab.s1": {"0": 2, "1": 1}, "lab.s2": {"0": 3}}
LATEST = {"lab.s1": {"0": 9, "1": 9}, "lab.s2": {"0": 4}}
_SHOWN = Project(
    Filter(Source(ONE), Call(">", (AttributeRef("n"), Literal(0, Type.BIGINT)))),
    (Column("n", AttributeRef("n")),),
)
PLAN: Node = Union((_SHOWN, Union((Source(TWO), Source(TWO)))))


def output(number: int, begins: Mapping[str, Mapping[str, int]], labelled: bool) -> FedOutput:
    relation = Relation(number, f"o{number}", RelationKind.OUTPUT, SCHEMA, None, 0)
    own = (FanOutClass(f"out.o{number}.c", Clearance.of(0)),)
    return FedOutput(relation, own, labelled, begins)


RUN = QueryRun(
    *("query-1", whole(PLAN)),
    (output(7, EARLY, True), output(8, LATER, True), output(9, LATEST, False)),
    LABEL,
    EARLY,
    reaches={1: LABEL, 2: LABEL},
)


def records(spark: SparkSession, relation: Relation) -> DataFrame:
    """Ten records in each of two partitions: n is 100 for each partition, and the offset."""
    marks = [("tuple-3", b"1")]
    first = 1_000 * relation.object_id
    rows = [
        (None, str(first + 100 * partition + offset).encode(), partition, offset, marks)
        for partition in range(2 if relation is ONE else 1)
        for offset in range(10)
    ]
    columns = f"key binary, value binary, partition int, offset bigint, headers {HEADERS_TYPE}"
    return spark.createDataFrame(rows, columns)


def delivered(spark: SparkSession, start: Mapping[str, Mapping[str, int]]) -> dict[str, list[int]]:
    """What each topic gets from a run that reads from `start` on. The records are all there."""
    late = late_outputs(RUN, start)

    def source(relation: Relation) -> DataFrame:
        beside = {BEGUN: begun(late, relation.topic)} if late else {}
        return read_lab(records(spark, relation), relation, LABEL, beside=beside)

    beside = [BEGUN] if late else []
    compiled = compile_plan(checked(RUN.plan), source, RUN.reach_of, beside=beside)
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row in fan_out(compiled, RUN, "00", late=late).coalesce(1).collect():
        number = row["value"].removeprefix('{"n":').removesuffix("}")
        found[row["topic"]].append(int(number))
    return found


def since(begins: Mapping[str, Mapping[str, int]]) -> list[int]:
    """All results of tuples from these offsets on: those of the second stream come twice."""
    first = [1_000 + 100 * p + n for p in range(2) for n in range(begins["lab.s1"][str(p)], 10)]
    second = [2_000 + n for n in range(begins["lab.s2"]["0"], 10)]
    return sorted(first + second * 2)


def test_a_run_that_reads_older_tuples_leaves_them_out_of_later_outputs(
    spark: SparkSession,
) -> None:
    found = delivered(spark, EARLY)
    assert {topic: sorted(numbers) for topic, numbers in found.items()} == {
        "out.o7.c": since(EARLY),
        "lab.o7": since(EARLY),
        "out.o8.c": since(LATER),
        "lab.o8": since(LATER),
        "out.o9.c": since(LATEST),
    }


@pytest.mark.parametrize(
    ("start", "late"),
    [
        (EARLY, [8, 9]),
        (LATER, [9]),
        ({**LATER, "lab.s1": {"0": 2, "1": 0}}, [8, 9]),
        ({**LATER, "lab.s1": {"0": 2}}, [7, 8, 9]),
        ({}, [7, 8, 9]),
        (LATEST, []),
    ],
)
def test_an_output_is_late_if_anything_older_is_read(
    start: Mapping[str, Mapping[str, int]], late: list[int]
) -> None:
    assert [each.relation.object_id for each in late_outputs(RUN, start)] == late


def test_a_partition_that_was_added_later_is_no_older(spark: SparkSession) -> None:
    two = replace(RUN.outputs[1], begins={"lab.s1": {"0": 2}})
    frame = records(spark, ONE).select("partition", "offset", begun([two], "lab.s1").alias(BEGUN))
    found = frame.where(fn.get(BEGUN, fn.lit(0)) == 0).collect()
    assert sorted((row["partition"], row["offset"]) for row in found) == [(0, 0), (0, 1)]

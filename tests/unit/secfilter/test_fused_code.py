"""The code that Spark generates for a fused run stays below what the JVM takes as one method."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.label import Label
from catalog.output_relation import output_relation
from catalog.plan import Column, Filter, Plan, Project, Source
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, QueryRun, fused
from catalog.schema import Attribute, Schema, Type
from secfilter.columns import ECHO
from secfilter.compiler import compile_plan
from secfilter.fused_fanout import fan_out_fused
from secfilter.fusing import MOST_MEMBERS
from secfilter.lab import HEADERS_TYPE, read_lab
from secfilter.output_ticker import echo_column

SCHEMA = Schema(
    (
        Attribute("ts", Type.TIMESTAMP),
        Attribute("symbol", Type.STRING),
        Attribute("venue", Type.STRING),
        Attribute("price", Type.DOUBLE),
        Attribute("quantity", Type.BIGINT),
    )
)
TRADES = Relation(1, "trades", RelationKind.STREAM, SCHEMA, "ts", 0)
REACH = Label.of(0, 70)
RECORDS = (
    "topic string, key binary, value binary, partition int, offset bigint, timestamp timestamp, "
    f"headers {HEADERS_TYPE}"
)


def member(number: int, *, alike: bool) -> QueryRun:
    """SELECT ts, symbol, venue, price * quantity … WHERE quantity > …, for a class of its own."""
    amount: Expression = Call("*", (AttributeRef("price"), AttributeRef("quantity")))
    if not alike:
        amount = Call("+", (amount, Literal(float(number), Type.DOUBLE)))
    names = ("ts", "symbol", "venue")
    columns = (*(Column(each, AttributeRef(each)) for each in names), Column("amount", amount))
    wanted = Call(">", (AttributeRef("quantity"), Literal(number, Type.BIGINT)))
    plan = Plan(Project(Filter(Source(TRADES), wanted), columns))
    relation = output_relation(100 + number, f"o{number}", analyse(plan))
    bits = [bit for bit in range(64) if number >> bit & 1]
    classes = (FanOutClass(f"out.{number}", Clearance.of(70, *bits)),)
    output = FedOutput(relation, classes, number % 2 == 0, {})
    return QueryRun(
        *(f"query-{number}", plan, (output,), Label.of(0), {}), reaches={TRADES.object_id: REACH}
    )


def method_sizes(spark: SparkSession, count: int, *, alike: bool) -> list[int]:
    """The largest method of each stage of generated code (bytes). -1: none was generated."""
    run = fused("fused", [member(number, alike=alike) for number in range(count)])
    records = spark.createDataFrame([], RECORDS)

    def source(relation: Relation) -> DataFrame:
        return read_lab(records, relation, REACH, beside={ECHO: echo_column("life", 0)})

    compiled = compile_plan(analyse(run.plan), source, run.reach_of, beside=[ECHO])
    made = fan_out_fused(compiled, run, "key", echoes=True)
    stages = made._jdf.queryExecution().debug().codegenToSeq()
    return [stages.apply(i)._3().maxMethodCodeSize() for i in range(stages.size())]


@pytest.mark.parametrize(
    "alike",
    [pytest.param(True, id="alike"), pytest.param(False, marks=pytest.mark.long, id="apart")],
)
def test_the_largest_group_has_generated_code(spark: SparkSession, *, alike: bool) -> None:
    sizes = method_sizes(spark, MOST_MEMBERS, alike=alike)
    assert len(sizes) == 2
    assert all(0 < size < 65_536 for size in sizes), sizes

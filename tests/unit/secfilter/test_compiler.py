"""Each node of a plan, over batch tuples: results, labels, lineage."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Join,
    Node,
    Project,
    Source,
    Union,
    Window,
)
from catalog.relation import DeclaredAggregate, Relation, RelationKind
from catalog.schema import Attribute, Schema, Type, held_as
from secfilter.columns import SPARK_TYPES, label_column, words_of
from secfilter.compiler import Compiled, compile_plan
from tests.plans import checked, grouped

PRICE = AttributeRef("price")
Rows = Sequence[tuple[Any, ...]]


def relation(
    name: str,
    *attributes: Attribute,
    object_id: int = 1,
    declared: DeclaredAggregate | None = None,
) -> Relation:
    columns = attributes or (
        Attribute("at", Type.TIMESTAMP, True),
        Attribute("key", Type.STRING),
        Attribute("price", Type.BIGINT),
    )
    return Relation(
        object_id, name, RelationKind.STREAM, Schema(columns), "at", 1000, declared=declared
    )


def sources(
    spark: SparkSession, data: Mapping[str, Rows], bits: Mapping[str, int]
) -> Callable[[Relation], DataFrame]:
    """Batch tuples: (seconds since 1970, attributes...); ids and senders count up."""

    def source(wanted: Relation) -> DataFrame:
        words = words_of(Label.of(bits[wanted.name]))
        attributes = wanted.schema.attributes
        types = [f"`{a.name}` {SPARK_TYPES[held_as(a.type)]}" for a in attributes]
        types += [f"{label_column(i)} bigint" for i in words] + ["__id string", "__sender bigint"]
        label = Label.of(bits[wanted.name])
        rows = [
            (*row, *(label.word(i) for i in words), f"{wanted.object_id}:0:{n}", n)
            for n, row in enumerate(data[wanted.name])
        ]
        made = spark.createDataFrame(
            rows, ", ".join(types).replace("timestamp", "bigint", 1) if rows else ", ".join(types)
        )
        first = attributes[0].name
        return made.withColumn(first, made[first].cast("timestamp"))

    return source


def rows_of(compiled: Compiled) -> list[tuple[Any, ...]]:
    """Attributes, then the label as a number, then the lineage; timestamps as they are."""
    result = []
    for row in compiled.frame.collect():
        words = [row[label_column(i)] & (2**64 - 1) for i in range(compiled.layout.words)]
        held = [words[at // 64] >> at % 64 & 1 for at in range(64 * len(words))]
        assert not any(held[len(compiled.layout.categories) :])
        label = sum(bit << c for bit, c in zip(held, compiled.layout.categories, strict=False))
        result.append((*(row[name] for name in compiled.schema.names), label, row["__id"]))
    return sorted(result, key=repr)


NUMBERS = {sender: sender for sender in range(10)}
A, B = relation("a"), relation("b", object_id=2)
DATA = {"a": [(1, "x", 5), (2, "y", 7)], "b": [(1, "x", 100), (9, "x", 200)]}
BITS = {"a": 0, "b": 70}


def compiled_rows(
    spark: SparkSession, plan: Node, data: Mapping[str, Rows], bits: Mapping[str, int]
) -> list[tuple[Any, ...]]:
    source = sources(spark, data, bits)
    return rows_of(
        compile_plan(
            checked(plan), source, lambda read: Label.of(bits[read.name]), lambda _: NUMBERS
        )
    )


def run(spark: SparkSession, plan: Node) -> list[tuple[Any, ...]]:
    return compiled_rows(spark, plan, DATA, BITS)


def more_than(value: int) -> Call:
    return Call(">", (PRICE, Literal(value, Type.BIGINT)))


def columns(prefix: str) -> tuple[Column, ...]:
    return tuple(Column(f"{prefix}.{n}", AttributeRef(n)) for n in ("at", "key", "price"))


def test_filter_copies_the_label(spark: SparkSession) -> None:
    (row,) = run(spark, Filter(Source(A), more_than(5)))
    assert row[1:] == ("y", 7, 1, "1:0:1")


def test_project_computes_and_copies_the_label(spark: SparkSession) -> None:
    twice = Call("*", (PRICE, Literal(2, Type.BIGINT)))
    got = run(spark, Project(Source(A), (Column("twice", twice),)))
    assert got == [(10, 1, "1:0:0"), (14, 1, "1:0:1")]


def test_union_keeps_each_tuples_own_label(spark: SparkSession) -> None:
    got = run(spark, Union((Source(A), Source(B))))
    assert sorted(row[-2] for row in got) == [1, 1, 1 << 70, 1 << 70]
    assert len({row[-1] for row in got}) == 4


def test_one_tuple_through_two_branches_has_two_lineages(spark: SparkSession) -> None:
    got = run(spark, Union((Source(A), Filter(Source(A), more_than(0)))))
    assert len(got) == 4 and len({row[-1] for row in got}) == 4


def join(lower: int, upper: int) -> Join:
    left, right = Project(Source(A), columns("a")), Project(Source(B), columns("b"))
    equal = ((AttributeRef("a.key"), AttributeRef("b.key")),)
    return Join(left, right, equal, lower, upper)


def named(plan: Node) -> Project:
    left, right = AttributeRef("a.price"), AttributeRef("b.price")
    return Project(plan, (Column("l", left), Column("r", right)))


def test_join_combines_the_labels(spark: SparkSession) -> None:
    assert run(spark, named(join(-500, 500))) == [(5, 100, 1 | 1 << 70, "1:0:0~2:0:0")]


@pytest.mark.parametrize(("upper", "pairs"), [(7_999, 1), (8_000, 2)])
def test_join_interval_is_closed(spark: SparkSession, upper: int, pairs: int) -> None:
    assert len(run(spark, named(join(0, upper)))) == pairs


def test_join_condition_and_self_join(spark: SparkSession) -> None:
    left, right = Project(Source(A), columns("a")), Project(Source(A), columns("b"))
    equal = ((AttributeRef("a.key"), AttributeRef("b.key")),)
    smaller = Call("<", (AttributeRef("a.price"), Literal(7, Type.BIGINT)))
    got = run(spark, named(Join(left, right, equal, -10, 10, smaller)))
    assert got == [(5, 5, 1, "1:0:0~1:0:0")]


def aggregate(inner: Node, *functions: str, size: int = 10_000, slide: int = 10_000) -> Aggregate:
    made = tuple(Aggregation(f, f, PRICE) for f in functions)
    counted = (*made, Aggregation("n", "count", None))
    return grouped(inner, Window(size, slide), (Column("key", AttributeRef("key")),), counted)


def test_aggregate_combines_the_groups_labels(spark: SparkSession) -> None:
    both = Union((Source(A), Source(B)))
    got = run(spark, aggregate(both, "sum", "avg", "min", "max", "stddev"))
    x, y = got
    assert x[2:5] == ("x", 305, pytest.approx(305 / 3)) and x[5:7] == (5, 200)
    assert x[-3:] == (3, 1 | 1 << 70, "w0\x1fx")
    assert y[2:] == ("y", 7, 7.0, 7, 7, None, 1, 1, "w0\x1fy")


def test_hopping_windows_hold_a_tuple_several_times(spark: SparkSession) -> None:
    got = run(spark, aggregate(Source(A), "sum", size=10_000, slide=5_000))
    assert len(got) == 4


def test_null_keys_are_a_group_of_their_own(spark: SparkSession) -> None:
    data = {"a": [(1, None, 1), (2, None, 2), (3, "", 3)]}
    got = compiled_rows(spark, aggregate(Source(A), "sum"), data, BITS)
    assert {(row[2], row[3]) for row in got} == {(None, 3), ("", 3)}
    assert len({row[-1] for row in got}) == 2


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2**63 - 1, 1, -1], 2**63 - 1),
        ([2**63 - 1, 1], None),
        ([-(2**63), -1], None),
        ([-(2**63), 2**63 - 1], -1),
        ([None, None], None),
        ([None, 4], 4),
    ],
)
def test_sum_is_exact_or_null(
    spark: SparkSession, values: list[int | None], expected: int | None
) -> None:
    data = {"a": [(1, "x", value) for value in values]}
    (row,) = compiled_rows(spark, aggregate(Source(A), "sum"), data, BITS)
    assert row[3] == expected


DECLARED = DeclaredAggregate(10_000, ("key",), ("count", "sum"), 3, source=0, aggregated=130)


@pytest.mark.parametrize(("count", "label"), [(2, 1), (3, 1 << 130), (4, 1 << 130)])
def test_declared_aggregate_lowers_from_its_minimum(
    spark: SparkSession, count: int, label: int
) -> None:
    stream = relation("a", declared=DECLARED)
    data = {"a": [(1, "x", 1)] * count}
    plan = aggregate(Source(stream), "sum")
    (row,) = compiled_rows(spark, plan, data, BITS)
    assert row[-2] == label


@pytest.mark.parametrize("function", ["min", "avg"])
def test_undeclared_functions_do_not_lower(spark: SparkSession, function: str) -> None:
    stream = relation("a", declared=DECLARED)
    plan = aggregate(Source(stream), function)
    (row,) = compiled_rows(spark, plan, {"a": [(1, "x", 1)] * 9}, BITS)
    assert row[-2] == 1


def test_a_filter_before_a_declared_aggregate_does_not_lower(spark: SparkSession) -> None:
    stream = relation("a", declared=DECLARED)
    plan = aggregate(Filter(Source(stream), more_than(0)), "sum")
    (row,) = compiled_rows(spark, plan, {"a": [(1, "x", 1)] * 9}, BITS)
    assert row[-2] == 1


@pytest.mark.parametrize("count", [65, pytest.param(1_001, marks=pytest.mark.long)])
def test_more_categories_than_a_word_holds(spark: SparkSession, count: int) -> None:
    streams = [relation(f"s{i}", object_id=i) for i in range(0, count, 64)]
    data = {s.name: [(1, "x", 1)] for s in streams}
    bits = {s.name: s.object_id for s in streams}
    plan = aggregate(Union(tuple(Source(s) for s in streams)), "sum")
    (row,) = compiled_rows(spark, plan, data, bits)
    assert row[-2] == sum(1 << i for i in range(0, count, 64))


def test_a_name_of_ours_is_refused(spark: SparkSession) -> None:
    inner = Project(Source(A), (Column("__label_0", Literal(0, Type.BIGINT)),))
    with pytest.raises(InvalidInput, match="not two to begin with"):
        run(spark, inner)
    outer = Project(inner, (Column("x", AttributeRef("__label_0")),))
    with pytest.raises(InvalidInput, match="the platform's own"):
        run(spark, outer)


def test_names_differ_by_case_and_hold_anything(spark: SparkSession) -> None:
    odd = tuple(Column(n, AttributeRef("price")) for n in ("P", "p", "a.`b", "x y"))
    plain = tuple(Column(f"c{i}", AttributeRef(c.name)) for i, c in enumerate(odd))
    plan = Project(Project(Source(A), odd), plain)
    assert [row[:4] for row in run(spark, plan)] == [(5, 5, 5, 5), (7, 7, 7, 7)]

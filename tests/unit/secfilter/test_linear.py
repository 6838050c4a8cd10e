"""Nothing that matches a user's text tries more than the text's length times the pattern's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.schema import Attribute, Schema, Type
from secfilter.expressions import to_column

SCHEMA = Schema((Attribute("text", Type.STRING),))
TEXT = AttributeRef("text")
# Squared, a hundred times what this test waits for on any machine.
LONG = 2_000_000
PATIENCE_S = 120


def like(pattern: str, function: str = "like") -> Expression:
    return Call(function, (TEXT, Literal(pattern, Type.STRING)))


@pytest.mark.parametrize(
    ("unit", "end", "expression", "value"),
    [
        ("a", "", like("%a" * 20 + "%b"), False),
        ("a", "b", like("%a" * 20 + "%b"), True),
        ("timeout retry ", "", like("%timeout%retry%failed%"), False),
        ("ab", "", like("%a_a_b%"), False),
        ("a", "", like("a%" + "_" * 100 + "%b"), False),
        ("a", "", like("%A" * 20 + "%b", "ilike"), False),
        ("a", "", like("(a*)*b|(a|a)*c|(a|aa)+$x", "regexp_like"), False),
        ("a", "b", like("(a+)+b$", "regexp_like"), True),
        ("a", "", like(".*.*.*(b)", "regexp_group_1"), None),
        ("a", "b", like("(a|aa)*(b)", "regexp_group_2"), "b"),
        ("a", "", like("a" * 254 + "b", "position"), 0),
        ("1", "x", Call("cast_double", (TEXT,)), None),
        ("1", "x", Call("cast_bigint", (TEXT,)), None),
        (" ", "x", Call("cast_double", (TEXT,)), None),
    ],
)
def test_a_long_text_is_matched_soon(
    spark: SparkSession, unit: str, end: str, expression: Expression, value: object
) -> None:
    # By a column, or it would all be computed while it is planned.
    times = (fn.col("id") + LONG // len(unit)).cast("int")
    text = fn.concat(fn.repeat(fn.lit(unit), times), fn.lit(end))
    frame = spark.range(1).select(text.alias("text")).select(to_column(expression, SCHEMA))
    group = f"linear {unit}{end}"

    def found() -> object:
        spark.sparkContext.setJobGroup(group, group, interruptOnCancel=True)
        return frame.collect()[0][0]

    pool = ThreadPoolExecutor(1)
    try:
        assert pool.submit(found).result(PATIENCE_S) == value
    finally:
        spark.sparkContext.cancelJobGroup(group)
        pool.shutdown(wait=False)

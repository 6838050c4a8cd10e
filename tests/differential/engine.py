"""Running many cases in one Spark job: records in, results and deliveries out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.plan import sources
from catalog.plan_check import output_schema
from catalog.relation import Relation
from catalog.runs import FanOutClass
from catalog.schema import Schema
from catalog.topics import LABEL_HEADER
from secfilter.compiler import compile_plan
from secfilter.fanout import to_json, visible_to
from secfilter.lab import HEADERS_TYPE, encode_label, encode_value, read_lab
from tests.differential.case import Case, Outcome
from tests.differential.wire import decode, decode_json, encode
from tests.oracle.values import Tuple

_RECORD = (
    f"topic string, key binary, value binary, headers {HEADERS_TYPE}, partition int, offset bigint"
)


def run_cases(spark: SparkSession, cases: Sequence[Case]) -> list[Outcome]:
    """Each case's outcome, from one job."""
    kept = stored(spark, cases)
    frames = [_frame(index, case, kept) for index, case in enumerate(cases)]
    together = frames[0]
    for frame in frames[1:]:
        together = together.unionAll(frame)
    schemas = [output_schema(case.plan) for case in cases]
    outcomes = [Outcome([], tuple([] for _ in case.classes)) for case in cases]
    # In one task: each is sent the plans of all cases.
    for row in together.coalesce(1).collect():
        _add(outcomes[row["case"]], schemas[row["case"]], row)
    kept.unpersist()
    return outcomes


def stored(spark: SparkSession, cases: Sequence[Case]) -> DataFrame:
    """The records of all cases as they are read from Kafka, to be read with `reader`."""
    rows = []
    for index, case in enumerate(cases):
        for relation in sources(case.plan):
            for offset, each in enumerate(case.records[relation.name]):
                headers = [] if each.label is None else [(LABEL_HEADER, each.label.encode())]
                value = encode(each.values).encode()
                rows.append((_place(index, relation), None, value, headers, 0, offset))
    return spark.createDataFrame(rows, _RECORD).coalesce(1).persist()


def _place(index: int, relation: Relation) -> str:
    # Different cases may have relations of one name.
    return f"{index}/{relation.topic}"


def reader(kept: DataFrame, index: int) -> Callable[[Relation], DataFrame]:
    """Gives the tuples of each relation of the case at that index."""

    def read(relation: Relation) -> DataFrame:
        return read_lab(kept.where(fn.col("topic") == _place(index, relation)), relation)

    return read


def _frame(index: int, case: Case, kept: DataFrame) -> DataFrame:
    compiled = compile_plan(case.plan, reader(kept, index), narrow=index % 2 == 1)
    seen = [
        visible_to(FanOutClass("", each.clearance, each.weak), compiled.words, case.sources)
        for each in case.classes
    ]
    return compiled.frame.select(
        fn.lit(index).alias("case"),
        encode_value(compiled.schema).alias("lab"),
        encode_label(compiled.words).alias("label"),
        to_json(compiled.schema).alias("json"),
        fn.array(*seen).cast("array<boolean>").alias("seen"),
    )


def _add(outcome: Outcome, schema: Schema, row: Row) -> None:
    label = Label.from_wire(row["label"])
    assert label is not None, f"a result's label is {row['label']!r}"
    outcome.results.append(Tuple(decode(row["lab"], schema), label))
    delivered = Tuple(decode_json(row["json"], schema), label)
    for got, visible in zip(outcome.delivered, row["seen"], strict=True):
        assert visible is not None
        if visible:
            got.append(delivered)

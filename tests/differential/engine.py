"""Running many cases in one Spark job: records in, results and deliveries out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from unittest.mock import patch

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from catalog.analysis import analyse
from catalog.plan import sources
from catalog.reach import counted_streams
from catalog.relation import Relation
from catalog.topics import TUPLE_HEADER
from secfilter import fanout
from secfilter.compiler import compile_plan
from secfilter.lab import HEADERS_TYPE, read_lab, tick_record
from secfilter.merged_views import merged
from tests.differential.case import Case, Outcome
from tests.differential.delivered import outcome, run_of
from tests.differential.wire import encode

_RECORD = (
    f"topic string, key binary, value binary, headers {HEADERS_TYPE}, partition int, offset bigint"
)


def run_cases(spark: SparkSession, cases: Sequence[Case]) -> list[Outcome]:
    """Each case's outcome, from one job."""
    found = sent_records(spark, cases)
    return [outcome(run_of(case), rows) for case, rows in zip(cases, found, strict=True)]


def sent_records(spark: SparkSession, cases: Sequence[Case]) -> list[list[Row]]:
    """What Kafka's sink is given of each case, from one job."""
    kept = stored(spark, cases)
    together = _union([_records(index, case, kept) for index, case in enumerate(cases)])
    rows: list[list[Row]] = [[] for _ in cases]
    # In one task: each is sent the plans of all cases.
    for row in together.coalesce(1).collect():
        rows[row["case"]].append(row)
    kept.unpersist()
    return rows


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of these frames.

    Spark analyses the whole plan at each union. So it is fastest if each half is a union already.
    """
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _union(frames[:half]).unionAll(_union(frames[half:]))


def stored(spark: SparkSession, cases: Sequence[Case], tick_ms: int | None = None) -> DataFrame:
    """The records of all cases as they are read from Kafka, to be read with `reader`.

    With `tick_ms`, a tick of that time is behind the records of each relation.
    """
    rows = []
    for index, case in enumerate(cases):
        for relation in sources(case.plan):
            for offset, each in enumerate(case.records[relation.name]):
                headers = []
                if each.label is not None:
                    sender = "" if each.sender is None else f";{each.sender}"
                    headers.append((TUPLE_HEADER, f"{each.label}{sender}".encode()))
                value = encode(each.values).encode()
                key = None if each.origin is None else each.origin.encode()
                rows.append((_place(index, relation), key, value, headers, 0, offset))
            if tick_ms is not None:
                marks, time = tick_record(tick_ms)
                end = len(case.records[relation.name])
                rows.append((_place(index, relation), None, time, marks, 0, end))
    return spark.createDataFrame(rows, _RECORD).coalesce(1).persist()


def _place(index: int, relation: Relation) -> str:
    # Different cases may have relations of one name.
    return f"{index}/{relation.topic}"


def reader(kept: DataFrame, index: int, case: Case) -> Callable[[Relation], DataFrame]:
    """Gives the tuples of each relation of the case, which is at that index."""

    counted = counted_streams(case.plan)

    def read(relation: Relation) -> DataFrame:
        records = kept.where(fn.col("topic") == _place(index, relation))
        return read_lab(
            records, relation, case.reach_of(relation), senders=relation.object_id in counted
        )

    return read


def _records(index: int, case: Case, kept: DataFrame) -> DataFrame:
    """What Kafka's sink would be given of the case at that index."""
    read, narrow = reader(kept, index, case), index % 2 == 1
    plan = analyse(case.plan)
    compiled = compile_plan(
        *(plan, read, case.reach_of, case.users_of),
        narrow=narrow,
        classes=case.conflict_classes,
        floor=case.floor,
        viewers=run_of(case).viewers,
        by_role=run_of(case).by_role,
    )
    if run_of(case).by_role:
        compiled = replace(compiled, frame=merged(compiled.frame, compiled.layout))
    # Spark wants each observation of a job under a name of its own.
    with patch.object(fanout, "TOO_LARGE", f"{fanout.TOO_LARGE}_{index}"):
        out = fanout.fan_out(compiled, run_of(case), "key")
    return out.select(fn.lit(index).alias("case"), "topic", "key", "value", "headers")

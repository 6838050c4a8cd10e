"""Runs a plan over records of lab topics, ticks among them, from files: one for each batch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from catalog.label import Label
from catalog.relation import Relation
from secfilter.compiler import compile_plan
from secfilter.lab import HEADERS_TYPE, read_lab, tick_record
from secfilter.order import check_supported
from tests.plans import AnyPlan, checked
from tests.unit.secfilter.collected import collected

# A tuple (second and key), or a tick (second alone).
Entry = tuple[int, int] | int
_HEADERS = "array<struct<key:string,value:string>>"


def results_of(
    spark: SparkSession,
    folder: Path,
    plan: AnyPlan,
    batches: Mapping[str, Sequence[Sequence[Entry]]],
    mode: str = "append",
    *,
    repeats: bool = False,
) -> tuple[list[Row], StreamingQuery]:
    """All results of a plan over batches of records, by relation, and its query, which has ended.

    Times are seconds since 1970. Tuples of one key have one origin. With `repeats`, the plan is
    compiled for streams whose tuples may come twice.
    """
    here = folder / str(len(list(folder.iterdir())))
    here.mkdir()
    for name, each in batches.items():
        _write(here / name, each)

    def source(relation: Relation) -> DataFrame:
        columns = f"key string, value string, headers {_HEADERS}"
        reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        read = reader.json(str(here / relation.name)).select(
            fn.col("key").cast("binary").alias("key"),
            fn.col("value").cast("binary").alias("value"),
            fn.lit(0).alias("partition"),
            fn.lit(0).alias("offset"),
            fn.col("headers").cast(HEADERS_TYPE).alias("headers"),
        )
        return read_lab(read, relation, Label.of(0), f"o_{relation.name}", ticks=True)

    compiled = compile_plan(checked(plan), source, lambda _relation: Label.of(0), repeats=repeats)
    frame = compiled.frame
    check_supported(frame, mode)
    return collected(frame, mode, here / "checkpoint")


def _record(entry: Entry) -> dict[str, object]:
    """A record of a lab topic."""
    if isinstance(entry, int):
        headers, value = tick_record(entry * 1_000)
        return {"headers": _written(headers), "value": value.decode()}
    second, key = entry
    headers = [("tuple-3", b"1")]
    return {
        "key": f"1:0:{key}",
        "headers": _written(headers),
        "value": f"{second * 1_000_000}\x1f{key}",
    }


def _written(headers: Sequence[tuple[str, bytes]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value.decode()} for key, value in headers]


def _write(folder: Path, batches: Sequence[Sequence[Entry]]) -> None:
    """A file for each batch, in their order."""
    folder.mkdir()
    for number, batch in enumerate(batches):
        file = folder / f"{number}.json"
        file.write_text("\n".join(json.dumps(_record(entry)) for entry in batch))
        os.utime(file, (1_000_000 + number, 1_000_000 + number))

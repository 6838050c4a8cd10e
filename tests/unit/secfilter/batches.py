"""A plan of an operator of ours on Spark, over batches of tuples of one stream."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from catalog.label import Label
from catalog.plan import Node
from catalog.relation import Relation
from catalog.schema import Attribute, Schema, Type
from secfilter.columns import ID, label_column
from secfilter.compiler import compile_plan
from tests.plans import checked
from tests.unit.secfilter.collected import collected

SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP, required=True),
        Attribute("key", Type.STRING),
        Attribute("price", Type.DOUBLE),
    )
)
# A tuple: second since 1970, key, price, the categories of its label.
Given = Sequence[tuple[int, str | None, float | None, int]]
Gives = Callable[..., list[Row]]


def giving(spark: SparkSession, folder: Path, time: str) -> Gives:
    """Gives all results of a plan, whose event time is the attribute `time`, over batches.

    With `repeated`, each batch but the last one comes twice, as after a crash.
    """

    def run(root: Node, *batches: Given, repeated: bool = False) -> list[Row]:
        files = folder / "a"
        files.mkdir()
        given = [*enumerate(batches)]
        if repeated:
            given = sorted([*given[:-1], *given], key=lambda pair: pair[0])
        for place, (number, batch) in enumerate(given):
            file = files / f"{place}.json"
            rows = (
                {
                    "at": at,
                    "key": key,
                    "price": price,
                    label_column(0): label,
                    ID: f"{number}.{n:03}",
                }
                for n, (at, key, price, label) in enumerate(batch)
            )
            file.write_text("\n".join(map(json.dumps, rows)))
            os.utime(file, (1_000_000 + place, 1_000_000 + place))

        def source(relation: Relation) -> DataFrame:
            columns = f"at bigint, key string, price double, {label_column(0)} bigint, {ID} string"
            reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
            return reader.json(str(files)).withColumn("at", fn.timestamp_seconds("at"))

        reach = Label.of(*range(8))
        frame = compile_plan(checked(root), source, lambda _relation: reach).frame
        timed = frame.withColumn(time, fn.unix_micros(time))
        return collected(timed, "append", folder / "checkpoint")[0]

    return run

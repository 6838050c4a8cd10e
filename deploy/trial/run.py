"""Running a trial: the records go through ingest, the plan and the fan-out, on local Spark.

These are the platform's own parts. Only Kafka is missing: the records come as one batch, as if all
had arrived at once, and all windows have closed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from catalog.checked_plan import CheckedPlan
from catalog.clearance import Clearance
from catalog.label import Label
from catalog.output_relation import output_relation
from catalog.reach import counted_streams
from catalog.relation import Relation
from catalog.runs import FanOutClass, FedOutput, IngestRun, IngestStream, QueryRun, Sender
from catalog.topics import LABEL_HEADER, REASON_HEADER, lab_topic, quarantine_topic
from deploy.trial.world import TrialStream, World
from secfilter.compiler import compile_plan
from secfilter.fanout import DEFAULT_MAX_BYTES, fan_out
from secfilter.ingest import ingest
from secfilter.lab import read_lab

_HOUR_MS = 3_600_000
_READ = "topic string, key binary, value binary, partition int, offset bigint"
_ALL = "all"


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that is no tuple of its stream, and why."""

    stream: str
    record: str
    reason: str


@dataclass(frozen=True, slots=True)
class Result:
    """A result as its subscribers get it, and its label in the names of streams."""

    value: Mapping[str, Any]
    label: Sequence[str]


@dataclass(frozen=True, slots=True)
class Results:
    """All results of an output, and those of each subscriber."""

    every: Sequence[Result]
    of: Mapping[str, Sequence[Result]]


class Trial:
    """A world on Spark. Its records go through ingest once, whatever is tried on them."""

    def __init__(self, spark: SparkSession, world: World) -> None:
        self._world = world
        self._stored = _ingested(spark, world).persist()

    def refused(self) -> list[Refused]:
        """The records that would be in the quarantine, and the lines of files that are none."""
        streams = {quarantine_topic(name): name for name in self._world.streams}
        rows = self._stored.where(fn.col("topic").isin([*streams])).collect()
        return [
            *(
                Refused(streams[row["topic"]], _text(row["value"]), _header(row, REASON_HEADER))
                for row in rows
            ),
            *(
                Refused(name, "", mistake)
                for name, stream in self._world.streams.items()
                for mistake in stream.mistakes
            ),
        ]

    def results(self, name: str, checked: CheckedPlan, *, weak: bool = False) -> Results:
        """What a plan gives, and which of it each subscriber gets."""
        subscribers = self._world.subscribers
        everything = Clearance.of(*(c for s in self._streams() for c in s.label.categories()))
        held = {_ALL: everything, **{f"to {who}": each for who, each in subscribers.items()}}
        classes = tuple(FanOutClass(topic, each, weak) for topic, each in held.items())
        run = QueryRun(
            name,
            checked.plan,
            (FedOutput(output_relation(0, name, checked), classes),),
            sources=Label(everything.bits),
            starting_offsets={},
            reaches={s.relation.object_id: s.label for s in self._streams()},
        )
        counted = counted_streams(checked.plan)

        def source(relation: Relation) -> DataFrame:
            return self._tuples(relation, senders=relation.object_id in counted)

        compiled = compile_plan(checked, source, run.reach_of, narrow=True)
        got: dict[str, list[Result]] = defaultdict(list)
        for row in fan_out(compiled, run, name).coalesce(1).collect():
            got[row["topic"]].append(self._result(row))
        if checked.keeps_state:
            # Spark gives these in any order.
            for results in got.values():
                results.sort(key=lambda each: json.dumps(each.value))
        return Results(got[_ALL], {who: got[f"to {who}"] for who in subscribers})

    def _streams(self) -> list[TrialStream]:
        return [*self._world.streams.values()]

    def _tuples(self, relation: Relation, *, senders: bool) -> DataFrame:
        records = self._stored.where(fn.col("topic") == lab_topic(relation.name))
        label = self._world.streams[relation.name].label
        return read_lab(records, relation, label, senders=senders)

    def _result(self, row: Row) -> Result:
        label = Label.from_wire(_header(row, LABEL_HEADER)) or Label()
        return Result(json.loads(row["value"]), self._world.words(label))


def _ingested(spark: SparkSession, world: World) -> DataFrame:
    streams = [
        IngestStream(
            each.relation,
            each.label,
            _HOUR_MS,
            DEFAULT_MAX_BYTES,
            each.written,
            partitions=1,
            senders=(Sender(each.relation.object_id, name),),
        )
        for name, each in world.streams.items()
    ]
    rows = [
        (name, None, record, 0, offset)
        for name, each in world.streams.items()
        for offset, record in enumerate(each.records)
    ]
    sent = spark.createDataFrame(rows, _READ).coalesce(1)
    taken = sent.withColumn("timestamp", fn.current_timestamp())
    records = ingest(taken, IngestRun("try", tuple(streams)), {})
    # What a query reads of a lab topic beside these is its place there.
    place = fn.monotonically_increasing_id()
    return records.withColumn("partition", fn.lit(0)).withColumn("offset", place)


def _header(row: Row, key: str) -> str:
    return next(_text(each["value"]) for each in row["headers"] if each["key"] == key)


def _text(raw: bytes | None) -> str:
    return bytes(raw or b"").decode("utf-8", "backslashreplace")

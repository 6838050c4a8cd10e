"""Warms Spark up: it plans and runs queries as engines do, so that the next ones start sooner.

The first query of a Spark loads thousands of classes, and all code is interpreted. The queries here
read the topic of echoes, which the engine may read. Nothing there is a tuple, so they deliver
nothing. Those of an engine of queries have no class whose rights cover anything, either.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.output_relation import output_relation
from catalog.plan import Column, Filter, Plan, Project, Source
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, IngestRun, IngestStream, QueryRun, Sender
from catalog.schema import Attribute, Schema, Type
from catalog.topics import ECHO_TOPIC, RESULT_ECHO_TOPIC
from secfilter.ingest import ingest
from secfilter.kafka_options import GROUP_PREFIX, KafkaOptions
from secfilter.query_frames import Place, QueryFrames
from secfilter.running_query import REFUSED
from secfilter.shared_producer import shared_producer
from secfilter.tick_mark import new_mark

NAME = "warm-up"
# Each query costs less than the one before it.
QUERIES = 4
QUIET_S = 15.0
"""An engine begins after so long a time without a query. At its start others need the cores."""
_BATCH_MS = 500
_RUNS_S = 20.0
_POLL_S = 0.05
_REACH = Label.of(0)
_LAYOUT = LabelLayout.of(_REACH)
_SCHEMA = Schema((Attribute("at", Type.TIMESTAMP), Attribute("n", Type.BIGINT)))
_RELATION = Relation(0, NAME, RelationKind.STREAM, _SCHEMA, "at", lateness_ms=0)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Exercise:
    """What an engine runs to get warm: the topic, and for each query its records for the sink.

    `sent` tells that the topic is read as senders' topics are.
    """

    topic: str
    made: Callable[[DataFrame, int], DataFrame]
    sent: bool = False


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Runs queries one by one in the folder `folder`, which is made and removed.

    It begins after `wait_s` seconds. It ends as soon as there is something else to do, that is, if
    not `is_idle`.
    """

    spark: SparkSession
    kafka: KafkaOptions
    folder: Path
    exercise: Exercise
    is_idle: Callable[[], bool] = lambda: True
    wait_s: float = 0.0

    def run(self) -> None:
        """Plan and run the queries. What goes wrong goes to the log: nothing depends on it."""
        if not self._stays_idle():
            return
        began = time.monotonic()
        try:
            for number in range(QUERIES):
                if not self.is_idle():
                    return
                self._run(number)
            _log.info("Spark is warm after %.1f s", time.monotonic() - began)
        except Exception as error:  # whatever it is, the next queries only start more slowly
            # Spark may have been stopped meanwhile.
            if self.is_idle():
                _log.warning("Spark is not warm: %s", type(error).__name__)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _stays_idle(self) -> bool:
        """Wait as long as it should; whether there was nothing else to do."""
        deadline = time.monotonic() + self.wait_s
        while self.is_idle():
            if time.monotonic() >= deadline:
                return True
            time.sleep(_POLL_S)
        return False

    def _run(self, number: int) -> None:
        checkpoint = self.folder / str(number)
        checkpoint.mkdir(parents=True, mode=0o700)
        sink = self.kafka.sink(f"{GROUP_PREFIX}-{NAME}")
        frame = self.exercise.made(self._records(), number)
        writer: Any = frame.writeStream.format("kafka").options(**sink)
        writer = writer.queryName(NAME).option("checkpointLocation", str(checkpoint))
        writer = writer.outputMode("update")
        query = writer.trigger(realTime=f"{_BATCH_MS} milliseconds").start()
        try:
            self._await_batch(query)
        finally:
            query.stop()
        with shared_producer(self.spark, sink) as producer:
            producer.partitionsFor(self.exercise.topic)

    def _await_batch(self, query: StreamingQuery) -> None:
        """Wait until it has run a batch, or is in the way. Raises its error, or TimeoutError."""
        deadline = time.monotonic() + _RUNS_S
        while query.lastProgress is None and self.is_idle():
            if (error := query.exception()) is not None:
                raise error
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(_POLL_S)

    def _records(self) -> DataFrame:
        own = self.exercise
        options = self.kafka.source([own.topic], sent=own.sent, headers=not own.sent)
        options |= {"startingOffsets": "latest"}
        return self.spark.readStream.format("kafka").options(**options).load()


def _delivered(records: DataFrame, number: int) -> DataFrame:
    frames = QueryFrames(lambda *_: records, NAME)
    return frames.take(run_of(number), Place({}, _LAYOUT, False, ())).frame


def _ingested(records: DataFrame, number: int) -> DataFrame:
    # An echo would go to the quarantine. No topic has this name.
    none = records.where(fn.col("topic") == NAME)
    return ingest(none, ingest_run_of(number), {}, new_mark(NAME), counted=REFUSED)


OF_QUERIES = Exercise(RESULT_ECHO_TOPIC, _delivered)
OF_INGEST = Exercise(ECHO_TOPIC, _ingested, sent=True)


def run_of(number: int) -> QueryRun:
    """A query whose one class covers no tuple. Each number gives other code."""
    n, at = AttributeRef("n"), AttributeRef("at")
    condition = Call(">", (n, Literal(number, Type.BIGINT)))
    plan = Plan(Project(Filter(Source(_RELATION), condition), (Column("n", n), Column("at", at))))
    nobody = FanOutClass(f"out.{NAME}", Clearance())
    output = FedOutput(output_relation(0, NAME, analyse(plan)), (nobody,))
    return QueryRun(NAME, plan, (output,), _REACH, {}, reaches={0: _REACH})


def ingest_run_of(number: int) -> IngestRun:
    """A run that ingests the topic of echoes. Each number gives other code."""
    relation = replace(_RELATION, lateness_ms=number)
    stream = IngestStream(relation, _REACH, 60_000, 60_000, senders=(Sender(0, ECHO_TOPIC),))
    return IngestRun(NAME, (stream,))

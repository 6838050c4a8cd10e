"""Warms Spark up: it plans and runs a query as engines do, so that the next ones start sooner.

The first query of a Spark loads thousands of classes, and all code is interpreted. The query here
reads the topic `time.results`, which every engine of queries may read. Nothing there is a tuple,
and the query has no class whose rights cover anything. So it delivers nothing.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.expression import AttributeRef, Call, Literal
from catalog.label import Label
from catalog.label_layout import LabelLayout
from catalog.output_relation import output_relation
from catalog.plan import Column, Filter, Plan, Project, Source
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, QueryRun
from catalog.schema import Attribute, Schema, Type
from catalog.topics import RESULT_ECHO_TOPIC
from secfilter.kafka_options import GROUP_PREFIX, KafkaOptions, Offsets
from secfilter.query_frames import Place, QueryFrames, output_mode
from secfilter.shared_producer import shared_producer

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
class WarmUp:
    """Runs queries one by one in the folder `folder`, which is made and removed.

    It begins after `wait_s` seconds. It ends as soon as there is something else to do, that is, if
    not `is_idle`.
    """

    spark: SparkSession
    kafka: KafkaOptions
    folder: Path
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
        run = run_of(number)
        built = QueryFrames(self._records, NAME).take(run, Place({}, _LAYOUT, False, ()))
        writer: Any = built.frame.writeStream.format("kafka").options(**sink)
        writer = writer.queryName(NAME).option("checkpointLocation", str(checkpoint))
        writer = writer.outputMode(output_mode(run))
        query = writer.trigger(realTime=f"{_BATCH_MS} milliseconds").start()
        try:
            self._await_batch(query)
        finally:
            query.stop()
        with shared_producer(self.spark, sink) as producer:
            producer.partitionsFor(RESULT_ECHO_TOPIC)

    def _await_batch(self, query: StreamingQuery) -> None:
        """Wait until it has run a batch, or is in the way. Raises its error, or TimeoutError."""
        deadline = time.monotonic() + _RUNS_S
        while query.lastProgress is None and self.is_idle():
            if (error := query.exception()) is not None:
                raise error
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(_POLL_S)

    def _records(self, _topic: str, _start: Offsets, _most: int | None) -> DataFrame:
        own = {**self.kafka.source([RESULT_ECHO_TOPIC]), "startingOffsets": "latest"}
        return self.spark.readStream.format("kafka").options(**own).load()


def run_of(number: int) -> QueryRun:
    """A query whose one class covers no tuple. Each number gives other code."""
    n, at = AttributeRef("n"), AttributeRef("at")
    condition = Call(">", (n, Literal(number, Type.BIGINT)))
    plan = Plan(Project(Filter(Source(_RELATION), condition), (Column("n", n), Column("at", at))))
    nobody = FanOutClass(f"out.{NAME}", Clearance())
    output = FedOutput(output_relation(0, NAME, analyse(plan)), (nobody,))
    return QueryRun(NAME, plan, (output,), _REACH, {}, reaches={0: _REACH})

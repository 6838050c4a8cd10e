"""NEXMark: what the platform's plans cost beside Spark's own SQL, over the same records.

Both sides read the same bids from a topic, and write JSON to a topic, in one Spark with the same
settings. The platform's plans are those that its engines run, with labels, lineage, ids and the
fan-out to a class. The plain queries do not look at keys and headers. A side works through all bids
in micro-batches, and then the other one does. The first batch of each compiles, and does not count.

A stateless query of the platform plans a batch once a minute or so. So what counts of those
is the work in the batch. Queries with state run in short batches, so all of a batch counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from catalog.analysis import analyse
from catalog.clearance import Clearance
from catalog.label import PUBLIC
from catalog.label_layout import LabelLayout
from catalog.output_relation import output_relation
from catalog.plan import is_stateful
from catalog.runs import FanOutClass, FedOutput, QueryRun
from secadmin.languages import parse_sql
from secfilter.kafka_options import KafkaOptions, Offsets, kafka_options
from secfilter.query_frames import Place, QueryFrames, output_mode
from secfilter.session import build_session
from tests.bench.backlog import Ends
from tests.bench.bids import REACH, labelled_bids
from tests.bench.figure import Figure, middle
from tests.bench.plain_nexmark import as_json, plain_results, read_bids
from tests.bench.world import World
from tests.differential.named_streams import NamedStreams
from tests.jvm import end_jvm
from tests.nexmark import QUERIES, STREAMS

BIDS, BATCH = 400_000, 100_000
PAIRS = 3
# What the platform's rate is at least, as a share of the plain one.
LEAST = {
    **dict.fromkeys(("q0", "q1", "q2", "q21"), 0.95),
    **dict.fromkeys(("q5", "q7", "q11", "q12"), 0.90),
}
_GIVEN = "bench-nexmark-bids"
_SIDES = ("secured", "plain")
_QUEUE = 50_000


def nexmark(world: World) -> Iterator[Figure]:
    """Records a second of each query on either side, and what the platform's slowness is."""
    with _bench(world) as bench:
        for name in LEAST:
            yield from bench.beside_plain(name)


@contextmanager
def _bench(world: World) -> Iterator[_Bench]:
    settings = world.stack.settings
    config = settings.kafka.client_config(settings.kafka.secadmin)
    # Another measurement's Spark has no connector.
    end_jvm()
    session = build_session("local[2]", settings.secfilter.jars)
    ends = Ends(config)
    try:
        with tempfile.TemporaryDirectory(dir=world.stack.state) as folder:
            kafka = kafka_options(settings.kafka, settings.kafka.secadmin, Path(folder) / "kafka")
            admin = AdminClient({**config, "log_level": 3})
            bench = _Bench(session, kafka, admin, ends, Path(folder))
            bench.write(Producer({**config, "linger.ms": 20}))
            yield bench
            bench.remove([_GIVEN])
    finally:
        ends.close()
        session.stop()
        end_jvm()


@dataclass(frozen=True, slots=True)
class _Bench:
    spark: SparkSession
    kafka: KafkaOptions
    admin: AdminClient
    ends: Ends
    folder: Path

    def write(self, producer: Producer) -> None:
        """Write all bids."""
        self._make([_GIVEN])
        for number, each in enumerate(labelled_bids(BIDS)):
            producer.produce(_GIVEN, each.value, each.key, headers=each.headers)
            if number % _QUEUE == 0:
                producer.flush()
        producer.flush()

    def beside_plain(self, name: str) -> Iterator[Figure]:
        """The figures of a query. Raises RuntimeError if both sides do not give equally much."""
        run = run_of(name)
        topics = [_topic(name, side) for side in _SIDES]
        self._make(topics)
        pairs = [self._pair(name, run) for _ in range(1 + PAIRS)][1:]
        secured, plain = self.ends.of(topics)
        if secured != plain or not plain:
            raise RuntimeError(f"{name}: {secured} results, and {plain} in plain Spark")
        self.remove(topics)
        for side, number in zip(_SIDES, (0, 1), strict=True):
            rates = [each[number] for each in pairs]
            yield middle(f"NEXMark {name}, {side}", rates, "records/s")
        slowness = [plain / secured for secured, plain in pairs]
        yield middle(f"NEXMark {name}, plain ÷ secured", slowness, "ratio", 1 / LEAST[name])

    def _pair(self, name: str, run: QueryRun) -> tuple[float, float]:
        """Records a second of either side."""
        counted = "triggerExecution" if is_stateful(run.plan) else "addBatch"
        frames = (self._secured(name, run), self._plain(name, stateful=is_stateful(run.plan)))
        sinks: list[Mapping[str, str]] = [{}, {"topic": _topic(name, "plain")}]
        secured, plain = (
            self._rate(frame, output_mode(run), options, counted)
            for frame, options in zip(frames, sinks, strict=True)
        )
        return secured, plain

    def _secured(self, name: str, run: QueryRun) -> DataFrame:
        """What an engine runs."""

        def records(_topic: str, _start: Offsets) -> DataFrame:
            return self._records(headers=True)

        layout = LabelLayout.of(REACH)
        return QueryFrames(records, "key").take(run, Place({}, layout, True, ())).frame

    def _plain(self, name: str, *, stateful: bool) -> DataFrame:
        bids = read_bids(self._records(headers=False))
        timed = bids.withWatermark("date_time", "0 seconds") if stateful else bids
        return as_json(plain_results(name, timed))

    def _records(self, *, headers: bool) -> DataFrame:
        options = self.kafka.source([_GIVEN], headers=headers)
        source = self.spark.readStream.format("kafka").options(**options)
        return source.option("maxOffsetsPerTrigger", BATCH).load()

    def _rate(self, frame: DataFrame, mode: str, options: Mapping[str, str], counted: str) -> float:
        """Records a second of the batches behind the first one."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            writer: Any = frame.writeStream.format("kafka").options(**self.kafka.sink("nexmark"))
            writer = writer.options(**options).option("checkpointLocation", folder)
            query = writer.outputMode(mode).trigger(availableNow=True).start()
            query.awaitTermination()
            batches = [each for each in query.recentProgress if each.numInputRows][1:]
        took_ms: int = sum(each.durationMs[counted] for each in batches)
        return len(batches) * BATCH / took_ms * 1e3

    def _make(self, topics: list[str]) -> None:
        for future in self.admin.create_topics([NewTopic(each, 1, 1) for each in topics]).values():
            future.result()

    def remove(self, topics: list[str]) -> None:
        """Remove the topics with their records."""
        for future in self.admin.delete_topics(topics).values():
            future.result()


def run_of(name: str) -> QueryRun:
    """The query as a run for one class, which may see all."""
    plan = parse_sql(QUERIES[name], NamedStreams(STREAMS)).plan
    output = output_relation(9, name, analyse(plan))
    mine = FanOutClass(_topic(name, "secured"), Clearance(REACH.bits))
    return QueryRun(
        *(name, plan, (FedOutput(output, (mine,)),), PUBLIC, {}),
        reaches={STREAMS["bid"].object_id: REACH},
        registered=len(REACH.categories()),
    )


def _topic(name: str, side: str) -> str:
    return f"bench-nexmark-{name}-{side}"

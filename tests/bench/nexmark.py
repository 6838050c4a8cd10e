"""NEXMark: what the platform's plans cost beside Spark's own SQL, over the same bids.

**The same on all sides.** One Spark with the same settings, one task, the same bids, the same
micro-batches, JSON in a topic as the result, generated code, a first batch that compiles and does
not count, and Kafka's connection (TLS, SCRAM, an idempotent producer).

**What the platform has more.** Its plans are those that its engines run. It reads the key and the
header of each record, and checks the label, which goes with the tuple through all state. It counts
what it leaves out (records without a label, results that are too large), and fails for a category
that it does not know. Each result has two headers, its label and its id, a SHA-256 of its lineage.
One step writes results to the topics of all classes that see them. Results of windows and joins are
sorted. So the platform's results have about 45 bytes more.

**What plain Spark has more.** Nothing. It reads the values of the same records, without keys and
headers, and gives values alone: no id, so a reader cannot leave out a result that comes again. It
also runs over JSON, which is what people without the platform have in their topics. Then it parses
more than the platform does. (What ingest costs, which makes labelled records of JSON, is in
`tests/bench/cost.py`.)

A side works through all bids in micro-batches, and then the next one does. The first batch of each
compiles, and does not count. A stateless query of the platform plans a batch once a minute or so.
So what counts of those is the work in the batch. Queries with state run in short batches, so all of
a batch counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
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
from tests.bench.bids import REACH, json_bid, labelled_bids
from tests.bench.figure import Figure, middle
from tests.bench.plain_nexmark import as_json, plain_results, read_bids, read_json_bids
from tests.bench.world import World
from tests.differential.named_streams import NamedStreams
from tests.jvm import end_jvm
from tests.nexmark import QUERIES, STREAMS

BIDS, BATCH = 320_000, 80_000
ROUNDS = 3
# What the platform's rate is at least, as a share of the plain one.
LEAST = {
    **dict.fromkeys(("q0", "q1", "q2", "q21"), 0.95),
    **dict.fromkeys(("q5", "q7", "q11", "q12"), 0.90),
}
_LABELLED, _JSON = "bench-nexmark-bids", "bench-nexmark-json"
_SIDES = ("secured", "plain", "plain over JSON")
_QUEUE = 50_000


def nexmark(world: World) -> Iterator[Figure]:
    """Records a second of each query on each side, and how much slower the platform is."""
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
            bench.remove([_LABELLED, _JSON])
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
        """Write all bids, as labelled records and as JSON."""
        self._make([_LABELLED, _JSON])
        for number, each in enumerate(labelled_bids(BIDS)):
            producer.produce(_LABELLED, each.value, each.key, headers=each.headers)
            producer.produce(_JSON, json_bid(each.value))
            if number % _QUEUE == 0:
                producer.flush()
        producer.flush()

    def beside_plain(self, name: str) -> Iterator[Figure]:
        """The figures of a query. Raises RuntimeError if the sides do not give equally much."""
        run = run_of(name)
        topics = [_topic(name, side) for side in _SIDES]
        self._make(topics)
        rounds = [self._round(name, run) for _ in range(1 + ROUNDS)][1:]
        found = self.ends.of(topics)
        if len({*found}) > 1 or not all(found):
            raise RuntimeError(f"the sides of {name} give {found} results")
        self.remove(topics)
        for number, side in enumerate(_SIDES):
            rates = [each[number] for each in rounds]
            yield middle(f"NEXMark {name}, {side}", rates, "records/s")
        for number, target in ((1, 1 / LEAST[name]), (2, None)):
            slowness = [each[number] / each[0] for each in rounds]
            yield middle(f"NEXMark {name}, {_SIDES[number]} ÷ secured", slowness, "ratio", target)

    def _round(self, name: str, run: QueryRun) -> list[float]:
        """Records a second of each side."""
        stateful = is_stateful(run.plan)
        bids = (read_bids(self._records(_LABELLED)), read_json_bids(self._records(_JSON)))
        frames = [self._secured(run), *(_plain(name, each, stateful=stateful) for each in bids)]
        counted = "triggerExecution" if stateful else "addBatch"
        return [
            self._rate(frame, output_mode(run), _topic(name, side), counted)
            for frame, side in zip(frames, _SIDES, strict=True)
        ]

    def _secured(self, run: QueryRun) -> DataFrame:
        """What an engine runs."""

        def records(_topic: str, _start: Offsets, _most: int | None) -> DataFrame:
            return self._records(_LABELLED, headers=True)

        layout = LabelLayout.of(REACH)
        return QueryFrames(records, "key").take(run, Place({}, layout, True, ())).frame

    def _records(self, topic: str, *, headers: bool = False) -> DataFrame:
        options = self.kafka.source([topic], headers=headers)
        source = self.spark.readStream.format("kafka").options(**options)
        return source.option("maxOffsetsPerTrigger", BATCH).load()

    def _rate(self, frame: DataFrame, mode: str, topic: str, counted: str) -> float:
        """Records a second of the batches behind the first one, which are written to the topic."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            writer: Any = frame.writeStream.format("kafka").options(**self.kafka.sink("nexmark"))
            writer = writer.option("topic", topic).option("checkpointLocation", folder)
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


def _plain(name: str, bids: DataFrame, *, stateful: bool) -> DataFrame:
    timed = bids.withWatermark("date_time", "0 seconds") if stateful else bids
    return as_json(plain_results(name, timed))


def run_of(name: str) -> QueryRun:
    """The query as a run for one class, which may see all."""
    plan = parse_sql(QUERIES[name], NamedStreams(STREAMS)).plan
    output = output_relation(9, name, analyse(plan))
    mine = FanOutClass(_topic(name, _SIDES[0]), Clearance(REACH.bits))
    return QueryRun(
        *(name, plan, (FedOutput(output, (mine,)),), PUBLIC, {}),
        reaches={STREAMS["bid"].object_id: REACH},
        registered=len(REACH.categories()),
    )


def _topic(name: str, side: str) -> str:
    return f"bench-nexmark-{name}-{side.replace(' ', '-')}"

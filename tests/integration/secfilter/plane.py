"""What the tests of the data plane do with the real broker: topics, runs, and what comes out."""

import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql.streaming.query import StreamingQuery

from catalog.clearance import Clearance
from catalog.label import Label
from catalog.output_relation import output_relation
from catalog.plan import sources
from catalog.reach import reach
from catalog.relation import Relation, RelationKind
from catalog.runs import FanOutClass, FedOutput, IngestRun, IngestStream, QueryRun, Sender
from catalog.schema import Attribute, Schema, Type
from catalog.topics import lab_topic, out_topic, quarantine_topic
from secadmin.kafka.topics import TopicSpec, topic_config
from secfilter.kafka_options import KafkaOptions
from secfilter.positions import Positions
from secfilter.queries import Engine
from secfilter.running_query import RunningQuery, terminated
from secfilter.ticker import Ticking
from tests.integration.brokers import Broker
from tests.plans import AnyPlan, checked
from tests.senders import sent

SCHEMA = Schema(
    (
        Attribute("at", Type.TIMESTAMP, required=True),
        Attribute("key", Type.STRING),
        Attribute("price", Type.BIGINT),
    )
)
# SYSTEM is object 1.
_NUMBERS = itertools.count(2)


@dataclass(frozen=True)
class Login:
    """How an engine reaches Kafka with its account."""

    kafka: KafkaOptions
    positions: Positions
    ticking: Ticking


@dataclass
class Plane:
    """What a test needs of Kafka and of the engines.

    Both engines are in one process. `engine` is ingest; the one for queries differs by its login.
    """

    broker: Broker
    engine: Engine
    of_queries: Login
    admin: AdminClient
    producer: Producer
    queries: list[StreamingQuery] = field(default_factory=list)
    # What the tuples of each relation can carry, by its id.
    reaches: dict[int, Label] = field(default_factory=dict)

    def topics(self, *names: str, partitions: int = 1) -> None:
        """Make topics, and wait until the broker shows them: it answers a moment before."""
        made = self.admin.create_topics(
            [NewTopic(n, partitions, 1, config=topic_config(TopicSpec(n), 1)) for n in names]
        )
        for future in made.values():
            future.result()
        deadline = time.monotonic() + 30.0
        while not made.keys() <= self.admin.list_topics(timeout=10).topics.keys():
            assert time.monotonic() < deadline, "the topics were made, but are not there"
            time.sleep(0.02)

    def stream(self, bit: int, *, partitions: int = 1) -> IngestStream:
        """A source stream with its topics."""
        number = next(_NUMBERS)
        name = f"s{number}"
        self.topics(f"in.{name}", lab_topic(name), quarantine_topic(name), partitions=partitions)
        label = Label.of(bit)
        kind = RelationKind.STREAM
        relation = Relation(number, name, kind, SCHEMA, "at", 1_000)
        self.reaches[number] = label
        return sent(IngestStream(relation, label, 60_000, 10_000))

    def with_senders(self, stream: IngestStream, count: int) -> IngestStream:
        """The stream with so many senders and their topics, in place of the one that it has."""
        name, own = stream.relation.name, stream.senders[0].topic
        partitions = len(self.admin.list_topics(own, timeout=10).topics[own].partitions)
        numbers = [next(_NUMBERS) for _ in range(count)]
        senders = tuple(Sender(number, f"in.{name}.{number}") for number in numbers)
        self.topics(*(sender.topic for sender in senders), partitions=partitions)
        return replace(stream, senders=senders)

    def query(self, plan: AnyPlan, *clearances: Clearance, labelled: bool = False) -> QueryRun:
        """A run of the plan with a class for each clearance, and its topics."""
        number = next(_NUMBERS)
        name = f"o{number}"
        meant = checked(plan)
        output = output_relation(number, name, meant)
        classes = tuple(
            FanOutClass(out_topic(name, f"c{i}"), each, id=i)
            for i, each in enumerate(clearances, start=1)
        )
        self.topics(lab_topic(name), *(c.topic for c in classes))
        self.reaches[number] = carried = reach(meant.plan, lambda r: self.reaches[r.object_id])
        return QueryRun(
            *(f"query-{number}", meant.plan, (FedOutput(output, classes, labelled),), carried, {}),
            reaches={each.object_id: self.reaches[each.object_id] for each in sources(meant.plan)},
        )

    def engine_of(self, name: str) -> Engine:
        """The engine of the run of that name."""
        if name.startswith("ingest-"):
            return self.engine
        own = self.of_queries
        return replace(self.engine, kafka=own.kafka, positions=own.positions, ticking=own.ticking)

    def running(self, query: StreamingQuery) -> RunningQuery:
        """The query as supervision sees it."""
        return RunningQuery(query, self.engine_of(query.name).leftovers_of(query))

    def start(self, run: IngestRun | QueryRun) -> StreamingQuery:
        """Start a run's query; it is stopped when the test ends."""
        query = self.engine_of(run.name).start(run)
        self.queries.append(query)
        return query

    def end(self, query: StreamingQuery, timeout_s: float = 60.0) -> None:
        """Stop at the batch's end and wait until nothing of the query writes any more."""
        running = self.running(query)
        running.request_stop()
        self._wait_for_end(running, timeout_s)
        assert query.exception() is None

    def break_off(self, query: StreamingQuery, timeout_s: float = 60.0) -> None:
        """Stop inside the batch and wait until nothing of the query writes any more."""
        running = self.running(query)
        running.stop()
        self._wait_for_end(running, timeout_s)

    def stopped_in_planning(self, query: StreamingQuery, timeout_s: float = 60.0) -> bool:
        """Stop a query that has just started where it plans its first batch, at once.

        Spark interrupts the thread that is to wait for the batch then, and the batch runs on.
        Returns whether it was in time: planning may be over before its stop gets there.
        """
        execution: Any = query._jsq.streamingQuery()
        tracker = self.engine.spark.sparkContext.statusTracker()
        deadline = time.monotonic() + timeout_s
        while not query.status["isTriggerActive"]:
            assert time.monotonic() < deadline, "the first batch did not begin"
        execution.state().set(terminated())
        in_time = not tracker.getJobIdsForGroup(str(query.runId))
        self._wait_for_end(self.running(query), timeout_s)
        return in_time

    @staticmethod
    def _wait_for_end(running: RunningQuery, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not running.ended():
            assert time.monotonic() < deadline, "the query did not end"
            time.sleep(0.02)

    def send(self, stream: IngestStream, *values: object) -> None:
        """Write records, bytes as they are and everything else as JSON, and wait for them."""
        self.write(self.producer, stream.senders[0].topic, *values)

    def write(self, producer: Producer, topic: str, *values: object, to: int = -1) -> None:
        """As `send`, by that producer to that topic, and maybe to one of its partitions."""
        for value in values:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            producer.produce(topic, data, partition=to)
        assert producer.flush(10) == 0

    def read(self, topic: str, count: int, timeout_s: float = 180.0) -> list[Message]:
        """The topic's records, from its beginning: `count` and what else comes within 0.3 s.

        A pause of the broker ends no reading: the ends of all partitions are reached first.
        """
        config = {**self.broker.admin_config(), "group.id": "test", "enable.partition.eof": True}
        consumer = Consumer(config)
        behind = {*consumer.list_topics(topic, timeout=10).topics[topic].partitions}
        consumer.assign([TopicPartition(topic, p, 0) for p in behind])
        found: list[Message] = []
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            message = consumer.poll(0.3)
            if message is None:
                if not behind and len(found) >= count:
                    break
            elif (error := message.error()) is None:
                found.append(message)
                behind.add(message.partition())
            elif error.code() == KafkaError._PARTITION_EOF:
                behind.discard(message.partition())
        consumer.close()
        return found

    def read_until(
        self, topic: str, enough: Callable[[list[Message]], bool], timeout_s: float = 180.0
    ) -> list[Message]:
        """The topic's records, from its beginning, once they are enough."""
        deadline = time.monotonic() + timeout_s
        while not enough(found := self.read(topic, 0)):
            assert time.monotonic() < deadline, f"not enough: {len(found)}, {values(found)[-100:]}"
            time.sleep(0.1)
        return found

    def read_prices(
        self, topic: str, wanted: Set[object], timeout_s: float = 180.0
    ) -> list[Message]:
        """The topic's records once tuples of these prices are all among them, some maybe twice."""
        return self.read_until(topic, lambda found: wanted <= prices(found), timeout_s)


def prices(messages: Sequence[Message]) -> set[object]:
    """What tells a test's tuples apart."""
    return {value["price"] for value in values(messages)}


def headers(message: Message) -> list[tuple[str, str]]:
    """A record's headers as text."""
    pairs = cast("list[tuple[str, bytes]]", message.headers() or [])
    return [(key, value.decode()) for key, value in pairs]


def one_id_each(messages: Sequence[Message]) -> dict[object, str]:
    """The id of each tuple, by its price: the same however often it comes, and no other one's."""
    ids: dict[object, str] = {}
    for message, value in zip(messages, values(messages), strict=True):
        price, found = value["price"], dict(headers(message))["id"]
        assert ids.setdefault(price, found) == found, f"the tuple {price} has two ids"
    assert len(set(ids.values())) == len(ids), "an id stands for two tuples"
    return ids


def values(messages: Sequence[Message]) -> list[dict[str, object]]:
    """The records' JSON objects."""
    return [json.loads(message.value() or b"null") for message in messages]


def tuple_at(second: float, key: str | None = "x", price: int | None = 1) -> dict[str, object]:
    """A tuple of SCHEMA whose event time is `second` seconds after a fixed time."""
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_769_860_800 + int(second)))
    return {"at": f"{text}.{int(second % 1 * 1000):03d}Z", "key": key, "price": price}


class Feed:
    """Sends tuples, whose prices are numbers from `first` on, until told to stop."""

    def __init__(self, plane: Plane, topic: str, first: int = 0) -> None:
        self._producer = Producer(
            {**plane.broker.admin_config(), "linger.ms": 1, "enable.idempotence": True}
        )
        self._topic, self._stop = topic, threading.Event()
        self.count, self._first = 0, first
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.003):
            price = self._first + self.count
            record = f'{{"at":"2026-01-31T12:00:00Z","key":"x","price":{price}}}'
            self._producer.produce(self._topic, record.encode())
            self._producer.poll(0)
            self.count += 1

    def end(self) -> int:
        """Stop; how many were sent."""
        self._stop.set()
        self._thread.join()
        self._producer.flush(10)
        return self.count

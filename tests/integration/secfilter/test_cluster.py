"""Engines whose tasks run on a Spark cluster: a worker is killed while records flow."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from catalog.clearance import Clearance
from catalog.plan import WINDOW_START, Aggregation, Source, Window
from catalog.runs import IngestStream
from catalog.time_source import TimeSource
from tests.integration.brokers import embedded_only
from tests.integration.kafka.clients import Reader, parked_reader
from tests.integration.kafka.conftest import Parts, new_parts, parts, settings
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Plane, headers, one_id_each, prices, values
from tests.plans import grouped
from tests.spark_cluster import SparkCluster, spark_cluster

__all__ = ["new_parts", "parts", "settings", "spark_cluster"]

PARTITIONS = 2
# A second of the feed; its tuples are on time although the machine is busy.
PER_S, LATENESS_MS = 100, 5_000
WINDOW_MS = 1_000


@dataclass
class Flow:
    """Sends tuples with the time of now. Their prices are numbers from 0 on."""

    producer: Producer
    topic: str
    times_ms: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        """How many were sent."""
        return len(self.times_ms)

    def _run(self) -> None:
        while not self._stop.wait(1 / PER_S):
            now_ms, number = int(time.time() * 1_000), self.count
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_ms // 1_000))
            record = {"at": f"{at}.{now_ms % 1_000:03d}Z", "key": "x", "price": number}
            self.times_ms.append(now_ms)
            self.producer.produce(
                self.topic, json.dumps(record).encode(), partition=number % PARTITIONS
            )
            self.producer.poll(0)

    def end(self) -> None:
        """Send no more."""
        self._stop.set()
        self._thread.join()
        assert self.producer.flush(10) == 0

    def windows(self) -> Counter[int]:
        """The tuples of each window, by its number since 1970."""
        return Counter(time_ms // WINDOW_MS for time_ms in self.times_ms)


def a_stream(plane: Plane) -> IngestStream:
    """A stream whose time moves by ticks."""
    made = plane.stream(0, partitions=PARTITIONS)
    relation = replace(made.relation, time=TimeSource.BROKER, lateness_ms=LATENESS_MS)
    return replace(made, relation=relation)


def await_price(plane: Plane, topic: str, number: int, timeout_s: float = 120.0) -> None:
    """Wait until a tuple of this price or a later one is delivered."""
    consumer = Consumer({**plane.broker.admin_config(), "group.id": "await"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    deadline = time.monotonic() + timeout_s
    newest = -1
    while newest < number:
        assert time.monotonic() < deadline, f"{number} was not delivered, but {newest}"
        message = consumer.poll(0.1)
        if message is not None and message.error() is None and (value := message.value()):
            newest = max(newest, json.loads(value)["price"])
    consumer.close()


def results_of(messages: Sequence[Message]) -> list[Message]:
    """All records but those of a fence."""
    return [message for message in messages if message.value() is not None]


def counts_of(messages: Sequence[Message]) -> Counter[int]:
    """The counts of windows, by the number of the window. What comes again is the same."""
    results: dict[str, dict[str, Any]] = {}
    for message, value in zip(messages, values(messages), strict=True):
        known = results.setdefault(dict(headers(message))["id"], value)
        assert known == value, "results with one id differ"
    starts = {id_: datetime.fromisoformat(v[WINDOW_START]) for id_, v in results.items()}
    numbers = {id_: int(start.timestamp() * 1_000) // WINDOW_MS for id_, start in starts.items()}
    assert len(set(numbers.values())) == len(numbers), "a window has two results"
    return Counter({numbers[id_]: value["n"] for id_, value in results.items()})


def command_lines() -> bytes:
    """The arguments of all processes of this machine, which everybody can read."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_bytes())
    return b"\n".join(found)


@embedded_only
def test_a_killed_worker_loses_nothing_and_nothing_arrives_after_a_revocation(
    plane: Plane, deployment: Deployment, spark_cluster: SparkCluster, parts: Parts
) -> None:
    stream = a_stream(plane)
    each = plane.query(Source(stream.relation), Clearance.of(0))
    count = Aggregation("n", "count", None)
    plan = grouped(Source(stream.relation), Window(WINDOW_MS, WINDOW_MS), (), (count,))
    counts = plane.query(plan, Clearance.of(0))
    topic = each.classes[0].topic
    deployment.use(spark_cluster)
    deployment.add(stream, each, counts, partitions=PARTITIONS)
    engines = deployment.start()
    deployment.await_running()
    flow = Flow(Producer(plane.broker.admin_config()), stream.senders[0].topic)
    await_price(plane, topic, PER_S)

    bob = parts.new_reader(topic)
    with parked_reader(parts.settings, bob, topic, 1) as hostile:
        spark_cluster.kill(0)
        killed_at, killed = time.monotonic(), flow.count
        parts.access.withdraw(topic, [bob.username])
        returned = flow.count
        await_price(plane, topic, killed + 1)
        print(f"a killed worker was back after {time.monotonic() - killed_at:.1f} s")
        hostile.read_until_refused()
    assert newest_price(hostile) < returned, "something arrived after the revocation"

    await_price(plane, topic, returned + 2 * PER_S)
    flow.end()
    wanted = flow.windows()
    closed = plane.read_until(
        counts.classes[0].topic, lambda found: counts_of(found).keys() >= wanted.keys()
    )
    assert counts_of(closed) == wanted, "a window lacks a tuple, or counted one twice"
    sent = set(range(flow.count))
    delivered = plane.read_until(topic, lambda found: sent <= prices(results_of(found)))
    assert one_id_each(results_of(delivered)).keys() == sent
    arguments = command_lines()
    assert b"spark.network.crypto.cipher=AES/GCM/NoPadding" in arguments
    assert spark_cluster.secret.encode() not in arguments + (deployment.folder / "log").read_bytes()
    engines.kill()


def newest_price(reader: Reader) -> int:
    """The newest of the tuples that the reader got."""
    return max((json.loads(value)["price"] for value in reader.values), default=-1)

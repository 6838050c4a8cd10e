"""How many records a second two workers of a Spark cluster take, beside an engine's one process.

All processes are on this machine. So the figures say what the cluster costs, and not what more
machines give.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from catalog.clearance import Clearance
from catalog.plan import WINDOW_START, Aggregation, Plan, Source, Window
from catalog.relation import Relation
from catalog.runs import QueryRun
from tests.integration.brokers import embedded_only
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Plane
from tests.lanes import number_of
from tests.plans import grouped, updating, whole
from tests.spark_cluster import spark_cluster

__all__ = ["spark_cluster"]

pytestmark = [pytest.mark.long, pytest.mark.slow]

PARTITIONS = 2
WARM_UP, RECORDS = 50_000, number_of("THROUGHPUT_RECORDS", sample=100_000, long=300_000)
A_WINDOW, WINDOW_MS = 1_000, 1_000
PATIENCE_S = 300.0
CLUSTER = "two workers"


def stateless(relation: Relation) -> Plan:
    return whole(Source(relation))


def stateful(relation: Relation) -> Plan:
    window = Window(WINDOW_MS, WINDOW_MS)
    return updating(grouped(Source(relation), window, (), (Aggregation("n", "count", None),)))


@dataclass
class Load:
    """Sends numbered tuples, a thousand for each second of event time."""

    producer: Producer
    topic: str
    sent: int = 0

    def send(self, count: int) -> None:
        """Send so many more."""
        for number in range(self.sent, self.sent + count):
            seconds, ms = divmod(number, A_WINDOW)
            minutes, second = divmod(seconds, 60)
            at = f"2026-01-31T{minutes // 60:02}:{minutes % 60:02}:{second:02}.{ms:03}Z"
            record = f'{{"at":"{at}","key":"x","price":{number}}}'
            while True:
                try:
                    self.producer.produce(
                        self.topic, record.encode(), partition=number % PARTITIONS
                    )
                    break
                except BufferError:
                    self.producer.poll(0.1)
        self.sent += count
        assert self.producer.flush(60) == 0


class Delivered:
    """Reads a delivery topic, and counts the tuples behind its results."""

    def __init__(self, plane: Plane, run: QueryRun) -> None:
        self._consumer = Consumer({**plane.broker.admin_config(), "group.id": "throughput"})
        self._consumer.assign([TopicPartition(run.classes[0].topic, 0, 0)])
        self._prices: set[int] = set()
        self._windows: dict[str, int] = {}

    def await_all(self, count: int) -> None:
        """Wait until so many tuples are delivered, or counted, each once."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := len(self._prices) + sum(self._windows.values())) < count:
            assert time.monotonic() < deadline, f"{found} of {count}"
            for message in self._consumer.consume(10_000, 0.05):
                if message.error() is None and (data := message.value()):
                    self._take(json.loads(data))
        assert found == count

    def _take(self, value: dict[str, int | str]) -> None:
        if "price" in value:
            self._prices.add(int(value["price"]))
            return
        window, count = str(value[WINDOW_START]), int(value["n"])
        self._windows[window] = max(count, self._windows.get(window, 0))

    def close(self) -> None:
        """Stop."""
        self._consumer.close()


@pytest.mark.parametrize("plan", [stateless, stateful])
@pytest.mark.parametrize("where", ["one process", CLUSTER])
@embedded_only
def test_throughput(
    request: pytest.FixtureRequest,
    plane: Plane,
    deployment: Deployment,
    plan: Callable[[Relation], Plan],
    where: str,
) -> None:
    made = plane.stream(0, partitions=PARTITIONS)
    # Nothing is late, however unevenly the partitions are read.
    stream = replace(made, relation=replace(made.relation, lateness_ms=3_600_000))
    run = plane.query(plan(stream.relation), Clearance.of(0))
    if where == CLUSTER:
        deployment.use(request.getfixturevalue("spark_cluster"))
    deployment.add(stream, run, partitions=PARTITIONS)
    deployment.start()
    deployment.await_running()
    producer = Producer({**plane.broker.admin_config(), "linger.ms": 20})
    load, delivered = Load(producer, stream.senders[0].topic), Delivered(plane, run)
    load.send(WARM_UP)
    delivered.await_all(WARM_UP)
    began = time.monotonic()
    load.send(RECORDS)
    delivered.await_all(WARM_UP + RECORDS)
    rate = RECORDS / (time.monotonic() - began)
    print(f"{where}, {plan.__name__}: {rate:,.0f} records/s")
    delivered.close()

"""Engines whose tasks run on a Spark cluster: each of its parts fails while records flow."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from catalog.clearance import Clearance
from catalog.engines import FIRST, INGEST, PROBATION
from catalog.plan import WINDOW_START, Aggregation, Source, Window
from catalog.runs import IngestStream
from catalog.time_source import TimeSource
from tests.integration.brokers import embedded_only
from tests.integration.engine_host import Host
from tests.integration.kafka.clients import Reader, parked_reader
from tests.integration.kafka.conftest import Parts, new_parts, parts, settings
from tests.integration.secfilter.deployment import Deployment
from tests.integration.secfilter.plane import Plane, headers, one_id_each, prices, values
from tests.plans import grouped
from tests.spark_cluster import SparkCluster, spark_cluster
from tests.waiting import wait_until

__all__ = ["new_parts", "parts", "settings", "spark_cluster"]

PARTITIONS = 2
# A second of the feed; its tuples are on time although the machine is busy.
PER_S, LATENESS_MS = 100, 5_000
WINDOW_MS = 1_000
# Ingest and one for queries. Each has an executor on each worker.
ENGINES = 2
BACK_S, TAKEN_OVER_S = 120.0, 300.0


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


@dataclass
class World:
    """A stream, a query that gives each tuple, one that counts them, and engines on a cluster."""

    plane: Plane
    deployment: Deployment
    cluster: SparkCluster

    def __post_init__(self) -> None:
        self.stream = a_stream(self.plane)
        source = Source(self.stream.relation)
        windows = grouped(
            *(source, Window(WINDOW_MS, WINDOW_MS), (), (Aggregation("n", "count", None),))
        )
        self.each = self.plane.query(source, Clearance.of(0))
        self.counted = self.plane.query(windows, Clearance.of(0))
        self.topic = self.each.classes[0].topic
        self.deployment.use(self.cluster)
        self.deployment.add(self.stream, self.each, self.counted, partitions=PARTITIONS)
        self.engines = self.deployment.start()
        self.deployment.await_running()
        self.flow = Flow(Producer(self.plane.broker.admin_config()), self.stream.senders[0].topic)
        await_price(self.plane, self.topic, PER_S)

    def await_more(self, timeout_s: float = 120.0) -> float:
        """How long it takes until a tuple is delivered that is sent from now on (s)."""
        began = time.monotonic()
        await_price(self.plane, self.topic, self.flow.count + 1, timeout_s)
        return time.monotonic() - began

    def expect_all(self) -> None:
        """Send no more. All that was sent is delivered, and counted once."""
        self.flow.end()
        wanted = self.flow.windows()
        closed = self.plane.read_until(
            self.counted.classes[0].topic, lambda found: counts_of(found).keys() >= wanted.keys()
        )
        assert counts_of(closed) == wanted, "a window lacks a tuple, or counted one twice"
        sent = set(range(self.flow.count))
        delivered = self.plane.read_until(
            self.topic, lambda found: sent <= prices(results_of(found))
        )
        assert one_id_each(results_of(delivered)).keys() == sent
        self.engines.kill()


@pytest.fixture
def world(plane: Plane, deployment: Deployment, spark_cluster: SparkCluster) -> World:
    return World(plane, deployment, spark_cluster)


# In the sample lane, `tests/integration/test_scenario.py` kills a worker.
@pytest.mark.long
@embedded_only
def test_a_killed_worker_loses_nothing_and_nothing_arrives_after_a_revocation(
    world: World, parts: Parts
) -> None:
    arguments = command_lines()
    assert b"spark.network.crypto.cipher=AES/GCM/NoPadding" in arguments
    assert world.cluster.secret.encode() not in arguments
    bob = parts.new_reader(world.topic)
    with parked_reader(parts.settings, bob, world.topic, 1) as hostile:
        world.cluster.kill(0)
        parts.access.withdraw(world.topic, [bob.username])
        returned = world.flow.count
        print(f"a killed worker was back after {world.await_more():.1f} s")
        hostile.read_until_refused()
    assert newest_price(hostile) < returned, "something arrived after the revocation"
    world.await_more()
    world.expect_all()
    left = world.cluster.left() + (world.deployment.folder / "log").read_bytes()
    assert b"CoarseGrainedExecutorBackend" in left, "executors have left their logs"
    passwords = (each.password() for each in (parts.settings.ingest, parts.settings.query))
    for secret in (world.cluster.secret, *passwords):
        assert secret.encode() not in left


@pytest.mark.long
@embedded_only
def test_executors_that_are_killed_lose_nothing(world: World) -> None:
    for number in (0, 1):
        world.cluster.kill_executors(number)
        print(f"killed executors were back after {world.await_more():.1f} s")
    world.expect_all()


@pytest.mark.long
@embedded_only
def test_a_worker_that_is_cut_off_for_a_while_repeats_nothing_in_a_window(world: World) -> None:
    """It goes on when its tasks have long begun elsewhere."""
    world.cluster.pause(0)
    print(f"without a worker that is paused, all went on after {world.await_more():.1f} s")
    world.cluster.resume(0)
    world.await_more()
    world.expect_all()


@pytest.mark.long
@embedded_only
def test_without_its_master_a_cluster_goes_on_and_replaces_nothing(world: World) -> None:
    cluster = world.cluster
    # One that the master has asked for comes although the master is away.
    wait_until(lambda: len(cluster.executors(0)) == ENGINES, "all executors are there", BACK_S)
    cluster.kill_master()
    cluster.kill_executors(0)
    print(f"without the master, with one worker, all went on after {world.await_more():.1f} s")
    assert cluster.executors(0) == set()
    cluster.start_master()
    wait_until(lambda: len(cluster.executors(0)) >= ENGINES, "the lost are replaced", BACK_S)
    cluster.kill(1)
    print(f"with the other worker all went on after {world.await_more():.1f} s")
    world.expect_all()


@pytest.mark.long
@embedded_only
def test_another_host_takes_over_the_engines_of_one_that_is_lost(world: World) -> None:
    """Whose the lock in the shared folder is, works; what was counted is not counted again."""
    launch = world.deployment.launch
    others = {name: Host(partial(launch, name)) for name in (INGEST, FIRST, PROBATION)}
    try:
        for each in others.values():
            each.start()
        for name in world.engines.processes:
            assert others[name].refused.wait(BACK_S), f"{name} is at work already"
        world.await_more()
        for process in world.engines.processes.values():
            os.killpg(process.pid, signal.SIGKILL)
        print(f"on another host all went on after {world.await_more(TAKEN_OVER_S):.1f} s")
        world.expect_all()
    finally:
        for each in others.values():
            each.close()
        # Their processes end, and so do the threads that wait for them.
        world.deployment.end()


def newest_price(reader: Reader) -> int:
    """The newest of the tuples that the reader got."""
    return max((json.loads(value)["price"] for value in reader.values), default=-1)

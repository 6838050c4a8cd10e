"""Kafka clients of subscribers and senders, honest and hostile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from catalog.settings import KafkaAccount, KafkaSettings
from catalog.topics import FENCE_HEADER
from secadmin.cli.kafka.bounded_close import close
from secadmin.kafka.acl import group_prefix
from secadmin.kafka.principals import Credentials
from secadmin.kafka.wire.connection import BrokerAddress, BrokerConnection
from secadmin.kafka.wire.parked_fetch import FetchPlace, ParkedFetch

WAIT_S = 60.0
DENIED_TOPIC: int = KafkaError.TOPIC_AUTHORIZATION_FAILED
DENIED_GROUP: int = KafkaError.GROUP_AUTHORIZATION_FAILED
DENIED_CLUSTER: int = KafkaError.CLUSTER_AUTHORIZATION_FAILED
DENIED_TRANSACTION: int = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
RELEASED_BY = 100_000
"""The hostile consumer's `fetch.min.bytes`: so much releases a parked fetch, fence or no fence."""


def until(condition: Callable[[], Any], what: str, timeout_s: float = WAIT_S) -> Any:
    """Wait until the condition gives something true, and give it."""
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited too long: {what}"
    return found


def client_config(settings: KafkaSettings, credentials: Credentials) -> dict[str, Any]:
    """What a client of that principal connects with."""
    base = settings.client_config(settings.secadmin)
    own = {"sasl.username": credentials.username, "sasl.password": credentials.password}
    return base | own | {"bootstrap.servers": settings.users_bootstrap, "log_level": 0}


def secadmin_producer(settings: KafkaSettings) -> Producer:
    """Writes to any topic, as the data plane does: each record once and in order."""
    own = {"linger.ms": 0, "enable.idempotence": True, "log_level": 0}
    return Producer(settings.client_config(settings.secadmin) | own)


def fetch_directly(
    settings: KafkaSettings, credentials: Credentials, topic: str, folder: Path
) -> ParkedFetch:
    """A bare fetch request of that principal, for a topic that it need not even know of."""
    file = folder / credentials.username
    file.write_text(credentials.password)
    account = KafkaAccount(credentials.username, file)
    # Any of several brokers: each has a replica.
    host, _, port = settings.users_bootstrap.partition(",")[0].rpartition(":")
    as_it = replace(settings, secadmin=account)
    connection = BrokerConnection(BrokerAddress(host, int(port)), as_it)
    return ParkedFetch(connection, FetchPlace(topic, 0, 0))


def produce_one(
    settings: KafkaSettings, credentials: Credentials, topic: str, *, idempotent: bool = True
) -> int | None:
    """Write one record as that principal; the code of the error that was told, if any."""
    told: list[int | None] = []
    config = client_config(settings, credentials) | {"enable.idempotence": idempotent}
    producer = Producer(config)
    producer.produce(
        topic, "x", on_delivery=lambda error, _: told.append(error.code() if error else None)
    )

    def polled() -> bool:
        try:
            producer.poll(0.05)
        except KafkaException as error:
            told.append(error.args[0].code())
        return bool(told)

    until(polled, "an acknowledgement")
    return told[0]


def write(producer: Producer, topic: str, values: Sequence[str], partition: int = 0) -> None:
    """Write values and wait for their acknowledgements."""
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(WAIT_S) == 0


class Reader:
    """A consumer that keeps what it got: values of records, and codes of errors."""

    def __init__(
        self,
        settings: KafkaSettings,
        credentials: Credentials,
        group: str | None = None,
        **config: Any,
    ) -> None:
        self.values: list[str] = []
        self.errors: set[int] = set()
        self.fences = 0
        own = {
            "group.id": group or group_prefix(credentials.username) + "main",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 500,
        }
        self.consumer = Consumer(client_config(settings, credentials) | own | config)

    def poll(self, timeout_s: float = 0.05) -> bool:
        """Take one record or error; whether there was one."""
        message = self.consumer.poll(timeout_s)
        if message is None:
            return False
        error = message.error()
        if error is not None:
            self.errors.add(error.code())
        elif FENCE_HEADER in dict(message.headers() or []):
            self.fences += 1
        else:
            self.values.append((message.value() or b"").decode())
        return True

    def drain(self) -> None:
        """Take all that has come."""
        while self.poll():
            pass

    def read_until(self, condition: Callable[[], Any], what: str) -> None:
        """Poll until the condition holds."""

        def polled() -> Any:
            self.poll()
            return condition()

        until(polled, what)

    def read_until_refused(self) -> None:
        """Poll until the topic is refused."""
        self.read_until(lambda: DENIED_TOPIC in self.errors, "the refusal")

    def expect_error(self, *codes: int) -> None:
        """Poll until one of the errors is told, and nothing was read."""
        self.read_until(lambda: self.errors & set(codes), f"an error of {codes}")
        assert self.values == []


@contextmanager
def reader(
    settings: KafkaSettings, credentials: Credentials, group: str | None = None, **config: Any
) -> Iterator[Reader]:
    """A consumer that is closed at the end."""
    made = Reader(settings, credentials, group, **config)
    try:
        yield made
    finally:
        close(made.consumer)


@contextmanager
def parked_reader(
    settings: KafkaSettings, credentials: Credentials, topic: str, partitions: int
) -> Iterator[Reader]:
    """A hostile consumer whose fetch waits at the end of every partition: 60 s, many bytes."""
    stats: dict[str, Any] = {}
    config: dict[str, Any] = {
        "fetch.wait.max.ms": 60_000,
        "fetch.min.bytes": RELEASED_BY,
        "socket.timeout.ms": 120_000,
        # The refusal is to come from a fetch, not from metadata (which the client keeps to itself).
        "topic.metadata.refresh.interval.ms": 300_000,
        "statistics.interval.ms": 20,
        "stats_cb": lambda text: stats.update(json.loads(text)),
    }
    with reader(settings, credentials, **config) as hostile:
        hostile.consumer.assign(_ends(hostile.consumer, topic, partitions))
        seen: list[int] = []

        def parked() -> bool:
            hostile.poll(0.01)
            seen.append(_parked_fetches(stats, topic, partitions))
            # The same single fetch under way in many statistics: the broker keeps it.
            return len(seen) > 20 and len(set(seen[-20:])) == 1 and seen[-1] > 0

        until(parked, "a parked fetch")
        yield hostile


def _ends(consumer: Consumer, topic: str, partitions: int) -> list[TopicPartition]:
    """The partitions' ends, known before any is fetched.

    Asked for afterwards, one partition's end would wait behind the parked fetch of another.
    """

    def end_of(number: int) -> TopicPartition | None:
        try:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=5)
        except KafkaException:
            return None  # not connected yet
        return TopicPartition(topic, number, end)

    return [until(partial(end_of, number), "the topic's end") for number in range(partitions)]


def _parked_fetches(stats: dict[str, Any], topic: str, partitions: int) -> int:
    """How many fetches were sent, if one is under way and every partition takes part; else 0."""
    found = stats.get("topics", {}).get(topic, {}).get("partitions", {})
    active = [p for p in found.values() if p["fetch_state"] == "active"]
    brokers = [b for b in stats.get("brokers", {}).values() if b["req"].get("Fetch")]
    if len(active) < partitions or not any(b["waitresp_cnt"] for b in brokers):
        return 0
    return sum(int(b["req"]["Fetch"]) for b in brokers)

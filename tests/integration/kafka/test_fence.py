"""The fence against a consumer that parks its fetch: 60 s, more bytes than there are."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from confluent_kafka import Producer, TopicPartition

from secadmin.kafka.acl import TopicAcl, read_acls
from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.principals import new_principal_name
from secadmin.kafka.topics import TopicSpec
from secadmin.kafka.wire.parked_fetch import ping
from tests.integration.kafka.clients import (
    RELEASED_BY,
    Reader,
    parked_reader,
    reader,
    secadmin_producer,
    write,
)
from tests.integration.kafka.conftest import Parts

LATER = [f"later-{number}" for number in range(5)]
FILLER = "f" * 2 * RELEASED_BY


@pytest.fixture(scope="module")
def producer(parts: Parts) -> Producer:
    return secadmin_producer(parts.settings)


def _write_later(producer: Producer, topic: str, partitions: int) -> None:
    """Records that must not arrive, then as many bytes as release any fetch."""
    for partition in range(partitions):
        write(producer, topic, [*LATER, FILLER], partition)


def _await_requests(parts: Parts) -> None:
    """Return when each broker has answered requests that came behind all that were sent before."""
    for address in live_brokers(parts.connections).values():
        with parts.connections.lent(address) as connection:
            for _ in range(10):
                ping(connection)


def _leaked(hostile: Reader) -> set[str]:
    return {value for value in hostile.values if value.startswith("later") or value == FILLER}


def _expect_all(parts: Parts, topic: str, partitions: int, earlier: list[str]) -> None:
    """Another subscriber of the topic gets everything, once, and in order."""
    with reader(parts.settings, parts.new_reader(topic)) as honest:
        honest.consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        count = len(earlier) + (len(LATER) + 1) * partitions
        honest.read_until(lambda: len(honest.values) >= count, "all records")
    assert len(honest.values) == count
    if partitions == 1:
        assert honest.values == [*earlier, *LATER, FILLER]


def test_without_the_fence_a_parked_fetch_leaks(parts: Parts, producer: Producer) -> None:
    """What the others test is really there: deleting the ACL alone does not stop the fetch."""
    topic = parts.new_topic()
    write(producer, topic, ["earlier"])
    credentials = parts.new_reader(topic)
    with parked_reader(parts.settings, credentials, topic, 1) as hostile:
        # The first test on a broker that is not warm: it may have been sent and not yet let in.
        _await_requests(parts)
        parts.acls.revoke_topics({topic: [credentials.username]})
        _write_later(producer, topic, 1)
        hostile.read_until_refused()
    assert _leaked(hostile) >= set(LATER)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("earlier", [[], ["earlier-0", "earlier-1"]], ids=["empty", "idle"])
def test_nothing_arrives_after_a_withdrawal(
    parts: Parts, producer: Producer, partitions: int, earlier: list[str]
) -> None:
    topic = parts.new_topic(partitions=partitions)
    write(producer, topic, earlier)
    credentials = parts.new_reader(topic)
    with parked_reader(parts.settings, credentials, topic, partitions) as hostile:
        parts.access.withdraw(topic, [credentials.username])
        _write_later(producer, topic, partitions)
        hostile.read_until_refused()
    assert _leaked(hostile) == set()
    _expect_all(parts, topic, partitions, earlier)


def test_records_stamped_ahead(parts: Parts, producer: Producer) -> None:
    topic = parts.new_topic()
    ahead_ms = int((time.time() + 30 * 60) * 1000)
    producer.produce(topic, "earlier", partition=0, timestamp=ahead_ms)
    assert producer.flush(10) == 0
    credentials = parts.new_reader(topic)
    with parked_reader(parts.settings, credentials, topic, 1) as hostile:
        parts.access.withdraw(topic, [credentials.username])
        _write_later(producer, topic, 1)
        hostile.read_until_refused()
    assert _leaked(hostile) == set()
    _expect_all(parts, topic, 1, ["earlier"])


@contextmanager
def _busy(parts: Parts, topic: str, partitions: int, later: Event) -> Iterator[list[str]]:
    """Somebody writes all the time; records after `later` say so. Gives what was acknowledged."""
    stop, written = Event(), list[str]()
    producer = secadmin_producer(parts.settings)

    def work() -> None:
        number = 0
        while not stop.is_set():
            value = f"{'later' if later.is_set() else 'earlier'}-busy-{number}"
            producer.produce(topic, value, partition=number % partitions)
            producer.poll(0.001)
            written.append(value)
            number += 1
        producer.flush(10)

    thread = Thread(target=work)
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_busy_topic(parts: Parts, producer: Producer, partitions: int) -> None:
    topic = parts.new_topic(partitions=partitions)
    credentials, later = parts.new_reader(topic), Event()
    with parked_reader(parts.settings, credentials, topic, partitions) as hostile:
        with _busy(parts, topic, partitions, later) as written:
            hostile.read_until(lambda: len(written) > 100, "a busy topic")
            parts.access.withdraw(topic, [credentials.username])
            later.set()
            hostile.read_until_refused()
            hostile.read_until(lambda: written[-1].startswith("later"), "later records")
        _write_later(producer, topic, partitions)
        with reader(parts.settings, parts.new_reader(topic)) as honest:
            every = [TopicPartition(topic, number, 0) for number in range(partitions)]
            honest.consumer.assign(every)
            expected = {*written, FILLER}
            honest.read_until(lambda: expected <= set(honest.values), "all records")
        hostile.drain()
    assert _leaked(hostile) == set()
    assert len([value for value in honest.values if value in set(written)]) == len(written)


def test_many_parked_fetches_at_once(parts: Parts, producer: Producer) -> None:
    topic = parts.new_topic()
    first, second = parts.new_reader(topic), parts.new_reader(topic)
    with (
        parked_reader(parts.settings, first, topic, 1) as one,
        parked_reader(parts.settings, first, topic, 1) as two,
        parked_reader(parts.settings, second, topic, 1) as three,
    ):
        parts.access.withdraw(topic, [first.username, second.username])
        _write_later(producer, topic, 1)
        for hostile in (one, two, three):
            hostile.read_until_refused()
            assert _leaked(hostile) == set()


def test_who_keeps_the_right_keeps_reading(parts: Parts, producer: Producer) -> None:
    """Parked beside the one that loses its right: released early, nothing lost, no error."""
    topic = parts.new_topic()
    write(producer, topic, ["earlier"])
    leaving, staying = parts.new_reader(topic), parts.new_reader(topic)
    with parked_reader(parts.settings, staying, topic, 1) as honest:
        parts.access.withdraw(topic, [leaving.username])
        _write_later(producer, topic, 1)
        honest.read_until(lambda: FILLER in honest.values, "all later records")
    assert honest.values == [*LATER, FILLER]
    assert honest.errors == set()


def test_a_hundred_topics_at_once(parts: Parts) -> None:
    topics = [f"out.many.{secrets.token_hex(6)}" for _ in range(100)]
    for i in range(0, len(topics), 16):
        parts.topics.create([TopicSpec(topic) for topic in topics[i : i + 16]])
    names = [new_principal_name("output") for _ in topics]
    parts.acls.grant([acl for pair in zip(names, topics, strict=True) for acl in read_acls(*pair)])
    for i in range(0, len(topics), 16):
        several = zip(topics[i : i + 16], names[i : i + 16], strict=True)
        parts.access.withdraw_locked({topic: [name] for topic, name in several})
    left = {acl.topic for acl in parts.acls.list_all() if isinstance(acl, TopicAcl)}
    assert left.isdisjoint(topics)
    assert all(ends[0] >= 2 for ends in parts.topics.end_offsets(topics).values())
    parts.topics.delete(topics)

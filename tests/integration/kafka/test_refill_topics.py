"""Refills on a real broker: which records are copied, from where on, and how they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from catalog.errors import Unavailable
from catalog.label import Label
from secadmin.kafka.acl import group_prefix
from secadmin.kafka.principals import Credentials
from secadmin.kafka.refill_topics import RefillTopics
from tests.integration.kafka.clients import client_config, secadmin_producer, until
from tests.integration.kafka.conftest import Parts

ONE, TWO = Label.of(0), Label.of(70)
NOW_MS = 1_800_000_000_000
NOW = datetime.fromtimestamp(NOW_MS / 1000, UTC).replace(tzinfo=None)
Headers = list[tuple[str, str | bytes | None]]


@pytest.fixture
def topics(parts: Parts) -> Iterator[RefillTopics]:
    made = RefillTopics(parts.settings)
    yield made
    made.close()


@pytest.fixture
def source(parts: Parts) -> str:
    return parts.new_topic()


@pytest.fixture
def target(parts: Parts) -> str:
    return parts.new_topic()


def write(parts: Parts, topic: str, *values: str, label: Label = ONE, ms: int = NOW_MS) -> None:
    """Results, as a run writes them; the id of each is its value."""
    producer = secadmin_producer(parts.settings)
    for value in values:
        headers: Headers = [("label", label.to_wire()), ("id", value)]
        producer.produce(topic, value, None, 0, timestamp=ms, headers=headers)
    assert producer.flush(10) == 0


def read(parts: Parts, topic: str) -> list[str]:
    """The values of all that is in a topic."""
    return [(each.value() or b"").decode() for each in messages(parts, topic)]


def messages(parts: Parts, topic: str) -> Iterator[Message]:
    consumer = Consumer(
        {
            **parts.settings.client_config(parts.settings.secadmin),
            "group.id": "test",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    while (message := consumer.poll(10)) is not None and not message.error():
        yield message
    consumer.close()


def takes_one(label: Label) -> bool:
    return label.within(ONE)


def refill(topics: RefillTopics, target: str, starts: dict[str, int]) -> None:
    """Copy all that is in the sources."""
    topics.begin(target, starts)
    run(topics, target)
    topics.end(target)


def run(topics: RefillTopics, *targets: str) -> None:
    """Copy until all is copied to these, with which all is begun."""

    def step() -> bool:
        assert topics.copy(dict.fromkeys(targets, takes_one)) == {}
        return all(map(topics.is_through, targets))

    until(step, "all is copied")


def test_what_the_class_takes_arrives_as_it_was(
    parts: Parts, topics: RefillTopics, source: str, target: str
) -> None:
    producer = secadmin_producer(parts.settings)
    own: Headers = [("label", ONE.to_wire()), ("id", "a"), ("row-version", "7")]
    producer.produce(source, "value", "key", 0, timestamp=NOW_MS, headers=own)
    gone: Headers = [("label", ONE.to_wire()), ("id", "b"), ("row-version", "8")]
    producer.produce(source, None, "key", 0, timestamp=NOW_MS + 5, headers=gone)
    for value, headers in (
        ("fence", [("fence", "1")]),
        ("unlabelled", [("id", "c")]),
        ("unreadable", [("label", "one"), ("id", "d")]),
        ("twice", [("label", ONE.to_wire()), ("label", TWO.to_wire()), ("id", "e")]),
        ("too much", [("label", (ONE | TWO).to_wire()), ("id", "f")]),
    ):
        odd: Headers = list(headers)
        producer.produce(source, value, None, 0, timestamp=NOW_MS, headers=odd)
    assert producer.flush(10) == 0
    refill(topics, target, {source: 0})
    found = [(m.key(), m.value(), m.headers(), m.timestamp()[1]) for m in messages(parts, target)]
    assert found == [
        (b"key", b"value", [(k, str(v).encode()) for k, v in own], NOW_MS),
        (b"key", None, [(k, str(v).encode()) for k, v in gone], NOW_MS + 5),
    ]


def test_what_is_there_is_not_copied_again(
    parts: Parts, topics: RefillTopics, source: str, target: str
) -> None:
    write(parts, source, "a", "b")
    refill(topics, target, {source: 0})
    # After a crash it begins once more, and the run feeds the class, too.
    write(parts, source, "c", "d")
    write(parts, target, "d", "e")
    refill(topics, target, {source: 0})
    assert read(parts, target) == ["a", "b", "d", "e", "c"]


def test_several_sources_come_in_the_order_of_their_times(
    parts: Parts, topics: RefillTopics, source: str, target: str
) -> None:
    other = parts.new_topic()
    for number in range(6):
        write(parts, (source, other)[number % 2], str(number), ms=NOW_MS + number)
    refill(topics, target, {source: 0, other: 0})
    assert sorted(read(parts, target)) == list("012345")
    write(parts, source, "x", label=TWO)
    write(parts, other, "y")
    refill(topics, target, {source: 3, other: 3})
    assert read(parts, target)[6:] == ["y"]


def commit(parts: Parts, reader: Credentials, group: str, topic: str, offset: int) -> None:
    """A group of the reader has read what comes before the offset."""
    config = client_config(parts.settings, reader)
    config |= {"group.id": f"{group_prefix(reader.username)}{group}", "enable.auto.commit": False}
    consumer = Consumer(config)
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_it_begins_where_the_last_reader_was(
    parts: Parts, topics: RefillTopics, source: str
) -> None:
    write(parts, source, *"abc", ms=NOW_MS - 60_000)
    write(parts, source, *"defgh")
    first, second = parts.new_reader(source), parts.new_reader(source)
    before = {source: NOW - timedelta(seconds=1)}

    def start(*readers: Credentials) -> int:
        moved = {source: {each.username for each in readers}}
        return topics.starts(moved, before)[source]

    assert start(first) == 3, "without an offset, by the time"
    assert start() == 3
    commit(parts, first, "one", source, 7)
    commit(parts, first, "two", source, 5)
    assert start(first) == 5, "the group that is furthest behind"
    commit(parts, second, "one", source, 8)
    assert (start(second), start(first, second)) == (8, 5)
    late = parts.new_reader(source)
    assert start(first, late) == 3, "one has committed nothing"
    commit(parts, late, "one", source, 1)
    assert start(first, late) == 1
    # A commit for another topic says nothing.
    other = parts.new_topic()
    assert topics.starts({other: {first.username}}, {other: NOW})[other] == 0


def test_after_the_newest_it_begins_at_the_end(
    parts: Parts, topics: RefillTopics, source: str
) -> None:
    write(parts, source, *"abc", ms=NOW_MS - 60_000)
    assert topics.starts({source: set()}, {source: NOW}) == {source: 3}


def test_what_retention_has_deleted_is_passed_over(
    parts: Parts, topics: RefillTopics, source: str, target: str
) -> None:
    write(parts, source, *"abcd")
    futures = parts.admins.changes.delete_records([TopicPartition(source, 0, 2)])
    for future in futures.values():
        future.result(10)
    refill(topics, target, {source: 0})
    assert read(parts, target) == ["c", "d"]


def test_several_targets_share_a_source(
    parts: Parts, topics: RefillTopics, source: str, target: str
) -> None:
    other = parts.new_topic()
    write(parts, source, *"abcd")
    topics.begin(target, {source: 2})
    run(topics, target)
    # The other one begins further back.
    topics.begin(other, {source: 1})
    write(parts, source, "e")
    run(topics, target, other)
    assert (read(parts, target), read(parts, other)) == (list("cde"), list("bcde"))
    topics.end(target)
    write(parts, source, "f")
    run(topics, other)
    assert (read(parts, target), read(parts, other)) == (list("cde"), list("bcdef"))


def test_a_result_that_the_run_writes_to_both_is_not_copied(
    parts: Parts, topics: RefillTopics, source: str, target: str
) -> None:
    topics.begin(target, {source: 0})
    for value in "abcdefgh":
        write(parts, source, value)
        write(parts, target, value)
        topics.copy({target: takes_one})
    run(topics, target)
    assert read(parts, target) == list("abcdefgh")


def test_a_topic_that_is_gone_is_an_error_that_can_be_tried_again(
    parts: Parts, topics: RefillTopics, source: str, target: str
) -> None:
    with pytest.raises(Unavailable):
        topics.begin(target, {"out.nowhere.00": 0})
    with pytest.raises(Unavailable):
        topics.begin("out.nowhere.01", {source: 0})
    assert topics.copy({}) == {}
    other = parts.new_topic()
    topics.begin(target, {source: 0})
    topics.begin(other, {source: 0})
    parts.topics.delete([other])
    write(parts, source, "a")
    failures: dict[str, Unavailable] = {}

    def step() -> bool:
        begun = {target: takes_one} | ({} if failures else {other: takes_one})
        failures.update(topics.copy(begun))
        return bool(failures) and read(parts, target) == ["a"]

    until(step, "one fails, and the other one goes on")
    assert failures.keys() == {other}

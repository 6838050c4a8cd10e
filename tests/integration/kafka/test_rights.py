"""What a subscriber and a sender can do with Kafka, and what they cannot."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from catalog.topics import out_pattern
from secadmin.kafka.acl import group_prefix
from secadmin.kafka.principals import Credentials
from secadmin.kafka.topics import TopicSpec
from tests.integration.kafka.clients import (
    DENIED_CLUSTER,
    DENIED_GROUP,
    DENIED_TOPIC,
    DENIED_TRANSACTION,
    client_config,
    fetch_directly,
    produce_one,
    reader,
    secadmin_producer,
    until,
    write,
)
from tests.integration.kafka.conftest import Parts


@pytest.fixture
def topic(parts: Parts) -> str:
    name = parts.new_topic()
    write(secadmin_producer(parts.settings), name, ["one", "two"])
    return name


def test_a_subscriber_reads_its_topic_with_its_own_group(parts: Parts, topic: str) -> None:
    with reader(parts.settings, parts.new_reader(topic)) as own:
        own.consumer.subscribe([topic])
        own.read_until(lambda: own.values == ["one", "two"], "both records")
        own.consumer.commit(asynchronous=False)


def test_a_pattern_finds_what_the_subscriber_may_read(parts: Parts) -> None:
    output = f"o{secrets.token_hex(6)}"
    mine, other = f"out.{output}.a", f"out.{output}.b"
    parts.topics.create([TopicSpec(mine), TopicSpec(other)])
    producer = secadmin_producer(parts.settings)
    write(producer, mine, ["mine"])
    write(producer, other, ["other"])
    with reader(parts.settings, parts.new_reader(mine)) as own:
        own.consumer.subscribe([out_pattern(output)])
        own.read_until(lambda: own.values, "a record")
        assert [place.topic for place in own.consumer.assignment()] == [mine]
    assert own.values == ["mine"]


def test_a_subscriber_cannot_use_the_group_of_another(parts: Parts, topic: str) -> None:
    other = parts.new_reader(topic)
    group = group_prefix(other.username) + "main"
    with reader(parts.settings, parts.new_reader(topic), group) as thief:
        thief.consumer.subscribe([topic])
        thief.expect_error(DENIED_GROUP)


def test_a_bare_fetch_of_the_own_topic_is_let_in(parts: Parts, topic: str, tmp_path: Path) -> None:
    """So that the refusals below are refusals of the topic."""
    assert not fetch_directly(parts.settings, parts.new_reader(topic), topic, tmp_path).came_back(1)


@pytest.mark.parametrize("prefix", ["out.o", "lab.", "in.", "quarantine."])
def test_a_subscriber_cannot_read_other_topics(
    parts: Parts, topic: str, prefix: str, tmp_path: Path
) -> None:
    credentials, other = parts.new_reader(topic), parts.new_topic(prefix)
    with pytest.raises(ValueError, match=f"error {DENIED_TOPIC}"):
        fetch_directly(parts.settings, credentials, other, tmp_path).came_back(10)
    with reader(parts.settings, credentials) as thief:
        assert other not in thief.consumer.list_topics(timeout=10).topics


def test_a_subscriber_cannot_read_the_offsets_of_others(
    parts: Parts, topic: str, tmp_path: Path
) -> None:
    credentials = parts.new_reader(topic)
    with reader(parts.settings, credentials) as own:
        own.consumer.subscribe([topic])
        own.read_until(lambda: own.values, "a record")
        own.consumer.commit(asynchronous=False)
    with pytest.raises(ValueError, match=f"error {DENIED_TOPIC}"):
        fetch_directly(parts.settings, credentials, "__consumer_offsets", tmp_path).came_back(10)


@pytest.mark.parametrize("name", ["out.mine.all", "in.mine", "anything"])
def test_a_subscriber_cannot_create_topics(parts: Parts, topic: str, name: str) -> None:
    thief = AdminClient(client_config(parts.settings, parts.new_reader(topic)))
    created = thief.create_topics([NewTopic(name, 1, 1)])
    with pytest.raises(KafkaException) as caught:
        created[name].result(10)
    assert caught.value.args[0].code() == DENIED_TOPIC


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_subscriber_cannot_write(parts: Parts, topic: str, idempotent: bool) -> None:
    credentials = parts.new_reader(topic)
    error = produce_one(parts.settings, credentials, topic, idempotent=idempotent)
    assert error == (DENIED_CLUSTER if idempotent else DENIED_TOPIC)
    assert parts.topics.end_offsets([topic]) == {topic: {0: 2}}


def test_a_sender_writes_and_cannot_read(parts: Parts) -> None:
    """Idempotent producers need WRITE on a topic, and nothing on the cluster."""
    topic = parts.new_topic("in.")
    sender = parts.new_writer(topic)
    assert produce_one(parts.settings, sender, topic) is None
    with reader(parts.settings, sender) as thief:
        thief.consumer.assign([TopicPartition(topic, 0, 0)])
        thief.expect_error(DENIED_TOPIC)


@pytest.mark.parametrize("prefix", ["in.", "lab.", "out.o", "quarantine."])
def test_a_sender_cannot_write_other_topics(parts: Parts, prefix: str) -> None:
    other = parts.new_topic(prefix)
    error = produce_one(parts.settings, parts.new_writer(parts.new_topic("in.")), other)
    assert error == DENIED_TOPIC
    assert parts.topics.end_offsets([other]) == {other: {0: 0}}


def test_a_sender_that_lost_its_topic_cannot_write(parts: Parts) -> None:
    topic = parts.new_topic("in.")
    sender = parts.new_writer(topic)
    parts.access.withdraw(topic, [sender.username])
    assert produce_one(parts.settings, sender, topic) in {DENIED_TOPIC, DENIED_CLUSTER}
    assert parts.topics.end_offsets([topic]) == {topic: {0: 0}}


def test_a_sender_is_not_told_of_anothers_topic(parts: Parts) -> None:
    own, other = parts.new_topic("in."), parts.new_topic("in.")
    sender = parts.new_writer(own)
    parts.new_writer(other)
    with reader(parts.settings, sender) as thief:
        topics = thief.consumer.list_topics(timeout=10).topics
        assert own in topics and other not in topics
        with pytest.raises(KafkaException) as caught:
            thief.consumer.get_watermark_offsets(TopicPartition(other, 0), timeout=5)
        unknown = {KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC}
        assert caught.value.args[0].code() in {DENIED_TOPIC, *unknown}


def transactional(
    parts: Parts, sender: Credentials, prefix: str, timeout_ms: int = 60_000
) -> Producer:
    config = client_config(parts.settings, sender)
    own = {"transactional.id": f"{prefix}app", "transaction.timeout.ms": timeout_ms}
    return Producer({**config, **own})


def test_a_sender_writes_in_transactions_of_its_own(parts: Parts) -> None:
    topic = parts.new_topic("in.")
    sender, other = parts.new_writer(topic), parts.new_writer(parts.new_topic("in."))
    producer = transactional(parts, sender, group_prefix(sender.username))
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "x")
    producer.commit_transaction(30)
    # With the marker of the transaction's end, which comes a moment later.
    until(lambda: parts.topics.end_offsets([topic]) == {topic: {0: 2}}, "the end is written")
    for prefix in (group_prefix(other.username), sender.username, ""):
        with pytest.raises(KafkaException) as caught:
            transactional(parts, sender, prefix).init_transactions(10)
        assert caught.value.args[0].code() == DENIED_TRANSACTION


def test_a_transaction_lasts_a_minute_at_most(parts: Parts) -> None:
    sender = parts.new_writer(parts.new_topic("in."))
    producer = transactional(parts, sender, group_prefix(sender.username), 60_001)
    with pytest.raises(KafkaException) as caught:
        producer.init_transactions(30)
    assert caught.value.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT


def test_a_transaction_that_is_open_when_the_topic_is_taken_is_not_committed(parts: Parts) -> None:
    topic = parts.new_topic("in.")
    sender = parts.new_writer(topic)
    producer = transactional(parts, sender, group_prefix(sender.username))
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "x")
    assert producer.flush(10) == 0
    parts.access.withdraw(topic, [sender.username])
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(10)
    assert caught.value.args[0].code() == DENIED_TRANSACTION
    with pytest.raises(KafkaException):
        transactional(parts, sender, group_prefix(sender.username)).init_transactions(10)
    assert parts.topics.end_offsets([topic]) == {topic: {0: 1}}

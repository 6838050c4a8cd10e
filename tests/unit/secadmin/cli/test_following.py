"""What a group has read, with the library's own consumer and the broker that it has for tests."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from catalog.topics import ID_HEADER
from secadmin.cli.kafka.following import OWN_SETTINGS, Follower, Limits
from secadmin.cli.kafka.login_check import LoginCheck

TOPIC = "out.alerts.c1"


@pytest.fixture
def producer() -> Producer:
    """It has the broker in it, which lives as long as it does."""
    return Producer({"test.mock.num.brokers": 1, "log_level": 0})


def _settings(producer: Producer) -> dict[str, str | int]:
    [broker] = producer.list_topics(timeout=60).brokers.values()
    return {
        "bootstrap.servers": f"{broker.host}:{broker.port}",
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }


def _follower() -> Follower:
    return Follower(None, LoginCheck(lambda: False), pytest.fail)


def test_a_repeated_result_is_given_once(producer: Producer) -> None:
    came = [("1", "a"), ("1", "b"), ("1", "a"), ("2", "a"), ("2", "a"), ("1", "a"), ("3", "c")]
    settings = _settings(producer)
    for value, id_ in came:
        producer.produce(TOPIC, value, partition=0, headers={ID_HEADER: id_})
    assert producer.flush(60) == 0
    consumer = Consumer({**settings, **OWN_SETTINGS})
    records = _follower().records(consumer, TOPIC, Limits(most=5, idle_s=60))
    given = [(record["value"], record[ID_HEADER]) for record in records]
    consumer.close()
    # The updates of one row have one id: one that takes a former value again is no repeat.
    assert given == [(1, "a"), (1, "b"), (2, "a"), (1, "a"), (3, "c")]


def test_a_group_goes_on_behind_what_was_shown(producer: Producer) -> None:
    settings = _settings(producer)
    for value in ("1", "2", "3"):
        producer.produce(TOPIC, value, partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({**settings, **OWN_SETTINGS})
    records = _follower().records(consumer, TOPIC, Limits(idle_s=60))
    assert [next(records)["value"], next(records)["value"]] == [1, 2]
    records.close()
    consumer.close()
    asking = Consumer(settings)
    [read] = asking.committed([TopicPartition(TOPIC, 0)], timeout=60)
    asking.close()
    assert read.offset == 1

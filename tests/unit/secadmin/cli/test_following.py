"""What a group has read, with the library's own consumer and the broker that it has for tests."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from secadmin.cli.following import OWN_SETTINGS, Follower, Limits
from secadmin.cli.login_check import LoginCheck

TOPIC = "out.alerts.c1"


def test_a_group_goes_on_behind_what_was_shown() -> None:
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = producer.list_topics(timeout=60).brokers.values()
    for value in ("1", "2", "3"):
        producer.produce(TOPIC, value, partition=0)
    assert producer.flush(60) == 0
    settings = {
        "bootstrap.servers": f"{broker.host}:{broker.port}",
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "log_level": 0,
    }
    consumer = Consumer({**settings, **OWN_SETTINGS})
    follower = Follower(None, LoginCheck(lambda: False), pytest.fail)
    records = follower.records(consumer, TOPIC, Limits(idle_s=60))
    assert [next(records)["value"], next(records)["value"]] == [1, 2]
    records.close()
    consumer.close()
    asking = Consumer(settings)
    [read] = asking.committed([TopicPartition(TOPIC, 0)], timeout=60)
    asking.close()
    assert read.offset == 1

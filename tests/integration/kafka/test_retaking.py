"""A right that goes just while a partition is assigned, and comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from secadmin.cli.kafka.following import OWN_SETTINGS, Follower, Limits
from secadmin.cli.kafka.login_check import LoginCheck
from secadmin.cli.kafka.positions import Positions
from secadmin.kafka.acl import group_prefix, read_acls
from secadmin.kafka.principals import Credentials
from tests.integration.kafka.clients import client_config, secadmin_producer, write
from tests.integration.kafka.conftest import Parts

_PATIENCE_S = 60.0


class Deprived(Consumer):
    """Loses its topic when it is assigned it for the first time, before it has asked for more."""

    def __init__(self, parts: Parts, reader: Credentials, topic: str) -> None:
        self._parts, self._reader, self._topic = parts, reader, topic
        self.deprived = False
        own = {
            **OWN_SETTINGS,
            "group.id": group_prefix(reader.username) + "main",
            "auto.offset.reset": "earliest",
            # Long, so that nothing but ourselves takes the topic up again.
            "topic.metadata.refresh.interval.ms": 300_000,
            "log_level": 0,
        }
        super().__init__(client_config(parts.settings, reader) | own)

    def subscribe(  # type: ignore[override]
        self, topics: list[str], on_assign: Any = None
    ) -> None:
        def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            if not self.deprived:
                self.deprived = True
                self._parts.acls.revoke_topics({self._topic: [self._reader.username]})
            if on_assign:
                on_assign(consumer, partitions)

        super().subscribe(topics, on_assign=assigned)


@pytest.mark.parametrize(
    "positions",
    [None, Positions(from_end=False), Positions(from_end=True)],
    ids=["group", "beginning", "end"],
)
def test_it_goes_on_when_the_right_is_back(parts: Parts, positions: Positions | None) -> None:
    topic = parts.new_topic()
    reader = parts.new_reader(topic)
    producer = secadmin_producer(parts.settings)
    write(producer, topic, [json.dumps("before")])
    told: list[str] = []

    def write_more() -> bool:
        """Not refused; what has begun at the end may have begun behind the record before."""
        write(producer, topic, [json.dumps("after")])
        return False

    def note(text: str) -> None:
        """It has been told that the topic was denied: the right comes back."""
        told.append(text)
        parts.acls.grant(read_acls(reader.username, topic))
        write_more()

    consumer = Deprived(parts, reader, topic)
    try:
        follower = Follower(positions, LoginCheck(write_more), note)
        records = follower.records(consumer, topic, Limits(most=1, idle_s=_PATIENCE_S))
        assert [record["value"] for record in records] in (["before"], ["after"])
    finally:
        consumer.close()
    assert consumer.deprived
    assert told == ["what you may read has changed; following"]

"""Parked records on a real broker: each is moved once, whatever ends in between."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from secadmin.kafka.parked import Moved, Parked, ParkedTopics
from secadmin.kafka.topics import TopicSpec
from tests.integration.kafka.conftest import Parts

PARTITIONS = 2
WAIT_S = 0.2
TURNS = 200


@dataclass
class Lane:
    """The topics of one stream, and what was decided about its parked records."""

    parts: Parts
    stream: str = field(default_factory=lambda: f"s{secrets.token_hex(6)}")
    decided: list[Parked] = field(default_factory=list)
    fails: bool = False

    @property
    def topic(self) -> str:
        return f"in.{self.stream}.back"

    def park(self, *records: tuple[int, int, int], sender: str = "1") -> None:
        """Park records: (partition, offset, value)."""
        settings = self.parts.settings
        producer = Producer({**settings.client_config(settings.secadmin), "acks": "all"})
        for partition, offset, value in records:
            headers: list[tuple[str, str | bytes | None]] = [
                ("timestamp", b"17"),
                ("sender", sender.encode()),
                ("partition", str(partition).encode()),
                ("offset", str(offset).encode()),
                ("roles", b"doctor"),
            ]
            producer.produce(
                f"parked.{self.stream}", str(value), "k", partition=partition, headers=headers
            )
        assert producer.flush(10) == 0

    def tick(self, partition: int, value: str) -> None:
        """Park a tick."""
        settings = self.parts.settings
        producer = Producer(settings.client_config(settings.secadmin))
        headers: list[tuple[str, str | bytes | None]] = [("timestamp", b"99")]
        producer.produce(f"parked.{self.stream}", value, partition=partition, headers=headers)
        assert producer.flush(10) == 0

    def decide(self, records: Sequence[Parked]) -> Sequence[Moved]:
        own = [record for record in records if record.stream == self.stream]
        if self.fails and own:
            raise RuntimeError("the database is away")
        self.decided += own
        return [
            Moved(self.topic, each.partition, each.key, each.value, (("from", b"parked"),))
            for each in own
        ]

    def move_until(self, count: int, topics: ParkedTopics) -> None:
        """Move until so many records were decided about."""
        for _ in range(TURNS):
            topics.move(self.decide, WAIT_S)
            if len(self.decided) >= count:
                return
        raise AssertionError(f"{len(self.decided)} of {count} records")

    def moved(self) -> list[list[str]]:
        """The values that are in each partition, as a reader of committed records sees them."""
        settings = self.parts.settings
        consumer = Consumer(
            {
                **settings.client_config(settings.secadmin),
                "group.id": "test",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        found: list[list[str]] = []
        for partition in range(PARTITIONS):
            consumer.assign([TopicPartition(self.topic, partition, 0)])
            values = []
            while (message := consumer.poll(10)) is not None and not message.error():
                values.append((message.value() or b"").decode())
            found.append(values)
        consumer.close()
        return found


@pytest.fixture
def lane(parts: Parts) -> Lane:
    made = Lane(parts)
    parts.topics.create(
        [TopicSpec(f"parked.{made.stream}", PARTITIONS), TopicSpec(made.topic, PARTITIONS)]
    )
    return made


@pytest.fixture
def topics(parts: Parts) -> Iterator[ParkedTopics]:
    made = ParkedTopics(parts.settings)
    yield made
    made.close()


def test_records_keep_their_partition_and_order_and_come_once(
    lane: Lane, parts: Parts, topics: ParkedTopics
) -> None:
    lane.park((0, 1, 10), (0, 2, 11), (1, 1, 20), (0, 5, 12))
    lane.move_until(4, topics)
    # Ingest has crashed, and parks again what it had parked, and then more.
    lane.park((0, 2, 11), (0, 5, 12), (0, 6, 13), (1, 1, 20))
    lane.park((0, 2, 90), sender="2")
    lane.tick(1, "tick")
    lane.move_until(7, topics)
    assert lane.moved() == [["10", "11", "12", "13", "90"], ["20", "tick"]]
    assert [each.roles for each in lane.decided[-3:]].count(None) == 1

    # The next service knows what this one has seen.
    topics.close()
    following = ParkedTopics(parts.settings)
    lane.park((0, 6, 13), (1, 1, 20), (0, 7, 14))
    lane.move_until(8, following)
    following.close()
    assert lane.moved() == [["10", "11", "12", "13", "90", "14"], ["20", "tick"]]


def test_what_was_not_decided_is_read_again(lane: Lane, parts: Parts) -> None:
    lane.park((0, 1, 10), (1, 1, 20))
    lane.fails = True
    first = ParkedTopics(parts.settings)
    with pytest.raises(RuntimeError, match="the database is away"):
        lane.move_until(1, first)
    first.close()
    assert lane.moved() == [[], []]
    lane.fails = False
    second = ParkedTopics(parts.settings)
    lane.move_until(2, second)
    second.close()
    assert lane.moved() == [["10"], ["20"]]


@pytest.mark.long
def test_two_services_share_the_work(lane: Lane, parts: Parts) -> None:
    both = [ParkedTopics(parts.settings) for _ in range(2)]
    numbers = range(40)
    for turn in range(TURNS):
        if turn < len(numbers):
            lane.park((turn % PARTITIONS, turn, turn))
        for each in both:
            each.move(lane.decide, WAIT_S / 4)
        if len(lane.decided) >= len(numbers) and turn >= len(numbers):
            break
    for each in both:
        each.close()
    wanted = [[str(n) for n in numbers if n % PARTITIONS == p] for p in range(PARTITIONS)]
    assert lane.moved() == wanted

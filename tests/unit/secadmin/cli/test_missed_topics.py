"""When a consumer subscribes again, because a topic that it may read is not assigned to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from secadmin.cli.kafka.missed_topics import MissedTopics

_PATTERN = r"^out\.alerts\..*"
_OWN, _NEW, _OTHER = "out.alerts.a", "out.alerts.b", "out.weather.a"
_LOOK_S = 5


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Consumer:
    """Knows which topics may be read, and has a part of them."""

    readable: set[str]
    assigned: set[str]
    subscribed: int = 0
    away: bool = False
    looks: list[float] = field(default_factory=list)

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(topic, 0) for topic in self.assigned]

    def list_topics(self, timeout: float) -> Any:
        self.looks.append(timeout)
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        topics = {name: SimpleNamespace(error=None, partitions={0: 0}) for name in self.readable}
        topics["out.alerts.denied"] = SimpleNamespace(
            error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), partitions={}
        )
        return SimpleNamespace(topics=topics)

    def subscribe(self) -> None:
        self.subscribed += 1


def _tries(consumer: Consumer, seconds: int, subscription: str = _PATTERN) -> list[int]:
    """After how many seconds it subscribed again."""
    clock = Clock()
    missed = MissedTopics(_LOOK_S, clock)
    found = []
    for second in range(1, seconds + 1):
        clock.now += 1
        before = consumer.subscribed
        missed.serve(consumer, subscription, consumer.subscribe)
        found += [second] * (consumer.subscribed - before)
    return found


def test_what_is_assigned_is_not_missed() -> None:
    consumer = Consumer({_OWN, _NEW, _OTHER}, {_OWN, _NEW})
    assert _tries(consumer, 100) == []
    assert len(consumer.looks) == 100 // _LOOK_S


@pytest.mark.parametrize("subscription", [_PATTERN, _NEW])
def test_a_topic_that_is_missed_for_two_looks_is_subscribed_again(subscription: str) -> None:
    tries = _tries(Consumer({_OWN, _NEW, _OTHER}, {_OWN}), 100, subscription)
    # Another member may have it: so each try waits twice as long.
    assert tries == [10, 20, 40, 80]


def test_the_wait_has_an_end() -> None:
    tries = _tries(Consumer({_NEW}, set()), 5_000)
    assert tries[-1] - tries[-2] == 600


def test_a_topic_that_is_gone_is_forgotten() -> None:
    clock, consumer = Clock(), Consumer({_NEW}, set())
    missed = MissedTopics(_LOOK_S, clock)
    for _ in range(3):
        for readable in ({_NEW}, set[str]()):
            clock.now += _LOOK_S
            consumer.readable = readable
            missed.serve(consumer, _PATTERN, consumer.subscribe)
    assert consumer.subscribed == 0


def test_a_broker_that_does_not_answer_is_no_reason() -> None:
    assert _tries(Consumer({_NEW}, set(), away=True), 100) == []

"""The producer of fence records: what it refuses, and when another one takes its place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import KafkaError, KafkaException

from catalog.errors import Unavailable
from catalog.settings import KafkaAccount, KafkaSettings
from secadmin.kafka import fence_writer
from secadmin.kafka.fence_writer import FenceWriter, Partition
from secadmin.kafka.wire.connection import BrokerAddress
from tests.waiting import wait_until

ACCOUNT = KafkaAccount("secadmin", Path("/nonexistent"))
SETTINGS = KafkaSettings("everyone:1", Path("/nonexistent"), ACCOUNT, ACCOUNT, ACCOUNT, ACCOUNT)
FIRST, SECOND, THIRD = (BrokerAddress(f"node-{n}", 1) for n in (1, 2, 3))
STAMPS = {Partition("out.o.a", 0): 1}


class Record:
    """What a producer reports of a record that all replicas have."""

    def offset(self) -> int:
        return 7


@dataclass
class FakeProducer:
    """Acknowledges each record when it is polled; or takes none, or never acknowledges one."""

    bootstrap: str
    refusal: Exception | None = None
    failure: KafkaError | None = None
    waiting: list[Callable[..., None]] = field(default_factory=list)

    def produce(self, *_given: object, on_delivery: Callable[..., None], **_more: object) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.waiting.append(on_delivery)

    def poll(self, timeout: float) -> None:
        Event().wait(min(timeout, 0.01))
        while self.waiting:
            self.waiting.pop()(self.failure, Record())


@dataclass
class World:
    """A writer, and the producers that it has made."""

    made: list[FakeProducer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.threads = threading.active_count()
        self.writer = FenceWriter(SETTINGS)

    @property
    def bootstraps(self) -> list[str]:
        return [each.bootstrap for each in self.made]

    def write(self, *brokers: BrokerAddress) -> int:
        (offset,) = self.writer.write(STAMPS, brokers).values()
        return offset


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made: list[FakeProducer] = []

    def producer(settings: KafkaSettings) -> FakeProducer:
        made.append(FakeProducer(settings.bootstrap))
        return made[-1]

    monkeypatch.setattr(fence_writer, "fence_producer", producer)
    world = World(made)
    yield world
    world.writer.close()


@pytest.mark.parametrize(
    "error", [KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC)), BufferError("queue full")]
)
def test_a_record_that_is_not_taken(error: Exception, world: World) -> None:
    world.made[0].refusal = error
    with pytest.raises(Unavailable, match=r"cannot write the fence to the topic out\.o\.a"):
        world.write(FIRST)


def test_one_producer_serves_while_the_same_brokers_may_be_asked(world: World) -> None:
    assert world.write(FIRST, SECOND) == 7
    assert world.write(SECOND, FIRST) == 7
    assert world.write(FIRST, SECOND, THIRD) == 7
    assert world.bootstraps == ["everyone:1"]


def test_a_broker_that_may_not_be_asked_is_known_to_no_producer(world: World) -> None:
    world.write(FIRST, SECOND)
    world.write(FIRST, SECOND, THIRD)
    world.write(SECOND, FIRST)
    assert world.bootstraps == ["everyone:1", "node-1:1,node-2:1"]
    # It is back, so the producer gets to know it; and it is away again.
    world.write(FIRST, SECOND, THIRD)
    world.write(SECOND, FIRST)
    assert world.bootstraps[2:] == ["node-1:1,node-2:1"]


def test_a_producer_that_has_failed_is_replaced(world: World) -> None:
    world.made[0].failure = KafkaError(KafkaError._MSG_TIMED_OUT)
    with pytest.raises(Unavailable):
        world.write(FIRST)
    assert world.write(FIRST) == 7
    assert world.bootstraps == ["everyone:1", "node-1:1"]
    wait_until(lambda: threading.active_count() == world.threads + 1, "the first one's thread ends")


def test_a_producer_without_room_is_kept(world: World) -> None:
    """Another one would take as much memory again."""
    world.made[0].refusal = BufferError("queue full")
    with pytest.raises(Unavailable):
        world.write(FIRST)
    world.made[0].refusal = None
    assert world.write(FIRST) == 7
    assert world.bootstraps == ["everyone:1"]

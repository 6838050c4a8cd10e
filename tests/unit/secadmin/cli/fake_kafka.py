"""A producer and a consumer without a broker, with the calls of confluent-kafka's that are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ClusterMetadata


@dataclass
class FakeProducer:
    """Acknowledges what `refuse` does not; its queue holds `room` records until it is polled.

    A record of more than `largest` bytes it does not even take, as the real one.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    refuse: Callable[[bytes], KafkaError | None] = lambda _: None
    room: int = 3
    largest: int = 1_000_000
    headers: dict[str, str] | None = None
    written: list[bytes] = field(default_factory=list)
    waiting: deque[tuple[bytes, Any]] = field(default_factory=deque)

    def produce(
        self, topic: str, value: bytes, on_delivery: Any, headers: dict[str, str] | None = None
    ) -> None:
        self.headers = headers
        if len(value) > self.largest:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if len(self.waiting) >= self.room:
            raise BufferError
        self.waiting.append((value, on_delivery))

    def poll(self, timeout: float) -> int:
        if timeout > 0 or len(self.waiting) >= self.room:
            self._deliver()
        return 0

    def flush(self, timeout: float) -> int:
        while self.waiting and timeout > 0:
            self._deliver()
        return len(self.waiting)

    def purge(self) -> None:
        self.waiting.clear()

    def _deliver(self) -> None:
        value, on_delivery = self.waiting.popleft()
        error = self.refuse(value)
        if error is None:
            self.written.append(value)
        on_delivery(error, None)


@dataclass
class FakeMessage:
    """A record, or an error in its place."""

    content: bytes | None = None
    marks: list[tuple[str, bytes]] = field(default_factory=list)
    failure: KafkaError | None = None
    at: int = 0
    name: bytes | None = None

    def key(self) -> bytes | None:
        return self.name

    def error(self) -> KafkaError | None:
        return self.failure

    def value(self) -> bytes | None:
        return self.content

    def headers(self) -> list[tuple[str, bytes]]:
        return self.marks

    def topic(self) -> str:
        return "out.alerts.c1"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at


@dataclass
class FakeConsumer:
    """Gives the messages one after the other, then nothing; a callable among them is called."""

    messages: deque[Any]
    settings: dict[str, Any] = field(default_factory=dict)
    subscribed: list[str] = field(default_factory=list)
    assigned: list[TopicPartition] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)
    unstorable: KafkaError | None = None
    closed: bool = False

    def subscribe(self, topics: list[str], on_assign: Any = None) -> None:
        self.subscribed = topics
        if on_assign:
            on_assign(self, [TopicPartition("out.alerts.c1", 0)])

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = partitions

    def assignment(self) -> list[TopicPartition]:
        return []

    def list_topics(self, timeout: float) -> ClusterMetadata:
        return ClusterMetadata()

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return partitions

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 3, 17

    def store_offsets(self, message: FakeMessage) -> None:
        if self.unstorable is not None:
            raise KafkaException(self.unstorable)
        assert message.failure is None
        self.stored.append(message.at)

    def poll(self, timeout: float) -> Any:
        message = self.messages.popleft() if self.messages else None
        return message() if callable(message) else message

    def close(self) -> None:
        self.closed = True

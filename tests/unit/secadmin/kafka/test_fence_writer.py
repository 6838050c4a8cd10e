"""Whatever the producer refuses at once is told as what can be tried again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import KafkaError, KafkaException

from catalog.errors import Unavailable
from catalog.settings import KafkaAccount, KafkaSettings
from secadmin.kafka import fence_writer
from secadmin.kafka.fence_writer import FenceWriter, Partition

ACCOUNT = KafkaAccount("secadmin", Path("/nonexistent"))
SETTINGS = KafkaSettings("localhost:1", Path("/nonexistent"), ACCOUNT, ACCOUNT, ACCOUNT, ACCOUNT)


@dataclass(frozen=True)
class Refusing:
    """A producer that takes no record."""

    error: Exception

    def produce(self, *_given: object, **_more: object) -> None:
        raise self.error

    def poll(self, timeout: float) -> None:
        Event().wait(min(timeout, 0.01))


@pytest.fixture
def writer(error: Exception, monkeypatch: pytest.MonkeyPatch) -> Iterator[FenceWriter]:
    monkeypatch.setattr(fence_writer, "fence_producer", lambda settings: Refusing(error))
    writer = FenceWriter(SETTINGS)
    yield writer
    writer.close()


@pytest.mark.parametrize(
    "error", [KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC)), BufferError("queue full")]
)
def test_a_record_that_is_not_taken(writer: FenceWriter) -> None:
    with pytest.raises(Unavailable, match=r"cannot write the fence to the topic out\.o\.a"):
        writer.write({Partition("out.o.a", 0): 1})

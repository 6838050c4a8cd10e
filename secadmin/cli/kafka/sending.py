"""Sending records to a topic and counting what the brokers acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from catalog.errors import PlatformError
from secadmin.cli.kafka.client_errors import is_ended, kafka_error

# If every record has the same error, it is shown only once.
_REASONS = 5


@dataclass
class Tally:
    """How many records were handed to the client, acknowledged, and refused."""

    sent: int = 0
    acked: int = 0
    failed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add_failure(self, reason: str) -> None:
        """Count a record that no broker acknowledged."""
        self.failed += 1
        if reason in self.reasons or len(self.reasons) < _REASONS:
            self.reasons[reason] += 1


class Sender:
    """Sends to one topic through a producer (`confluent_kafka.Producer`), counting in `tally`.

    Each record gets the `headers`, if there are any.
    """

    def __init__(self, topic: str, headers: Mapping[str, str] | None = None) -> None:
        self.tally = Tally()
        self._topic = topic
        self._more = {"headers": dict(headers)} if headers else {}
        self._producer: Any = None
        self._over: PlatformError | None = None

    def use(self, producer: Any) -> None:
        """The producer, made with `on_error` as its error callback."""
        self._producer = producer

    def on_error(self, error: KafkaError) -> None:
        """The producer's error callback. Errors that its retries can solve are ignored."""
        if is_ended(error) or error.fatal():
            self._over = kafka_error(error)

    def send(self, value: bytes) -> None:
        """Send one record. Wait while the client's queue is full. Count a refused record.

        Raises PlatformError when the access has ended.
        """
        while True:
            if self._over is not None:
                raise self._over
            try:
                self._producer.produce(
                    self._topic, value, on_delivery=self._delivered, **self._more
                )
                break
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                # The client itself refuses the record, as one that is too large for it.
                self.tally.add_failure(error.args[0].str())
                break
        self.tally.sent += 1
        self._producer.poll(0)

    def wait(self, seconds: float) -> int:
        """Wait for acknowledgements. Gives the number that is still missing. Raises as `send`."""
        left: int = self._producer.flush(seconds)
        if left and self._over is not None:
            raise self._over
        return left

    def give_up(self, seconds: float) -> None:
        """Wait once more. Then count the records without an acknowledgement as failed."""
        if self._producer.flush(seconds):
            self._producer.purge()
            self._producer.flush(1)

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        if error is None:
            self.tally.acked += 1
        else:
            self.tally.add_failure(error.str())

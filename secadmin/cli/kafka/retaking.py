"""Makes a consumer of librdkafka read partitions again that it gave up after a denial."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_PAUSE_S = 1.0


class Retaking:
    """Subscribes again, a moment after a partition was denied that has not been read from.

    When a member of a consumer group gets a partition, it asks for the group's offset there. If
    this request is denied, librdkafka reports it once and does not read the partition until it is
    assigned again, even if the right is back. From all other denials it recovers by itself.
    """

    def __init__(
        self, pause_s: float = _PAUSE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pause_s = pause_s
        self._clock = clock
        self._at: float | None = None

    def denied(self) -> None:
        """A topic was denied."""
        if self._at is None:
            self._at = self._clock() + self._pause_s

    def serve(self, consumer: Any, subscribe: Callable[[], object]) -> None:
        """Subscribe again when it is time, and needed. Raises KafkaException."""
        if self._at is None or self._clock() < self._at:
            return
        self._at = None
        # What has not been read since it was assigned has no position.
        if any(place.offset < 0 for place in consumer.position(consumer.assignment())):
            subscribe()

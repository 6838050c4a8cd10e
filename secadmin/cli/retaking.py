"""Takes up again what a consumer of librdkafka has left alone since a topic was denied to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_PAUSE_S = 1.0


class Retaking:
    """Subscribes again, a moment after a partition was denied that has not been read from.

    A consumer group's member asks where it had come to when it is assigned a partition. If just
    that question is denied, librdkafka says so once and leaves the partition alone until it is
    assigned again, also when the right is back. All other denials it gets over by itself.
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

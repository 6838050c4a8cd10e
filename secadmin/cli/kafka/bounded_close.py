"""Closes a Kafka client, but does not wait for ever."""

from __future__ import annotations

from threading import Thread
from typing import Any

_LIMIT_S = 10.0


def close(consumer: Any, limit_s: float = _LIMIT_S) -> None:
    """Close the consumer, and wait only a limited number of seconds.

    If a consumer has just lost its rights, librdkafka sometimes never returns from closing it. By
    then it has left its group, and its memory is freed when the process ends.
    """
    closing = Thread(target=consumer.close, name="close", daemon=True)
    closing.start()
    closing.join(limit_s)

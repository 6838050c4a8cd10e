"""Ends a Kafka client without waiting for one that never ends."""

from __future__ import annotations

from threading import Thread
from typing import Any

_LIMIT_S = 10.0


def close(consumer: Any, limit_s: float = _LIMIT_S) -> None:
    """Close the consumer, and wait for that so many seconds at the most.

    librdkafka at times never returns from closing a consumer whose rights have just gone. It has
    left its group by then, and what it still holds ends with the process.
    """
    closing = Thread(target=consumer.close, name="close", daemon=True)
    closing.start()
    closing.join(limit_s)

"""What moves a stream's time, and so decides which of its tuples are late."""

from __future__ import annotations

from enum import StrEnum


class TimeSource(StrEnum):
    """A choice for a stream, made when it is added."""

    BROKER = "broker"
    """The time at which the broker takes the records. Ingest refuses each record that is late."""
    DATA = "data"
    """The newest event time. Use it for files of old records."""

"""What moves a relation's time, and so decides which of its tuples are late."""

from __future__ import annotations

from enum import StrEnum


class TimeSource(StrEnum):
    """A choice for a stream, made when it is added. It decides for the outputs over it, too."""

    BROKER = "broker"
    """The time at which the broker takes the records, by ticks. Ingest refuses what is late."""
    DATA = "data"
    """The newest event time. Use it for files of old records."""

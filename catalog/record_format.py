"""The format of a stream's records, which its senders write and ingest reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Format(StrEnum):
    """The format of a record."""

    JSON = "json"


class TimeFormat(StrEnum):
    """How a time is written: ISO 8601 text with a zone, or a number counted from 1970 UTC."""

    ISO = "iso"
    EPOCH_S = "epoch_s"
    EPOCH_MS = "epoch_ms"
    EPOCH_US = "epoch_us"

    @property
    def micros(self) -> int:
        """The microseconds in one unit of an epoch format."""
        return {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}[self.value]


class UnknownFields(StrEnum):
    """What ingest does with a record that has a field which is not an attribute."""

    QUARANTINE = "quarantine"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """How the records of a stream are written. It never changes while the stream exists."""

    format: Format = Format.JSON
    times: TimeFormat = TimeFormat.ISO
    unknown_fields: UnknownFields = UnknownFields.QUARANTINE


# The format of a stream if nothing else is given.
USUAL = RecordFormat()

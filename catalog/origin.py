"""Origins: the record from which ingest made a tuple. It is the key in lab.<stream>."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WRITTEN = re.compile(rb"(\d{1,19}):(\d{1,10}):(\d{1,19})")


@dataclass(frozen=True, slots=True)
class Origin:
    """The record from which a tuple was made. A sender has one topic, so its id names the topic.

    Two senders may have records with equal partition and offset. These give two tuples.
    """

    sender: int
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.sender}:{self.partition}:{self.offset}"


def origin_of(key: bytes | str | None) -> Origin | None:
    """The origin in the key of a record, or None if the key has no valid origin."""
    written = _WRITTEN.fullmatch(key.encode() if isinstance(key, str) else key or b"")
    return Origin(*map(int, written.groups())) if written else None

"""Where a stream's tuple came from: the key of its record in lab.<stream>."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WRITTEN = re.compile(rb"(\d{1,19}):(\d{1,10}):(\d{1,19})")


@dataclass(frozen=True, slots=True)
class Origin:
    """The record that a tuple came from. A sender has one topic, so its id names the topic.

    Records of two senders at the same place of their topics are two tuples.
    """

    sender: int
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.sender}:{self.partition}:{self.offset}"


def origin_of(key: bytes | str | None) -> Origin | None:
    """The origin that a record's key says; None where it says none."""
    written = _WRITTEN.fullmatch(key.encode() if isinstance(key, str) else key or b"")
    return Origin(*map(int, written.groups())) if written else None

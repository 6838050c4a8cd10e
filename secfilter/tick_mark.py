"""Ticks in senders' topics: how ingest knows them from the records of senders.

A tick is a record that the ticker writes behind a sender's records, so that ingest reads it after
them (`secfilter.ticker`). It begins with a mark that only the engines can make. No sender can read
its topic, so no sender can learn the mark from a tick either.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TickMark:
    """The mark of all ticks, and the value of the ticks that belong to one start of a query.

    A query that has started again meets ticks of its predecessor. They prove nothing, because the
    records before them may have been lost with the predecessor's producer.
    """

    mark: bytes = field(repr=False)
    life: str

    @property
    def value(self) -> bytes:
        """The value of a tick of this life."""
        return self.mark + self.life.encode()


def new_mark(key: str) -> TickMark:
    """The mark of all ticks under that key, with a life that no other query has."""
    mark = hmac.new(key.encode(), b"tick", hashlib.sha256).hexdigest().encode()
    return TickMark(mark, secrets.token_hex(16))

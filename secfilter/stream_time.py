"""The time of a stream, from the echoes of its ticks: pure logic without Kafka.

A tick is in a partition of a sender's topic behind the records that the broker took before it.
Ingest echoes it when it has handed all of these on. So the earliest of the newest echoes of all
partitions is a time T: the broker took everything that is still to come at T or later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_WRITTEN = re.compile(rb"([0-9a-f]{32}):(\d{1,19}):(\d{1,10}):(\d{1,19}):(\d{1,19})")

# The sender of the ticks of a stream that nobody can write. They go to `time.echo` directly.
NO_SENDER = 0
# A partition of a sender's topic: the sender's id, and the number of the partition.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Echo:
    """An echoed tick: its life, where it was, and when the broker took it (ms since 1970)."""

    life: str
    sender: int
    partition: int
    offset: int
    time_ms: int


def echo_of(value: bytes | None) -> Echo | None:
    """The echo in a record of `time.echo`, or None if there is none."""
    written = _WRITTEN.fullmatch(value or b"")
    if written is None:
        return None
    life, *numbers = written.groups()
    return Echo(life.decode(), *map(int, numbers))


def without_sender(life: str) -> bytes:
    """The tick of a stream that nobody can write. The broker's record has its time and offset."""
    return f"{life}:{NO_SENDER}:0:0:0".encode()


@dataclass
class StreamTime:
    """What the echoes of one stream say."""

    heard: dict[Place, Echo] = field(default_factory=dict)
    # Senders whose topics hold more than records, so that gaps between ticks tell nothing.
    silent: frozenset[int] = frozenset({NO_SENDER})
    # Whether a record was between two ticks since `take_busy` was last asked.
    _busy: bool = True

    def hear(self, echo: Echo) -> None:
        """Take an echo. One that comes again changes nothing."""
        place = echo.sender, echo.partition
        before = self.heard.get(place)
        if before is None or echo.offset > before.offset:
            followed = before is not None and echo.offset == before.offset + 1
            self._busy = self._busy or not (followed or echo.sender in self.silent)
            self.heard[place] = echo

    def time_ms(self, places: Iterable[Place]) -> int | None:
        """T, or None if there is no echo from one of the places, or if there is no place."""
        echoes = [self.heard.get(place) for place in places]
        times = [echo.time_ms for echo in echoes if echo is not None]
        return min(times) if times and len(times) == len(echoes) else None

    def has_heard(self, places: Iterable[Place], offsets: Mapping[Place, int]) -> bool:
        """Whether in each of the places the tick with that offset was echoed, or a later one."""
        return all(
            place in offsets and place in self.heard and self.heard[place].offset >= offsets[place]
            for place in places
        )

    def take_busy(self) -> bool:
        """Whether there were records between ticks since this was last asked."""
        busy, self._busy = self._busy, False
        return busy


def next_wait_s(wait_s: float, shortest_s: float, longest_s: float, *, busy: bool) -> float:
    """How long to wait with the next tick, if the last wait was `wait_s`.

    Each tick costs two batches of each query that keeps state. So a quiet stream gets fewer ticks.
    """
    return shortest_s if busy else min(2 * wait_s, longest_s)

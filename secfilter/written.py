"""Says which echoes of ticks count: those behind which all is in Kafka.

A task hands a tick's echo to its producer behind the records before the tick. But the echo goes to
another topic, so it may be there before they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from secfilter.kafka_options import Offsets
from secfilter.stream_time import Echo, Place

# So many echoes of one partition wait at most. If there are more, time stands still for longer.
_MOST = 256


class Written(Protocol):
    """Knows what a query's tasks have written."""

    def counting(self, echoes: Iterable[Echo]) -> list[Echo]:
        """The echoes that may count now, of these and of those that came before."""

    def holds(self) -> bool:
        """Whether all is in Kafka that was handed on before the echoes that count."""


@dataclass(frozen=True, slots=True)
class ByFlush:
    """For a query whose producer is in this process.

    `write_out` waits until the producer has written all that it has, and returns whether nothing
    was refused.
    """

    write_out: Callable[[], bool]

    def counting(self, echoes: Iterable[Echo]) -> list[Echo]:
        """All of them: `holds` makes sure of what was before them."""
        return list(echoes)

    def holds(self) -> bool:
        """See `Written`."""
        return self.write_out()


@dataclass(frozen=True, slots=True)
class ByCommit:
    """For a query whose producers are in other processes.

    A task ends only when its producer has written all that the task handed on. So all before a tick
    is written once the batch with the tick is committed. `topics` are those of the senders (or
    sources) by which echoes go, and `committed` gives the query's committed offsets in them.
    """

    topics: Mapping[int, str]
    committed: Callable[[], Offsets]
    _waiting: dict[Place, deque[Echo]] = field(default_factory=dict)

    def counting(self, echoes: Iterable[Echo]) -> list[Echo]:
        """Those whose ticks are committed. What no task echoed counts at once."""
        passed = []
        for echo in echoes:
            if echo.sender in self.topics:
                place = echo.sender, echo.partition
                self._waiting.setdefault(place, deque(maxlen=_MOST)).append(echo)
            else:
                passed.append(echo)
        if any(self._waiting.values()):
            ends = self.committed()
            for (sender, partition), waiting in self._waiting.items():
                end = ends.get(self.topics[sender], {}).get(str(partition), -1)
                while waiting and waiting[0].offset < end:
                    passed.append(waiting.popleft())
        return passed

    def holds(self) -> bool:
        """See `Written`."""
        return True

"""What may reach whom: the oracle of the random revocations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock


@dataclass(frozen=True, slots=True)
class Reception:
    """A number that a client got, and when (monotonic seconds)."""

    topic: str
    number: int
    at: float


@dataclass(frozen=True, slots=True)
class Closure:
    """From the return of the call that took a topic to the beginning of the one that gave it."""

    since: float
    until: float = math.inf


class Ledger:
    """Which principal had lost which topic, from when to when."""

    def __init__(self) -> None:
        self._closures: dict[tuple[str, str], list[Closure]] = defaultdict(list)
        self._lock = Lock()

    def taken(self) -> set[str]:
        """The topics that somebody has lost."""
        with self._lock:
            return {topic for _, topic in self._closures}

    def lost(self, principal: str, topic: str, at: float) -> None:
        """A call that took the topic has returned."""
        with self._lock:
            self._closures[principal, topic].append(Closure(at))

    def regained(self, principal: str, topic: str, at: float) -> None:
        """A call that gives the topic begins."""
        with self._lock:
            own = self._closures[principal, topic]
            own[:] = [Closure(old.since, min(old.until, at)) for old in own]

    def leaks(
        self,
        principal: str,
        received: Iterable[Reception],
        started: Mapping[str, Sequence[float]],
    ) -> list[Reception]:
        """What was written after the loss, and arrived before it was given again.

        What arrives later is history, which is judged when it is read.
        """
        with self._lock:
            closures = {pair: tuple(found) for pair, found in self._closures.items()}
        return [
            one
            for one in received
            for closure in closures.get((principal, one.topic), ())
            if started[one.topic][one.number] > closure.since and one.at < closure.until
        ]

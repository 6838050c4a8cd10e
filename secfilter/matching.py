"""The matches of an event pattern over labelled rows (MATCH_RECOGNIZE; 003 §3).

This module needs no Spark. `secfilter.match` runs it over micro-batches.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from secfilter.match_partition import Found, Partition, PatternRules
from secfilter.match_results import MatchTexts
from secfilter.moving_window import Arrival, HeldLimits, Words, united

# A state outlives the program that wrote it. So a state of another form gets another number.
_FORM = 2
# A way takes about as much memory as a text of so many characters.
_WAY = 100
_TIME, _ORDER = attrgetter("time"), attrgetter("time", "lineage")


@dataclass(frozen=True, slots=True)
class MatchResult:
    """A result as it is sent: the time of its match (µs), its lineage, its text and label."""

    time: int
    lineage: str
    row: str
    label: Words


@dataclass
class Matching:
    """The rows that wait for their time, and the partitions.

    `absent` is the label of all that must not be there (SEQ with NOT). What is beyond the limits is
    not taken. `withheld` counts it, and the attempts that had too many ways.
    """

    rules: PatternRules
    texts: MatchTexts
    absent: Words
    limits: HeldLimits
    withheld: int = 0
    _done: int | None = None
    _size: int = 0
    _characters: int = 0
    _waiting: list[Arrival] = field(default_factory=list)
    _partitions: dict[str, Partition] = field(default_factory=dict)

    @property
    def more_characters(self) -> int:
        """How much its open attempts hold: about, in characters."""
        return sum(each.ways for each in self._partitions.values()) * _WAY

    def begin_batch(self) -> None:
        """Count what this batch leaves out, and nothing before."""
        self.withheld = 0

    def take(self, arrivals: Iterable[Arrival]) -> None:
        """Take rows in any order. A row whose time is over is withheld."""
        for each in arrivals:
            longer = self._characters + each.characters
            too_much = self._size >= self.limits.tuples or longer > self.limits.characters
            is_over = self._done is not None and each.time <= self._done
            if too_much or is_over:
                self.withheld += 1
                continue
            self._count(each, 1)
            self._waiting.append(each)

    def _count(self, each: Arrival, sign: int) -> None:
        self._size += sign
        self._characters += sign * each.characters

    def until(self, time: int) -> Iterator[MatchResult]:
        """The matches that are certain when no row up to `time` comes any more."""
        self._waiting.sort(key=_ORDER)
        ready = bisect_right(self._waiting, time, key=_TIME)
        now, self._waiting = self._waiting[:ready], self._waiting[ready:]
        for each in now:
            yield from self._in(each.partition, row=each)
        for name, partition in list(self._partitions.items()):
            if partition.deadline is not None and partition.deadline <= time:
                yield from self._in(name, until=time)
        self._done = time if self._done is None else max(self._done, time)

    def _in(self, name: str, row: Arrival | None = None, until: int = 0) -> Iterator[MatchResult]:
        """Let a partition go on with a row or with time, and count what it let go of."""
        partition = self._partitions.get(name) or Partition(self.rules)
        self._partitions[name] = partition
        size, characters = len(partition.rows), partition.characters
        given_up = partition.given_up
        if row is None:
            found = partition.pass_time(until)
        else:
            found = partition.add(self.texts.row(row))
            size, characters = size + 1, characters + row.characters
        for each in found:
            yield from self._results(each)
        self._size += len(partition.rows) - size
        self._characters += partition.characters - characters
        self.withheld += partition.given_up - given_up
        if partition.is_empty:
            del self._partitions[name]

    def _results(self, found: Found) -> Iterator[MatchResult]:
        """The results of a match. All have its label: each row tells that the others are there."""
        first, last = found.rows[0].arrival, found.rows[-1].arrival
        label = united((found.label, self.absent)) if self.absent else found.label
        for number, text in enumerate(self.texts.texts(found)):
            lineage = first.lineage if self.texts.shown is None else f"{first.lineage}+{number}"
            yield MatchResult(last.time, lineage, text, label)

    def next_time(self) -> int | None:
        """The next time at which something changes without a further row, or None."""
        times = [each.deadline for each in self._partitions.values()]
        waiting = map(_TIME, self._waiting)
        return min((each for each in (*times, *waiting) if each is not None), default=None)

    def to_text(self) -> str:
        """The state, with the version of its form."""
        waiting = [each.as_list() for each in sorted(self._waiting, key=_ORDER)]
        partitions = [
            [name, [row.arrival.as_list() for row in each.rows], each.state()]
            for name, each in sorted(self._partitions.items())
        ]
        state = {
            "form": _FORM,
            "done": self._done,
            "waiting": waiting,
            "partitions": partitions,
        }
        return json.dumps(state, separators=(",", ":"))

    def restore(self, text: str) -> None:
        """Go on with a state that `to_text` gave. Raises ValueError for another form."""
        state: dict[str, Any] = json.loads(text)
        if state.get("form") != _FORM:
            raise ValueError("the state of a pattern has another form")
        self._done = state["done"]
        for values in state["waiting"]:
            each = Arrival.from_list(values)
            self._count(each, 1)
            self._waiting.append(each)
        for name, rows, kept in state["partitions"]:
            arrivals = [Arrival.from_list(values) for values in rows]
            for each in arrivals:
                self._count(each, 1)
            partition = Partition(self.rules)
            partition.restore([self.texts.row(each) for each in arrivals], kept)
            self._partitions[name] = partition

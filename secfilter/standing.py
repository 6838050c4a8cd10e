"""Who gets the rows that stand, and when (upserts).

The rows that stand are those of all groups that are there at an instant. Who begins to read upserts
later gets them first, so that it has the row of each group, and then the changes. It gets them
again before its topic drops them.

This module needs no Spark. What decides here is who reads, and how long topics are kept. No tuple
does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from catalog.label import PUBLIC, Label
from catalog.runs import QueryRun

# Before every instant.
_EARLIEST = -(2**62)
_ALL_CLASSES = "views"
# A query that has lost its state goes on within this time.
_QUERIES_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Receiver:
    """A class, or a query that reads the output. Nothing else ever gets its name.

    It gets the rows that stand at its beginning, and again each `every_ms` if that is not None. A
    query is also told when it has all of them, because it cannot begin with a part. `reader` is the
    id of its output.
    """

    name: str
    topics: tuple[str, ...]
    every_ms: int | None
    reader: int | None = None


@dataclass(frozen=True, slots=True)
class Receivers:
    """All who read the upserts of a run.

    `grow` says that others may come. So the relation is asked at each tick of its sources. `mark`
    is the label of what tells a query that it has all rows. It is no row, but who reads it leaves
    out what has no label. `words` are those of the mark in the layout of the run.
    """

    every: tuple[Receiver, ...]
    grow: bool
    mark: Label = PUBLIC
    words: tuple[int, ...] = ()

    def due(self, given: Mapping[str, int], now_ms: int) -> tuple[Receiver, ...]:
        """Those that get the rows that stand now.

        `given` says when each of them got them the last time, in milliseconds since 1970.
        """
        return tuple(each for each in self.every if _is_due(each, given.get(each.name), now_ms))

    def given(self, before: Mapping[str, int], now_ms: int) -> Mapping[str, int]:
        """When each of them got the rows, after those that are due get them now."""
        due = {each.name for each in self.due(before, now_ms)}
        names = (each.name for each in self.every)
        return {name: now_ms if name in due else before[name] for name in names}


def _is_due(receiver: Receiver, last_ms: int | None, now_ms: int) -> bool:
    if last_ms is None:
        return True
    return receiver.every_ms is not None and now_ms - last_ms >= receiver.every_ms


def receivers_of(run: QueryRun) -> Receivers | None:
    """Who gets the rows that stand of this run. None if it gives none.

    It gives none if the data moves its time. The rows would have a time that hidden tuples decide.
    """
    if not (run.output.keys and run.output.by_ticks):
        return None
    # Every query that may read the output may read what has one source category alone.
    mark = Label.of(*run.sources.categories()[:1])
    return Receivers((*_receivers(run),), run.viewers is None, mark)


def _receivers(run: QueryRun) -> Iterator[Receiver]:
    if run.viewers is not None:
        # A new class has a relation of its own, which begins with it.
        kept_ms = min(output.kept_ms for output in run.outputs)
        yield Receiver(_ALL_CLASSES, tuple(each.topic for each in run.viewers), _half(kept_ms))
        return
    for output in run.outputs:
        for each in output.classes:
            yield Receiver(each.topic, (each.topic,), _half(output.kept_ms))
        for reader in sorted(output.readers):
            topic = output.relation.topic
            yield Receiver(f"{topic} {reader}", (topic,), _QUERIES_MS, reader)


def _half(kept_ms: int) -> int | None:
    """How often rows come again, so that a topic that is kept for so long always has them."""
    return kept_ms // 2 if kept_ms > 0 else None


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of a relation with what is to be known before it is read.

    `given` is that of `Receivers`. `following` is the next instant (µs since 1970) at which
    something changes, or None.
    """

    relation: str | None = None
    given: Mapping[str, int] = field(default_factory=dict)
    following: int | None = _EARLIEST

    @classmethod
    def of(cls, text: str | None) -> Kept:
        """What `text` gave. The state of an older version is a relation alone."""
        if text is None or "\n" not in text:
            return cls(text)
        head, _, relation = text.partition("\n")
        known = json.loads(head)
        return cls(relation, known["given"], known["following"])

    def text(self) -> str:
        """The state as one text."""
        head = json.dumps({"given": dict(self.given), "following": self.following})
        return f"{head}\n{self.relation or ''}"

    def changes_by(self, time: int) -> bool:
        """Whether something changes up to this instant, also if no tuple comes."""
        return self.following is not None and self.following <= time

"""Relations: a query can read a stream or an output of another query."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from catalog.schema import Schema
from catalog.time_source import TimeSource
from catalog.topics import lab_topic

MAX_INDEPENDENT = 64
"""How many independent senders a stream can have: an aggregate keeps a bit for each."""


class RelationKind(StrEnum):
    """Where a relation's tuples come from."""

    STREAM = "stream"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class DeclaredAggregate:
    """The one aggregate through which READ AGGREGATE shows a stream.

    It is part of the stream's definition and never changes. It has tumbling windows of `window_ms`
    and exactly the keys `keys`. It uses any of `functions` (names of the allow-list) on plain
    attributes. A group needs tuples of at least `minimum` independent senders, and of as many of
    them a value of each attribute that is used. `source` and `aggregated` are category bits.

    A query that did not read the stream from its first tuple has `since_ms` (since 1970 UTC). It
    may have missed tuples of windows that begin before that time.
    """

    window_ms: int
    keys: tuple[str, ...]
    functions: tuple[str, ...]
    minimum: int
    source: int
    aggregated: int
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class Relation:
    """A stream or an output as a query sees it. None of this changes while it exists.

    `event_time` is the name of the TIMESTAMP attribute that windows use, or None. `lateness_ms` is
    how far a tuple may lag behind the relation's time, which `time` moves. `public` says that
    tuples may carry the empty label. Tuples of a public stream carry no other label. The reach of a
    relation is not part of it, because it can change (`catalog.reaches`). `conflict_classes` are
    the ids of the conflict classes whose companies its tuples carry, in the order of a level.
    `keys` names the key of the tuples of an output that gives upserts (`catalog.upserts`). Of all
    else it is empty.
    """

    object_id: int
    name: str
    kind: RelationKind
    schema: Schema
    event_time: str | None
    lateness_ms: int
    public: bool = False
    declared: DeclaredAggregate | None = None
    time: TimeSource = TimeSource.DATA
    conflict_classes: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def by_ticks(self) -> bool:
        """Whether ticks in the relation's lab topic move its time."""
        return self.time is TimeSource.BROKER and self.event_time is not None

    @property
    def topic(self) -> str:
        """The topic that holds the relation's labelled tuples."""
        return lab_topic(self.name)

"""Relations: what a query can read, a source stream or an output of another query."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from catalog.schema import Schema
from catalog.topics import lab_topic


class RelationKind(StrEnum):
    """Where a relation's tuples come from."""

    STREAM = "stream"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class DeclaredAggregate:
    """The one aggregate through which READ AGGREGATE reads a stream (DESIGN, the one rule).

    It is part of the stream's definition and never changes: tumbling windows of `window_ms`,
    grouped by exactly `keys`, any of `functions` (names of the allow-list) over plain attributes,
    for groups of at least `minimum` tuples, and as many values of each attribute that goes in.
    `source` and `aggregated` are category bits.

    A query that did not see the stream from its first tuple has `since_ms` (since 1970 UTC): of the
    windows that begin before, it may have missed something.
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

    `event_time` names the TIMESTAMP attribute that windows go by, or None; `lateness_ms` is how far
    a tuple may lag behind the newest one (the watermark); `public` tells that tuples may carry the
    empty label (a public stream's carry no other). Which categories a tuple can carry is not part
    of it: that can change, and is looked up (`catalog.reaches`).
    """

    object_id: int
    name: str
    kind: RelationKind
    schema: Schema
    event_time: str | None
    lateness_ms: int
    public: bool = False
    declared: DeclaredAggregate | None = None

    @property
    def topic(self) -> str:
        """The topic that holds the relation's labelled tuples."""
        return lab_topic(self.name)

"""Resolves the names of streams in a query text, for tests with streams of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.errors import NotFound
from catalog.record_format import TimeFormat
from catalog.relation import Relation


@dataclass(frozen=True, slots=True)
class NamedStreams:
    """These streams, and no others. Their records write times as ISO texts."""

    streams: Mapping[str, Relation]

    def relation(self, name: str) -> Relation:
        """The stream of that name. Raises NotFound."""
        if name not in self.streams:
            raise NotFound(name)
        return self.streams[name]

    def time_format(self, name: str) -> TimeFormat:
        """How the records of the stream write times."""
        return TimeFormat.ISO

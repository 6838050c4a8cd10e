"""The ingest group: the streams that one ingest query serves, and columns with their values.

A group may have fifty streams. With one expression for each stream, planning would take seconds for
each batch. But most streams share their schema with others. So there is one expression for each
kind of stream, and simple values of a stream are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as fn

from catalog.label_rule import LabelRule
from catalog.level_rule import LevelRule
from catalog.record_format import RecordFormat
from catalog.runs import IngestStream, Sender
from catalog.schema import Schema

# The numbers of the record's sender, stream and kind in the group, or NULL if it has none.
SENDER, STREAM, KIND = "__sender", "__stream", "__kind"
_NOTHING = -1


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a stream. The same expressions read and check the records of one kind."""

    number: int
    schema: Schema
    event_time: str | None
    written: RecordFormat
    rule: LabelRule | None = None
    level_rule: LevelRule | None = None


@dataclass(frozen=True, slots=True)
class StreamGroup:
    """One stream or more, their kinds, and all their senders."""

    streams: tuple[IngestStream, ...]
    kinds: tuple[Kind, ...]
    kind_numbers: tuple[int, ...]
    senders: tuple[Sender, ...]
    stream_numbers: tuple[int, ...]

    @classmethod
    def of(cls, streams: Sequence[IngestStream]) -> StreamGroup:
        """The group of these streams."""
        described = [
            (s.relation.schema, s.relation.event_time, s.record_format, s.rule, s.level_rule)
            for s in streams
        ]
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(described))}
        kinds = tuple(Kind(number, *kind) for kind, number in numbers.items())
        each = [(sender, number) for number, s in enumerate(streams) for sender in s.senders]
        return cls(
            tuple(streams),
            kinds,
            tuple(numbers[kind] for kind in described),
            tuple(sender for sender, _ in each),
            tuple(number for _, number in each),
        )

    @property
    def ruled(self) -> bool:
        """Whether a stream has a label rule. Only then the headers of records are read."""
        return any(stream.rule is not None for stream in self.streams)

    @property
    def levelled(self) -> bool:
        """Whether a stream has a level rule."""
        return any(stream.level_rule is not None for stream in self.streams)

    @property
    def floored(self) -> bool:
        """Whether a sender has a floor."""
        return any(sender.floor.bits for sender in self.senders)

    def sender(self, topic: Column) -> Column:
        """The value of the column `SENDER` for a record of that topic."""
        pairs = [
            fn.lit(part)
            for number, sender in enumerate(self.senders)
            for part in (sender.topic, number)
        ]
        return fn.try_element_at(fn.create_map(*pairs), topic)

    def stream(self) -> Column:
        """The value of the column `STREAM`."""
        return _looked_up(self.stream_numbers, SENDER)

    def kind(self) -> Column:
        """The value of the column `KIND`."""
        return _looked_up(self.kind_numbers, STREAM)

    def sender_id(self) -> Column:
        """The id of the record's sender, as text."""
        return _looked_up([str(sender.id) for sender in self.senders], SENDER)

    def each(self, value: Callable[[IngestStream], int | str | Column]) -> Column:
        """The value of the record's stream."""
        return _looked_up([value(stream) for stream in self.streams], STREAM)

    def of_kind(self, value: Callable[[Kind], str | Column]) -> Column:
        """The value of the record's kind.

        Only literals are allowed: they need no generated code.
        """
        values = fn.array(*(fn.lit(value(kind)) for kind in self.kinds))
        return fn.get(values, fn.col(KIND))

    def by_partition(self, values: Callable[[Sender], Mapping[int, int]]) -> Column:
        """The value of the record's sender and partition, or NULL or -1 if there is none."""
        found = [values(sender) for sender in self.senders]
        lists = [[of.get(p, _NOTHING) for p in range(max(of, default=0) + 1)] for of in found]
        # Write all of them as one text, because there are many numbers.
        rows = ",".join(f"array({','.join(f'{value}L' for value in row)})" for row in lists)
        return fn.get(fn.get(fn.expr(f"array({rows})"), fn.col(SENDER)), fn.col("partition"))

    def by_kind(self, rule: Callable[[Kind], Column]) -> Column:
        """The result of the rule for the record's kind."""
        first, *others = self.kinds
        result = fn.when(is_kind(first), rule(first))
        for kind in others:
            result = result.when(is_kind(kind), rule(kind))
        return result


def is_kind(kind: Kind) -> Column:
    """Whether the record's stream is of that kind."""
    return fn.col(KIND) == fn.lit(kind.number)


def _looked_up(values: Sequence[int | str | Column], by: str) -> Column:
    return fn.get(fn.array(*(fn.lit(value) for value in values)), fn.col(by))

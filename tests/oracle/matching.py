"""Matches of a pattern, by trying all ways one after the other, straight from catalog/SPEC.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from catalog.label import Label
from catalog.pattern import (
    Pattern,
    PatternChoice,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
    Reading,
    SkipTo,
)
from catalog.plan import Match
from catalog.schema import Attribute, AttributeType, Schema, Type
from tests.oracle.aggregates import aggregate
from tests.oracle.expressions import evaluate
from tests.oracle.labels import united
from tests.oracle.types import type_of
from tests.oracle.values import Row, Tuple, Value

# The variables of the rows of a match, the first row first.
Mapped = tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """The rows of a partition in their order, and when each happened."""

    schema: Schema
    tuples: Sequence[Tuple]
    times: Sequence[datetime]

    def value(self, reading: Reading, number: int) -> Value:
        """The value of a reading's argument in a row. For count(*) it is something."""
        if reading.argument is None:
            return True
        return evaluate(reading.argument, Row(self.schema, self.tuples[number].values))


def reading_type(reading: Reading, schema: Schema) -> AttributeType:
    """The type of a reading."""
    if reading.function == "classifier":
        return Type.STRING
    if reading.argument is None or reading.function == "count":
        return Type.BIGINT
    return Type.DOUBLE if reading.function == "avg" else type_of(reading.argument, schema)


def matches(
    node: Match,
    partitions: Mapping[tuple[Value, ...], Rows],
    absent: Label,
    watermark: datetime | None,
) -> Iterator[Tuple]:
    """The matches of all partitions. `absent` is the label of all that must not be there."""
    for key, rows in partitions.items():
        for start, mapped, label in _counted(node, rows, watermark):
            last = rows.times[start + len(mapped) - 1]
            told = united([label, absent])
            for length in range(1, len(mapped) + 1):
                so_far = mapped[:length]
                values = [
                    _read(node, rows, start, mapped if each.final else so_far, each)
                    for each in node.measures
                ]
                if node.per_row:
                    own = rows.tuples[start + length - 1].values
                    yield Tuple((last, *own, *values), told)
                elif so_far == mapped:
                    yield Tuple((last, *key, *values), told)


@dataclass
class _Attempt:
    """Tries all ways that begin at one row. `looked` is the last row at which one was tried."""

    node: Match
    rows: Rows
    start: int
    # At how many rows the pattern can be tried, and whether others may still come in time.
    known: int
    goes_on: bool
    looked: int = field(default=-1)
    waits: bool = False

    def first(self) -> Mapped | None:
        """The way that is preferred to all others."""
        return next(self._ways(self.node.pattern, ()), None)

    def _ways(self, pattern: Pattern, mapped: Mapped) -> Iterator[Mapped]:
        match pattern:
            case PatternVariable(name):
                if self._fits((*mapped, name)):
                    yield (*mapped, name)
            case PatternSequence(()):
                yield mapped
            case PatternSequence((part, *rest)):
                for way in self._ways(part, mapped):
                    yield from self._ways(PatternSequence(tuple(rest)), way)
            case PatternChoice(parts):
                for part in parts:
                    yield from self._ways(part, mapped)
            case PatternRepeat():
                yield from self._repeated(pattern, mapped, 0)

    def _repeated(self, node: PatternRepeat, mapped: Mapped, times: int) -> Iterator[Mapped]:
        enough = times >= node.least
        if enough and not node.greedy:
            yield mapped
        if node.most is None or times < node.most:
            for way in self._ways(node.part, mapped):
                yield from self._repeated(node, way, times + 1)
        if enough and node.greedy:
            yield mapped

    def _fits(self, mapped: Mapped) -> bool:
        """Whether the last row of this way fulfils the condition of its variable."""
        number = self.start + len(mapped) - 1
        within = timedelta(milliseconds=self.node.within_ms)
        if number >= self.known:
            self.waits = self.waits or self.goes_on
            return False
        if self.rows.times[number] > self.rows.times[self.start] + within:
            return False
        self.looked = max(self.looked, number)
        for definition in self.node.definitions:
            if definition.variable == mapped[-1]:
                row = _row_with_readings(self.node, self.rows, self.start, mapped)
                return evaluate(definition.condition, row) is True
        return True


def _row_with_readings(node: Match, rows: Rows, start: int, mapped: Mapped) -> Row:
    """The current row, and the values of the readings there."""
    schema = Schema(
        (
            *rows.schema.attributes,
            *(Attribute(r.name, reading_type(r, rows.schema)) for r in node.readings),
        )
    )
    number = start + len(mapped) - 1
    values = rows.tuples[number].values
    readings = [_read(node, rows, start, mapped, each) for each in node.readings]
    return Row(schema, (*values, *readings))


def _moved(node: Match, rows: Rows, number: int, reading: Reading) -> Value:
    """The value in the row to which a reading goes from a row (PREV, NEXT)."""
    other = number + reading.moved
    if not 0 <= other < len(rows.times):
        return None
    apart = abs(rows.times[other] - rows.times[number])
    return None if apart > _within(node) else rows.value(reading, other)


def _read(node: Match, rows: Rows, start: int, mapped: Mapped, reading: Reading) -> Value:
    """A reading at the last of the rows that are mapped."""
    if reading.function == "classifier":
        return mapped[-1]
    numbers = [
        start + place for place, name in enumerate(mapped) if reading.variable in (None, name)
    ]
    if reading.function not in {"first", "last"}:
        return aggregate(reading.function, [rows.value(reading, each) for each in numbers])
    if reading.function == "last":
        numbers.reverse()
    of = numbers[reading.offset :]
    return _moved(node, rows, of[0], reading) if of else None


def _within(node: Match) -> timedelta:
    return timedelta(milliseconds=node.within_ms)


def _ahead(node: Match) -> int:
    """How many rows behind a row NEXT may read."""
    return max((each.moved for each in (*node.readings, *node.measures)), default=0)


def _counted(
    node: Match, rows: Rows, watermark: datetime | None
) -> Iterator[tuple[int, Mapped, Label]]:
    """The matches that count, and the label of each."""
    within = _within(node)
    known = _tried(node, rows, watermark)
    in_order = node.skip.to is not SkipTo.NEXT_ROW
    next_start, reached, around = 0, -1, Label()
    for start in range(known):
        end = rows.times[start] + within
        waits = known < len(rows.times) and rows.times[known] <= end
        goes_on = watermark is not None and (waits or end >= watermark)
        attempt = _Attempt(node, rows, start, known, goes_on)
        mapped = attempt.first()
        if attempt.waits:
            if in_order:
                return
            continue
        label = _label(node, rows, attempt)
        if in_order:
            around = united([around, label]) if start <= reached else label
            reached, label = max(reached, attempt.looked), around
        if mapped is not None and start >= next_start:
            yield start, mapped, label
            next_start = _behind(node, start, mapped)


def _tried(node: Match, rows: Rows, watermark: datetime | None) -> int:
    """At how many rows the pattern can be tried: those behind which NEXT finds all it may read."""
    if watermark is None:
        return len(rows.times)
    known = [time for time in rows.times if time < watermark]
    complete = [time for time in known if time + _within(node) < watermark]
    return max(len(known) - max(_ahead(node), 0), len(complete))


def _label(node: Match, rows: Rows, attempt: _Attempt) -> Label:
    """The labels of the rows that were looked at, and of those that PREV and NEXT may read."""
    back = max((-each.moved for each in (*node.readings, *node.measures)), default=0)
    oldest = rows.times[attempt.start] - _within(node)
    newest = rows.times[attempt.looked] + _within(node)
    first, last = attempt.start - max(back, 0), attempt.looked + max(_ahead(node), 0)
    numbers = range(max(0, first), min(last + 1, len(rows.times)))
    return united(rows.tuples[n].label for n in numbers if oldest <= rows.times[n] <= newest)


def _behind(node: Match, start: int, mapped: Mapped) -> int:
    """The first row at which the next match may begin."""
    match node.skip.to:
        case SkipTo.NEXT_ROW:
            return start + 1
        case SkipTo.PAST_LAST_ROW:
            return start + len(mapped)
    places = [place for place, name in enumerate(mapped) if name == node.skip.variable]
    place = 0 if not places else places[0] if node.skip.to is SkipTo.FIRST else places[-1]
    return start + max(place, 1)


def partitions(
    given: Sequence[Tuple],
    schema: Schema,
    time: Callable[[Tuple], datetime | None],
    key: Callable[[Tuple], tuple[Value, ...]],
) -> dict[tuple[Value, ...], Rows]:
    """The rows of each partition, in the order of their times."""
    timed = [(at, each) for each in given if (at := time(each)) is not None]
    found: dict[tuple[Value, ...], list[tuple[datetime, Tuple]]] = {}
    for at, each in sorted(timed, key=lambda pair: pair[0]):
        found.setdefault(key(each), []).append((at, each))
    return {
        name: Rows(schema, [each for _, each in several], [at for at, _ in several])
        for name, several in found.items()
    }

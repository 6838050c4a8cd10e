"""Rows of a changing relation with their places in an order: the first ones, and neighbours."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Any

from catalog.schema import AttributeType
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.moving_groups import (
    BEHIND,
    Labelled,
    Partition,
    Replaced,
    name_of,
    partitions_of,
)
from secfilter.moving_rows import Row, Tuples
from secfilter.moving_values import value_of
from secfilter.moving_window import Words, united


@total_ordering
@dataclass(frozen=True, slots=True)
class _Descending:
    """A value of which the largest comes first."""

    value: Any

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)


@dataclass(frozen=True, slots=True)
class RankRules:
    """How rows are ordered, and what is shown of them.

    The arguments of a row are the texts of `partition` values, those of the `order` (the type of
    each, and whether it descends), and those of the neighbours. `offsets` has how far back each
    neighbour is. `shown` has the places of the results: those of a row's own `width` values, then
    its number, then its neighbours.
    """

    width: int
    partition: int
    order: tuple[tuple[AttributeType, bool], ...]
    offsets: tuple[int, ...]
    limit: int | None
    by_place: bool
    shown: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A row, with what orders it and the texts that its neighbours show."""

    key: tuple[Any, ...]
    row: Row
    shares: Sequence[str]


@dataclass
class Ranks:
    """The rows of each partition in their order."""

    rules: RankRules
    found: dict[str, list[_Placed]] = field(default_factory=dict)

    def apply(self, left: Collection[Row], came: Collection[Row]) -> Iterator[Replaced]:
        """Note rows that leave and come. Gives the rows whose place or neighbours change."""
        changed: dict[str, tuple[list[_Placed], list[_Placed]]] = {}
        for place, rows in enumerate((left, came)):
            for row in rows:
                name, placed = self._placed(row)
                changed.setdefault(name, ([], []))[place].append(placed)
        for name, (gone, there) in sorted(changed.items(), key=lambda item: item[0]):
            old = self.found.get(name, [])
            new = self._changed(old, gone, there)
            if new:
                self.found[name] = new
            else:
                self.found.pop(name, None)
            if self.rules.by_place:
                yield from self._by_place(name, old, new)
            else:
                yield from self._by_neighbours(old, new, gone, there)

    def rows(self) -> Iterator[Labelled]:
        """All rows that are shown."""
        for several in self.found.values():
            for at, before in self._places(several):
                yield Labelled(self.text(several, at), self.label(several, at, before))

    def standing(self) -> Iterator[Replaced]:
        """All rows that are shown, as if something had changed each of them."""
        for name, several in self.found.items():
            if self.rules.by_place:
                yield from self._by_place(name, [], several)
            else:
                yield from self._by_neighbours([], several, (), several)

    def _places(self, rows: Sequence[_Placed]) -> Iterator[tuple[int, Words]]:
        """Each place that is shown, with the labels of the rows before it if it depends on them."""
        before: Words = ()
        for at in range(min(len(rows), self.rules.limit or len(rows))):
            yield at, before
            if self.rules.by_place:
                before = _joined(before, rows[at].row.label)

    def _placed(self, row: Row) -> tuple[str, _Placed]:
        """The name of the row's partition, and the row with its key."""
        rules = self.rules
        texts = row.arguments.split(SEPARATOR)
        name = SEPARATOR.join(texts[: rules.partition])
        behind = rules.partition + len(rules.order)
        parts: list[Any] = []
        for text, (kind, descends) in zip(
            texts[rules.partition : behind], rules.order, strict=True
        ):
            value = value_of(text, kind)
            part = (value is not None, 0 if value is None else value)
            parts.append(_Descending(part) if descends else part)
        # What is equal is in the order of time, and then of origin.
        for side, each in enumerate(row.tuples):
            if each is not None:
                parts.append((side, each.time, each.lineage))
        return name, _Placed((*parts,), row, texts[behind:])

    def _changed(
        self, old: list[_Placed], gone: Sequence[_Placed], there: Sequence[_Placed]
    ) -> list[_Placed]:
        new = old.copy()
        for each in gone:
            del new[_at(new, each)]
        for each in there:
            insort(new, each, key=_key)
        return new

    def _by_place(self, name: str, old: list[_Placed], new: list[_Placed]) -> Iterator[Replaced]:
        """The places that have other rows at them, before them or as neighbours."""
        before, now = _Walk(self, old), _Walk(self, new)
        same = True
        for at in range(max(before.length, now.length)):
            before.go_to(at)
            now.go_to(at)
            same = same and before.tuples[:1] == now.tuples[:1]
            if not same or before.tuples != now.tuples:
                yield Replaced(
                    place_key(name, at),
                    *(before.made(at), now.made(at)),
                    *(before.partitions(at), now.partitions(at)),
                )

    def _by_neighbours(
        self,
        old: list[_Placed],
        new: list[_Placed],
        gone: Sequence[_Placed],
        there: Sequence[_Placed],
    ) -> Iterator[Replaced]:
        """The rows that come or leave, and those that have other neighbours."""
        back, on = max(0, *self.rules.offsets, 0), max(0, *(-o for o in self.rules.offsets), 0)
        near: dict[tuple[Any, ...], _Placed] = {}
        for rows, several in ((old, gone), (new, there)):
            for each in several:
                at = _at(rows, each)
                near.update((_key(e), e) for e in rows[max(0, at - on) : at + back + 1])
        # A row that left may have been between two others, and one that came may be so now.
        for rows, several in ((new, gone), (old, there)):
            for each in several:
                at = bisect_left(rows, each.key, key=_key)
                near.update((_key(e), e) for e in rows[max(0, at - on) : at + back])
        for key in sorted(near):
            each = near[key]
            places = [_found(rows, each) for rows in (old, new)]
            involved = [
                [] if at is None else self.involved(rows, at)
                for rows, at in zip((old, new), places, strict=True)
            ]
            if [r.tuples for r in involved[0]] == [r.tuples for r in involved[1]]:
                continue
            made = [
                None if at is None else Labelled(self.text(rows, at), self.label(rows, at, ()))
                for rows, at in zip((old, new), places, strict=True)
            ]
            before, now = (
                frozenset(p for row in rows for p in partitions_of(row)) for rows in involved
            )
            yield Replaced(name_of(each.row.tuples), made[0], made[1], before, now)

    def _neighbours(self, rows: Sequence[_Placed], at: int) -> list[_Placed | None]:
        places = (at - offset for offset in self.rules.offsets)
        return [rows[place] if 0 <= place < len(rows) else None for place in places]

    def involved(self, rows: Sequence[_Placed], at: int) -> list[Row]:
        """The row at a place, and its neighbours."""
        others = self._neighbours(rows, at)
        return [rows[at].row, *(each.row for each in others if each is not None)]

    def label(self, rows: Sequence[_Placed], at: int, before: Words) -> Words:
        """The labels of the row at a place and its neighbours, and those that are before it."""
        labels = [each.label for each in self.involved(rows, at)]
        return united([*labels, before] if before else labels)

    def text(self, rows: Sequence[_Placed], at: int) -> str:
        """The text of the row at a place."""
        own = rows[at].row.text.split(SEPARATOR) if self.rules.width else []
        others = [
            NULL_MARK if each is None else each.shares[number]
            for number, each in enumerate(self._neighbours(rows, at))
        ]
        values = [*own, str(at + 1), *others]
        return SEPARATOR.join(values[place] for place in self.rules.shown)


@dataclass
class _Walk:
    """A walk through the rows of a partition that are shown, from the first one on.

    `tuples` are those of the row at the place, and of its neighbours.
    """

    ranks: Ranks
    rows: Sequence[_Placed]
    tuples: list[Tuples] = field(default_factory=list)
    _labels: Words = ()
    _before: set[Partition] = field(default_factory=set)
    _near: set[Partition] = field(default_factory=set)

    @property
    def length(self) -> int:
        """How many rows are shown."""
        return min(len(self.rows), self.ranks.rules.limit or len(self.rows))

    def go_to(self, at: int) -> None:
        """Go on to a place, which may be behind the last row."""
        involved = self.ranks.involved(self.rows, at) if at < self.length else []
        self.tuples = [row.tuples for row in involved]
        self._near = {each for row in involved for each in partitions_of(row)}
        if involved:
            self._before.update(partitions_of(involved[0]))
            self._labels = united([involved[0].label, *([self._labels] if self._labels else [])])

    def made(self, at: int) -> Labelled | None:
        """The row at the place, with the labels of all rows before it."""
        if at >= self.length:
            return None
        label = self.ranks.label(self.rows, at, self._labels)
        return Labelled(self.ranks.text(self.rows, at), label)

    def partitions(self, at: int) -> frozenset[Partition]:
        """The partitions of the row at the place, of those before it and of its neighbours."""
        return frozenset(self._before | self._near if at < self.length else ())


def place_key(partition: str, at: int) -> str:
    """The key of the row at a place of a partition."""
    return f"{partition}{BEHIND}{at:05}"


def _key(each: _Placed) -> tuple[Any, ...]:
    return each.key


def _at(rows: Sequence[_Placed], each: _Placed) -> int:
    """The place of a row that is there."""
    return bisect_left(rows, each.key, key=_key)


def _found(rows: Sequence[_Placed], each: _Placed) -> int | None:
    at = _at(rows, each)
    return at if at < len(rows) and rows[at].key == each.key else None


def _joined(before: Words, label: Words) -> Words:
    return united((before, label)) if before else label

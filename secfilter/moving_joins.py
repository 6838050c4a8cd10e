"""The rows of joins of moving windows, kept up to date by changes (+1, -1) of their sides.

A join notes the rows of both its sides by what it compares. A row that comes or goes on one side
makes pairs with the noted rows of the other one. Where a side keeps the rows that are in no pair,
the join counts the pairs of each of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from catalog.plan import JoinKind
from secfilter.moving_rows import Tuples
from secfilter.moving_window import Arrival, HeldLimits, Words, united
from secfilter.pair_values import Compute, Side


@dataclass(frozen=True, slots=True)
class Partial:
    """A row of a join, or of one of its sides, with what its tuples have.

    `size` is the length of the texts of its tuples.
    """

    tuples: Tuples
    sides: tuple[Side | None, ...]
    size: int
    absent: Words = ()


PartialChange = tuple[Partial, int]


class Rising(Exception):
    """A tuple would make more pairs than there may be."""


@dataclass(slots=True)
class Held:
    """How many pairs of equal rows there are in all joins, and how long their texts are."""

    limits: HeldLimits
    pairs: int = 0
    characters: int = 0

    def require(self, pairs: int, characters: int) -> None:
        """Raise Rising if so much more is too much."""
        if (
            self.pairs + pairs > self.limits.tuples
            or self.characters + characters > self.limits.characters
        ):
            raise Rising


@dataclass(slots=True)
class _Alike:
    """Rows of one side that are equal in what the join compares, each with its pairs' number."""

    rows: dict[Tuples, Partial] = field(default_factory=dict)
    pairs: dict[Tuples, int] = field(default_factory=dict)
    size: int = 0


@dataclass
class WindowSide:
    """A side of a join that is one window."""

    number: int
    read: Callable[[int, str], Side]
    reach: Words
    _next: Partial | None = None
    _held: dict[Arrival, Partial] = field(default_factory=dict)

    @property
    def windows(self) -> tuple[int, ...]:
        """Its window."""
        return (self.number,)

    def change(self, _side: int, each: Arrival, sign: int) -> Iterable[PartialChange]:
        """The tuple itself, if it passes."""
        if not each.passes:
            return ()
        if sign < 0:
            return ((self._held.pop(each), sign),)
        row = self._held[each] = self._partial(each)
        return ((row, sign),)

    def coming(self, _side: int, each: Arrival) -> Iterable[Partial]:
        """The tuple itself, if it passes."""
        return (self._partial(each),) if each.passes else ()

    def _partial(self, each: Arrival) -> Partial:
        """The tuple with its values, which are read once."""
        if self._next is None or self._next.tuples[0] is not each:
            side = self.read(self.number, each.arguments)
            self._next = Partial((each,), (side,), len(each.arguments))
        return self._next

    def growth(self, _side: int, _each: Arrival, _held: Held) -> tuple[int, int]:
        """No pairs."""
        return 0, 0


@dataclass
class JoinSide:
    """A join of two sides. `key` gives for each side what the join compares, None for nothing."""

    kind: JoinKind
    children: tuple[WindowSide | JoinSide, WindowSide | JoinSide]
    keys: tuple[Callable[[Partial], str | None], Callable[[Partial], str | None]]
    conditions: Sequence[Compute]
    filters: Sequence[Compute]
    held: Held
    constants: int = 0
    _alike: tuple[dict[str, _Alike], dict[str, _Alike]] = field(default_factory=lambda: ({}, {}))
    # Rows that compare nothing because of a NULL, of a side that keeps them.
    _without: tuple[dict[Tuples, Partial], dict[Tuples, Partial]] = field(
        default_factory=lambda: ({}, {})
    )

    def __post_init__(self) -> None:
        left, right = self.children
        self.windows: tuple[int, ...] = (*left.windows, *right.windows)
        self.reach: Words = united((left.reach, right.reach))
        self._keeps = (self.kind.keeps_left, self.kind.keeps_right)
        self.keeps: bool = any(
            (*self._keeps, *(c.keeps for c in self.children if isinstance(c, JoinSide)))
        )
        self._nothing: tuple[Tuples, Tuples] = (
            (None,) * len(left.windows),
            (None,) * len(right.windows),
        )

    def _child(self, window: int) -> int:
        return 0 if window in self.children[0].windows else 1

    def change(
        self, window: int, each: Arrival, sign: int, *, wanted: bool = True
    ) -> Iterator[PartialChange]:
        """The rows that come and go because a tuple comes or goes. They must all be read."""
        at = self._child(window)
        for row, own_sign in self.children[at].change(window, each, sign):
            yield from self._apply(at, row, own_sign, wanted=wanted)

    def _apply(self, at: int, row: Partial, sign: int, *, wanted: bool) -> Iterator[PartialChange]:
        key = self.keys[at](row)
        if key is None:
            if self._keeps[at]:
                self._note_without(at, row, sign)
                yield from self._lonely(at, row, sign)
            return
        mine, others = self._note(at, key, row, sign), self._alike[1 - at].get(key)
        if not wanted and not self.keeps:
            return
        found, keeps = 0, self._keeps[1 - at]
        for other in others.rows.values() if others else ():
            pair = self._pair(at, row, other)
            if pair is None:
                continue
            found += 1
            if self.kind is not JoinKind.ANTI and self._passes(pair):
                yield pair, sign
            if keeps and others is not None:
                pairs = others.pairs[other.tuples] + sign
                others.pairs[other.tuples] = pairs
                # The first partner comes, or the last one goes.
                if pairs == max(sign, 0):
                    yield from self._lonely(1 - at, other, -sign)
        if self._keeps[at]:
            if sign > 0:
                mine.pairs[row.tuples] = found
            if not found:
                yield from self._lonely(at, row, sign)

    def _note_without(self, at: int, row: Partial, sign: int) -> None:
        if sign > 0:
            self._without[at][row.tuples] = row
        else:
            del self._without[at][row.tuples]

    def _note(self, at: int, key: str, row: Partial, sign: int) -> _Alike:
        """Note a row that comes, or forget one that goes. Gives the rows that are like it."""
        others = self._alike[1 - at].get(key)
        if others is not None:
            pairs = len(others.rows)
            self.held.pairs += sign * pairs
            self.held.characters += sign * (pairs * (row.size + self.constants) + others.size)
        alike = self._alike[at].setdefault(key, _Alike())
        alike.size += sign * row.size
        if sign > 0:
            alike.rows[row.tuples] = row
        else:
            del alike.rows[row.tuples]
            alike.pairs.pop(row.tuples, None)
            if not alike.rows:
                del self._alike[at][key]
        return alike

    def _pair(self, at: int, row: Partial, other: Partial) -> Partial | None:
        """The pair of two rows, if its conditions are true."""
        left, right = (row, other) if at == 0 else (other, row)
        sides = left.sides + right.sides
        for test in self.conditions:
            if test(sides) is not True:
                return None
        absent: Words = ()
        if left.absent or right.absent:
            absent = united([each for each in (left.absent, right.absent) if each])
        return Partial(left.tuples + right.tuples, sides, left.size + right.size, absent)

    def _passes(self, row: Partial) -> bool:
        return not self.filters or all(test(row.sides) is True for test in self.filters)

    def _lonely(self, at: int, row: Partial, sign: int) -> Iterator[PartialChange]:
        """The row without a partner, which tells that the other side has none."""
        nothing = self._nothing[1 - at]
        absent = united([each for each in (row.absent, self.children[1 - at].reach) if each])
        tuples = row.tuples + nothing if at == 0 else nothing + row.tuples
        sides: tuple[Side | None, ...] = (None,) * len(nothing)
        sides = row.sides + sides if at == 0 else sides + row.sides
        made = Partial(tuples, sides, row.size, absent)
        if self._passes(made):
            yield made, sign

    def coming(self, window: int, each: Arrival) -> Iterator[Partial]:
        """The rows that would come with a tuple. Nothing is noted."""
        at = self._child(window)
        for row in self.children[at].coming(window, each):
            key = self.keys[at](row)
            others = None if key is None else self._alike[1 - at].get(key)
            pairs = [self._pair(at, row, o) for o in (others.rows.values() if others else ())]
            found = [pair for pair in pairs if pair is not None]
            if self.kind is not JoinKind.ANTI:
                yield from (pair for pair in found if self._passes(pair))
            if not found and self._keeps[at]:
                yield from (lonely for lonely, _ in self._lonely(at, row, 1))

    def growth(self, window: int, each: Arrival, held: Held) -> tuple[int, int]:
        """How many more pairs, and characters in them, a tuple would make. Raises Rising."""
        at = self._child(window)
        pairs, characters = self.children[at].growth(window, each, held)
        for row in self.children[at].coming(window, each):
            key = self.keys[at](row)
            others = None if key is None else self._alike[1 - at].get(key)
            if others is not None:
                pairs += len(others.rows)
                characters += len(others.rows) * (row.size + self.constants) + others.size
                held.require(pairs, characters)
        return pairs, characters

    def rows(self) -> Iterator[Partial]:
        """All rows of what is noted."""
        for at in (0, 1):
            if not self._keeps[at]:
                continue
            for row in self._without[at].values():
                yield from (lonely for lonely, _ in self._lonely(at, row, 1))
            for alike in self._alike[at].values():
                for row in alike.rows.values():
                    if not alike.pairs[row.tuples]:
                        yield from (lonely for lonely, _ in self._lonely(at, row, 1))
        if self.kind is JoinKind.ANTI:
            return
        for key, alike in self._alike[0].items():
            others = self._alike[1].get(key)
            for row in alike.rows.values():
                for other in others.rows.values() if others else ():
                    pair = self._pair(0, row, other)
                    if pair is not None and self._passes(pair):
                        yield pair

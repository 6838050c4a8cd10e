"""The rows of a join of moving windows with their texts, and the sides that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from catalog.pair_expressions import JoinRules, window_of
from catalog.schema import Schema
from secfilter.lab import NULL_MARK, SEPARATOR
from secfilter.moving_joins import Held, JoinSide, Partial, Rising, WindowSide
from secfilter.moving_rows import Change, Row
from secfilter.moving_window import Arrival, Words
from secfilter.pair_values import RowTexts, Sides, computation

# A pair takes about as much memory as a text of so many characters.
_PAIR = 100


@dataclass
class JoinRows:
    """The rows of a join, with their texts. `witnesses` are the windows that only decide."""

    root: JoinSide
    texts: RowTexts
    witnesses: frozenset[int]

    @property
    def come_of_absence(self) -> bool:
        """Whether a row may come because a tuple leaves."""
        return self.root.keeps

    @property
    def more_characters(self) -> int:
        """Those of all pairs of equal rows."""
        held = self.root.held
        return held.characters + held.pairs * _PAIR

    def has_room(self, side: int, each: Arrival) -> bool:
        """Whether there are not too many pairs with one more tuple."""
        try:
            self.root.growth(side, each, self.root.held)
        except Rising:
            return False
        return True

    def place(self, side: int, each: Arrival, *, wanted: bool) -> Iterable[Change]:
        """Note a tuple that has come."""
        return self._changes(side, each, 1, wanted=wanted)

    def remove(self, side: int, each: Arrival, *, wanted: bool) -> Iterable[Change]:
        """Forget a tuple that leaves."""
        return self._changes(side, each, -1, wanted=wanted)

    def _changes(self, side: int, each: Arrival, sign: int, *, wanted: bool) -> Iterable[Change]:
        found = self.root.change(side, each, sign, wanted=wanted)
        if wanted:
            return ((self._row(row), own) for row, own in found)
        for _ in found:
            pass
        return ()

    def _row(self, row: Partial) -> Row:
        subject = row.tuples
        if self.witnesses:
            subject = tuple(
                None if number in self.witnesses else each for number, each in enumerate(row.tuples)
            )
        return Row(row.tuples, *self.texts.texts(row.sides), row.absent, subject)

    def all(self, _held: Sequence[Iterable[Arrival]]) -> Iterator[Row]:
        """All rows."""
        return map(self._row, self.root.rows())


@dataclass(frozen=True, slots=True)
class Making:
    """What the sides of a join are made with."""

    schema: Schema
    texts: RowTexts
    held: Held
    reaches: Sequence[Words]
    constants: int

    def side(self, rules: JoinRules | int) -> WindowSide | JoinSide:
        """A side with these rules."""
        if isinstance(rules, int):
            return WindowSide(rules, self.texts.read, self.reaches[rules])
        return self.join(rules)

    def join(self, rules: JoinRules, *, last: bool = False) -> JoinSide:
        """A join with these rules. The last one makes the texts of rows."""
        left, right = (self.side(side) for side in rules.sides)
        first = left.windows[0]
        tests = [
            [computation(each, self.schema, first) for each in several]
            for several in (rules.conditions, rules.filters)
        ]
        firsts = (left.windows[0], right.windows[0])
        keys = [
            _key(side, rules, [window_of(key) for key in several], start)
            for side, several, start in zip((left, right), rules.keys, firsts, strict=True)
        ]
        constants = self.constants if last else 0
        return JoinSide(
            *(rules.kind, (left, right), (keys[0], keys[1]), tests[0], tests[1]),
            *(self.held, constants),
        )


def _key(
    side: WindowSide | JoinSide, rules: JoinRules, keys: Sequence[tuple[int, str]], first: int
) -> Callable[[Partial], str | None]:
    """The function that gives the text of what a join compares. NULL is equal to nothing."""
    places = [(number - first, int(index)) for number, index in keys]

    def key(row: Partial) -> str | None:
        if isinstance(side, WindowSide):
            arrival = row.tuples[0]
            text = "" if arrival is None else arrival.row
        else:
            text = SEPARATOR.join(_text(row.sides, *place) for place in places)
        nothing = NULL_MARK in text and NULL_MARK in text.split(SEPARATOR)
        return None if nothing and not rules.nulls_equal else text

    return key


def _text(sides: Sides, number: int, index: int) -> str:
    side = sides[number]
    return NULL_MARK if side is None else side[0][index]

"""The rows of a changing relation, before groups: single tuples of a window, or pairs of two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from secfilter.moving_window import Arrival, HeldLimits, Words, united


@dataclass(frozen=True, slots=True)
class Row:
    """A row with the tuples from which it is derived: one of each window, in their order.

    `text` has the values that the relation shows, or the group's key.
    """

    tuples: tuple[Arrival, ...]
    text: str
    arguments: str

    @property
    def label(self) -> Words:
        """The labels of its tuples."""
        if len(self.tuples) == 1:
            return self.tuples[0].label
        return united(each.label for each in self.tuples)


class Rows(Protocol):
    """Makes the rows of the tuples that the windows hold. `side` is the number of a window."""

    def has_room(self, side: int, each: Arrival) -> bool:
        """Whether the rows of one more tuple are not too many."""

    def place(self, side: int, each: Arrival) -> None:
        """Note a tuple that has come."""

    def remove(self, side: int, each: Arrival) -> None:
        """Forget a tuple that leaves."""

    def of(self, side: int, each: Arrival) -> Iterator[Row]:
        """The rows of a tuple, with the noted tuples of the other window."""

    def all(self, held: Sequence[Iterable[Arrival]]) -> Iterator[Row]:
        """All rows of the tuples that each window holds. They are noted."""


class SingleRows:
    """The tuples of one window as rows."""

    def has_room(self, side: int, each: Arrival) -> bool:
        """True: the window itself bounds its tuples."""
        return True

    def place(self, side: int, each: Arrival) -> None:
        """Nothing: a row needs no other tuple."""

    def remove(self, side: int, each: Arrival) -> None:
        """Nothing: a row needs no other tuple."""

    def of(self, side: int, each: Arrival) -> Iterator[Row]:
        """The tuple itself, if it passes."""
        if each.passes:
            yield Row((each,), each.row, each.arguments)

    def all(self, held: Sequence[Iterable[Arrival]]) -> Iterator[Row]:
        """All tuples that pass."""
        return (row for each in held[0] for row in self.of(0, each))


class Pairing(Protocol):
    """Computes the values of pairs."""

    def read(self, side: int, arguments: str) -> Any:
        """The values of a tuple's arguments."""

    def pair(self, left: Any, right: Any) -> tuple[str, str] | None:
        """The text and the arguments of a pair, or None if its condition is not true.

        `left` and `right` are what `read` gave for its tuples.
        """


@dataclass
class PairRows:
    """The pairs of tuples of two windows whose `row` is equal (what the join compares).

    `limits` bounds the pairs of equal tuples that there are at a time, and their texts, each of
    which has so many characters of `constants`.
    """

    pairing: Pairing
    limits: HeldLimits
    constants: int = 0
    _pairs: int = 0
    _characters: int = 0
    # For each window the length of the texts of equal tuples.
    _lengths: tuple[Counter[str], Counter[str]] = field(
        default_factory=lambda: (Counter(), Counter())
    )
    # For each window the values of the tuples that pass, by what the join compares.
    _equal: tuple[dict[str, dict[Arrival, Any]], dict[str, dict[Arrival, Any]]] = field(
        default_factory=lambda: ({}, {})
    )

    def _partners(self, side: int, each: Arrival) -> dict[Arrival, Any]:
        return self._equal[1 - side].get(each.row, {})

    def has_room(self, side: int, each: Arrival) -> bool:
        """Whether there are not too many pairs with one more tuple."""
        if not each.passes:
            return True
        pairs, characters = self._own(side, each)
        return (
            self._pairs + pairs <= self.limits.tuples
            and self._characters + characters <= self.limits.characters
        )

    def _own(self, side: int, each: Arrival) -> tuple[int, int]:
        """How many pairs of equal tuples a tuple makes, and the length of their texts."""
        pairs = len(self._partners(side, each))
        own = len(each.arguments) + self.constants
        return pairs, pairs * own + self._lengths[1 - side][each.row]

    def _count(self, side: int, each: Arrival, sign: int) -> None:
        pairs, characters = self._own(side, each)
        self._pairs += sign * pairs
        self._characters += sign * characters
        self._lengths[side][each.row] += sign * len(each.arguments)

    def place(self, side: int, each: Arrival) -> None:
        """Note a tuple that has come."""
        if each.passes:
            self._count(side, each, 1)
            self._equal[side].setdefault(each.row, {})[each] = self.pairing.read(
                side, each.arguments
            )

    def remove(self, side: int, each: Arrival) -> None:
        """Forget a tuple that leaves."""
        if each.passes:
            self._count(side, each, -1)
            alike = self._equal[side][each.row]
            del alike[each]
            if not alike:
                del self._equal[side][each.row]
                del self._lengths[side][each.row]

    def of(self, side: int, each: Arrival) -> Iterator[Row]:
        """The pairs of a tuple with the noted tuples of the other window."""
        partners = self._partners(side, each) if each.passes else {}
        mine = self.pairing.read(side, each.arguments) if partners else None
        for other, values in partners.items():
            if side == 0:
                found = self.pairing.pair(mine, values)
                tuples = (each, other)
            else:
                found = self.pairing.pair(values, mine)
                tuples = (other, each)
            if found is not None:
                yield Row(tuples, *found)

    def all(self, held: Sequence[Iterable[Arrival]]) -> Iterator[Row]:
        """All pairs."""
        return (row for each in held[0] for row in self.of(0, each))

"""The rows of a changing relation, before groups: single tuples, or what a join makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from secfilter.moving_window import Arrival, Words, united

# The tuples from which a row is derived: one of each window. A union, or an outer join, gives rows
# without some of them.
Tuples = tuple[Arrival | None, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row with the tuples from which it is derived.

    `text` has the values that the relation shows, or the group's key. `absent` is the label of what
    the row tells by the absence of tuples; it is empty for nothing. Rows with the same `subject`
    have the same values, and differ in who are the witnesses of a semi join.
    """

    tuples: Tuples
    text: str
    arguments: str
    absent: Words = ()
    subject: Tuples = ()

    @property
    def label(self) -> Words:
        """The labels of its tuples, and of what it tells by absence."""
        if len(self.tuples) == 1 and self.tuples[0] is not None:
            return self.tuples[0].label
        labels = [each.label for each in self.tuples if each is not None]
        return united([*labels, self.absent] if self.absent else labels)


# A row that comes (1) or goes (-1).
Change = tuple[Row, int]


class Rows(Protocol):
    """Makes the rows of the tuples that the windows hold. `side` is the number of a window."""

    @property
    def come_of_absence(self) -> bool:
        """Whether a row may come because a tuple leaves."""

    @property
    def more_characters(self) -> int:
        """How much pairs of tuples hold besides the tuples: about, in characters."""

    def has_room(self, side: int, each: Arrival) -> bool:
        """Whether the rows of one more tuple are not too many."""

    def place(self, side: int, each: Arrival, *, wanted: bool) -> Iterable[Change]:
        """Note a tuple that has come. Gives the rows that come and go by it, if they are wanted.

        All of them must be read before the next call.
        """

    def remove(self, side: int, each: Arrival, *, wanted: bool) -> Iterable[Change]:
        """Forget a tuple that leaves. What it gives is as for `place`."""

    def all(self, held: Sequence[Iterable[Arrival]]) -> Iterator[Row]:
        """All rows of the tuples that each window holds. They are noted."""


class SingleRows:
    """The tuples of each window as rows, without any of other windows."""

    def __init__(self, windows: int) -> None:
        self._nothing = [(None,) * windows] * windows

    @property
    def come_of_absence(self) -> bool:
        """No."""
        return False

    @property
    def more_characters(self) -> int:
        """None: there are no pairs."""
        return 0

    def has_room(self, side: int, each: Arrival) -> bool:
        """True: the window itself bounds its tuples."""
        return True

    def place(self, side: int, each: Arrival, *, wanted: bool) -> Iterable[Change]:
        """The tuple itself, if it passes."""
        return ((self._row(side, each), 1),) if wanted and each.passes else ()

    def remove(self, side: int, each: Arrival, *, wanted: bool) -> Iterable[Change]:
        """The tuple itself, if it passes."""
        return ((self._row(side, each), -1),) if wanted and each.passes else ()

    def _row(self, side: int, each: Arrival) -> Row:
        tuples: Tuples = (each,)
        if len(self._nothing) > 1:
            others = self._nothing[side]
            tuples = (*others[:side], each, *others[side + 1 :])
        return Row(tuples, each.row, each.arguments, (), tuples)

    def all(self, held: Sequence[Iterable[Arrival]]) -> Iterator[Row]:
        """All tuples that pass."""
        for side, several in enumerate(held):
            for each in several:
                if each.passes:
                    yield self._row(side, each)

"""Rows in an order over windows that no tuple leaves: only those that can still count are kept.

A row that is behind the first ones of its partition never comes back, because nothing before it
goes. And where rows come in the order of their event times, LAG and LEAD reach a few of the newest
ones only. So the state grows with the number of partitions, and that is limited. Beyond the limit
no further row is kept: its tuple is withheld. One that takes the place of another row needs room
only for what it is longer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from secfilter.lab import SEPARATOR
from secfilter.moving_groups import Replaced, name_of
from secfilter.moving_ranks import RankRules, Ranks
from secfilter.moving_rows import Row, SingleRows
from secfilter.moving_window import Arrival, HeldLimits

_NOTHING = HeldLimits(0, 0)


@dataclass(frozen=True, slots=True)
class Reach:
    """How many rows of a partition can still count: the first ones of its order, or the last."""

    rows: int
    last: bool = False


_ONE = Reach(1)


@dataclass(frozen=True, slots=True)
class _Coming:
    """How many rows a partition has with those that come, and how long the shortest one is."""

    rows: int
    shortest: int

    def with_row(self, length: int) -> _Coming:
        """The same with one more row."""
        return _Coming(self.rows + 1, min(self.shortest, length))


def reach_of(rules: RankRules, *, newest_first: bool | None) -> Reach | None:
    """Which rows can still count if none ever leaves. None if all of them can.

    `newest_first` says whether the order is by event time, and which way. It is None for another
    order.
    """
    back, on = max(0, *rules.offsets, 0), max(0, *(-offset for offset in rules.offsets), 0)
    if rules.limit is not None:
        return Reach(rules.limit + on)
    if rules.by_place or newest_first is None:
        return None
    return Reach(back + on, last=not newest_first)


@dataclass
class FirstRows(Ranks):
    """The rows in an order of windows that no tuple leaves. `windows` is the number of these."""

    reach: Reach = _ONE
    limits: HeldLimits = _NOTHING
    windows: int = 1
    # The keys of the rows that are let go of at this instant.
    gone: list[str] = field(default_factory=list)
    size: int = 0
    characters: int = 0
    # What comes into each partition at this instant, how many rows more there are with it, and how
    # much longer all rows become at most.
    _coming: dict[str, _Coming] = field(default_factory=dict)
    _grown: int = 0
    _longer: int = 0

    def has_room(self, each: Arrival) -> bool:
        """Whether a tuple may come. It must come then, before the next `apply`."""
        name = SEPARATOR.join(each.arguments.split(SEPARATOR)[: self.rules.partition])
        coming = self._coming.get(name) or self._nothing_yet(name)
        # One that takes the place of another row needs no room but for what it is longer. The other
        # one may be any that is there.
        fills = coming.rows < self.reach.rows
        more = each.characters - (0 if fills else min(coming.shortest, each.characters))
        grown, longer = self._grown + (1 if fills else 0), self._longer + more
        if fills and self.size + grown > self.limits.tuples:
            return False
        if more and self.characters + longer > self.limits.characters:
            return False
        self._coming[name] = coming.with_row(each.characters)
        self._grown, self._longer = grown, longer
        return True

    def _nothing_yet(self, name: str) -> _Coming:
        lengths = [_length(each.row) for each in self.found.get(name, ())]
        return _Coming(len(lengths), min(lengths, default=self.limits.characters))

    def apply(self, left: Collection[Row], came: Collection[Row]) -> Iterator[Replaced]:
        """Note rows that come. Gives the rows whose place or neighbours change."""
        if left:
            raise ValueError("no row leaves a window without an end")
        self._coming.clear()
        self.gone.clear()
        self._grown = self._longer = 0
        yield from super().apply((), came)
        self.size += len(came)
        self.characters += sum(map(_length, came))
        for name in {self._placed(row)[0] for row in came}:
            self._let_go(name)

    def _let_go(self, name: str) -> None:
        """Let go of the rows of a partition that do not count any more."""
        rows, most = self.found[name], self.reach.rows
        beyond = rows[:-most] if self.reach.last else rows[most:]
        if beyond:
            self.found[name] = rows[-most:] if self.reach.last else rows[:most]
            self.size -= len(beyond)
            self.characters -= sum(_length(each.row) for each in beyond)
            if not self.rules.by_place:
                # With places, what is let go of is behind all that is shown.
                self.gone += [name_of(each.row.tuples) for each in beyond]

    def state(self) -> list[list[object]]:
        """The tuples of the rows in JSON's types, each with the number of its window."""
        rows = (each.row for name in sorted(self.found) for each in self.found[name])
        return [[window, *each.as_list()] for window, each in map(_of, rows)]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Go on with rows that `state` gave."""
        held: list[list[Arrival]] = [[] for _ in range(self.windows)]
        for window, *values in state:
            held[window].append(Arrival.from_list(values))
        for _ in self.apply((), [*SingleRows(self.windows).all(held)]):
            pass


def _of(row: Row) -> tuple[int, Arrival]:
    """The number of a row's window, and its tuple."""
    return next((side, each) for side, each in enumerate(row.tuples) if each is not None)


def _length(row: Row) -> int:
    return _of(row)[1].characters

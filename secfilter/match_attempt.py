"""One attempt to find a match that begins at one row: all ways to read the rows, side by side.

There is no backtracking. The ways are kept in the order in which SQL prefers them. Two ways that
are at one place and whose conditions can read nothing different go on alike, so only the preferred
one is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from catalog.match_expressions import ReadValue
from secfilter.match_automaton import Automaton
from secfilter.match_values import Accumulator, added, empty, result, value_in
from secfilter.moving_values import Value
from secfilter.moving_window import Arrival
from secfilter.pair_values import Compute

# The variables of the rows so far, the newest one first: (variable, those before it).
Mapped = tuple[int, "Mapped | None"]
Values = Sequence[Value | None]


# A tuple of a stream takes several rows, ways and attempts. To make a frozen dataclass takes three
# times as long as these.
@dataclass(slots=True, eq=False)
class PatternRow:
    """A row, and the values that the engine computed for it: their texts, and what they mean."""

    arrival: Arrival
    texts: Sequence[str]
    values: Values


# The row that is so many rows behind (or before) the row of a number, or None.
Around = Callable[[int, int], PatternRow | None]


@dataclass(slots=True)
class Here:
    """The row at which attempts look, and its number.

    `around` gives the rows near it. `known` has the conditions of variables that are the same for
    all attempts: whether they hold here, or None if nobody asked yet.
    """

    number: int
    row: PatternRow
    around: Around
    known: list[bool | None]


class Way(NamedTuple):
    """One way to map the rows so far to variables.

    `places` may come next. `so_far` has the accumulators that the conditions read.
    """

    places: tuple[int, ...]
    so_far: tuple[Accumulator, ...]
    mapped: Mapped | None


@dataclass(slots=True)
class Conditions:
    """The conditions of the variables, and the readings that they use.

    `by_variable` has None for a variable that fits every row, and `reads` the numbers of the
    readings in each condition. `whole` says of which readings the argument is a BIGINT.
    """

    automaton: Automaton
    by_variable: Sequence[Compute | None]
    reads: Sequence[Collection[int]]
    readings: Sequence[ReadValue]
    whole: Sequence[bool]
    # The way before any row.
    start: Way = field(init=False)
    # The readings that need an accumulator.
    _counted: list[ReadValue] = field(init=False)
    # What each condition reads: (number, place of its accumulator or None if it needs none).
    _own: list[list[tuple[int, int | None]]] = field(init=False)
    # Of which variables the condition is the same for all attempts at a row.
    _alike: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        counted = [n for n, each in enumerate(self.readings) if not each.is_from_current]
        self._counted = [self.readings[number] for number in counted]
        places = {number: place for place, number in enumerate(counted)}
        self._own = [[(number, places.get(number)) for number in own] for own in self.reads]
        self._alike = [all(place is None for _, place in own) for own in self._own]
        nothing = tuple(map(empty, self._counted))
        self.start = Way(self.automaton.first.places, nothing, None)

    def with_row(
        self, so_far: tuple[Accumulator, ...], variable: int, here: Here
    ) -> tuple[Accumulator, ...]:
        """The accumulators with the row, which is mapped to the variable."""
        if not so_far:
            return so_far
        name, number, values = self.automaton.variables[variable], here.number, here.row.values
        return tuple(
            added(reading, each, number if reading.moved else value_in(reading, values))
            if reading.variable in (None, name)
            else each
            for reading, each in zip(self._counted, so_far, strict=True)
        )

    def hold(self, variable: int, so_far: tuple[Accumulator, ...], here: Here) -> bool:
        """Whether the condition of the variable is true for the row."""
        condition = self.by_variable[variable]
        if condition is None:
            return True
        known = here.known[variable]
        if known is None:
            read: list[Value | None] = [None] * len(self.readings)
            for number, place in self._own[variable]:
                read[number] = self._value(number, place, so_far, here)
            known = condition((((), here.row.values), ((), read))) is True
            if self._alike[variable]:
                here.known[variable] = known
        return known

    def _value(
        self, number: int, place: int | None, so_far: tuple[Accumulator, ...], here: Here
    ) -> Value | None:
        """The value of a reading."""
        reading = self.readings[number]
        if place is None:
            return _moved(reading, here.number, here.around)
        value: Value | None = result(reading, so_far[place], whole=self.whole[number])
        if reading.moved and value is not None:
            return _moved(reading, int(value), here.around)
        return value


def _moved(reading: ReadValue, number: int, around: Around) -> Value | None:
    """The value in the row to which the reading goes from the row of a number."""
    row = around(number, reading.moved)
    return None if row is None else value_in(reading, row.values)


@dataclass(slots=True)
class Attempt:
    """The ways of an attempt that are still open, the preferred one first.

    `start` is the number of its first row, `looked` that of the last row that it looked at. `found`
    has the variables of the best match so far, and `length` is the number of its rows. The match is
    certain when no way is open.
    """

    start: int
    deadline: int
    ways: list[Way]
    looked: int = -1
    found: Mapped | None = None
    length: int = 0
    is_given_up: bool = field(default=False)

    @property
    def is_open(self) -> bool:
        """Whether a further row can change its result."""
        return bool(self.ways)

    def end(self) -> None:
        """No further row can come in time."""
        self.ways = []

    def give_up(self) -> None:
        """It has too many ways, so it gives no match."""
        self.ways, self.found, self.is_given_up = [], None, True

    def look(self, here: Here, conditions: Conditions) -> None:
        """Go on with this row."""
        self.looked = here.number
        automaton = conditions.automaton
        made: list[Way] = []
        seen: set[tuple[int, tuple[Accumulator, ...]]] = set()
        for places, before, earlier in self.ways:
            for place in places:
                variable = automaton.variable_at[place]
                so_far = conditions.with_row(before, variable, here)
                if (place, so_far) in seen or not conditions.hold(variable, so_far, here):
                    continue
                seen.add((place, so_far))
                following = automaton.following[place]
                mapped = (variable, earlier)
                if following.places:
                    made.append(Way(following.places, so_far, mapped))
                if following.end:
                    # All that is behind this in the order of preference cannot win any more.
                    self.found, self.length = mapped, here.number - self.start + 1
                    self.ways = made
                    return
        self.ways = made


def variables_of(mapped: Mapped | None) -> list[int]:
    """The variable of each row, the first row first."""
    found: list[int] = []
    while mapped is not None:
        variable, mapped = mapped
        found.append(variable)
    found.reverse()
    return found

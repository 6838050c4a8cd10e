"""One attempt to find a match that begins at one row: all ways to read the rows, side by side.

There is no backtracking. The ways are kept in the order in which SQL prefers them. Two ways that
are at one place and whose conditions can read nothing different go on alike, so only the preferred
one is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from catalog.match_expressions import ReadValue
from secfilter.match_automaton import Automaton
from secfilter.match_values import Accumulator, added, empty, result, value_in
from secfilter.moving_values import Value
from secfilter.moving_window import Arrival
from secfilter.pair_values import Compute

# The variables of the rows so far, the newest one first: (variable, those before it).
Mapped = tuple[int, "Mapped | None"]
Values = Sequence[Value | None]


@dataclass(frozen=True, slots=True, eq=False)
class PatternRow:
    """A row, and the values that the engine computed for it: their texts, and what they mean."""

    arrival: Arrival
    texts: Sequence[str]
    values: Values


# The row that is so many rows behind (or before) the row of a number, or None.
Around = Callable[[int, int], PatternRow | None]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to map the rows so far to variables.

    `places` may come next. `so_far` has the accumulators that the conditions read.
    """

    places: tuple[int, ...]
    so_far: tuple[Accumulator, ...]
    mapped: Mapped | None


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of the variables, and the readings that they use.

    `by_variable` has None for a variable that fits every row. `whole` says of which readings the
    argument is a BIGINT. `counted` has the numbers of the readings that need an accumulator.
    """

    automaton: Automaton
    by_variable: Sequence[Compute | None]
    readings: Sequence[ReadValue]
    whole: Sequence[bool]
    counted: Sequence[int]

    def start(self) -> Way:
        """The way before any row."""
        nothing = tuple(empty(self.readings[number]) for number in self.counted)
        return Way(self.automaton.first.places, nothing, None)

    def with_row(
        self, way: Way, variable: int, number: int, row: PatternRow
    ) -> tuple[Accumulator, ...]:
        """The accumulators with the row of a number, which is mapped to the variable."""
        name = self.automaton.variables[variable]
        return tuple(
            added(reading, so_far, number if reading.moved else value_in(reading, row.values))
            if reading.variable in (None, name)
            else so_far
            for reading, so_far in zip(
                (self.readings[each] for each in self.counted), way.so_far, strict=True
            )
        )

    def hold(
        self,
        variable: int,
        so_far: tuple[Accumulator, ...],
        number: int,
        row: PatternRow,
        around: Around,
    ) -> bool:
        """Whether the condition of the variable is true for the row of a number."""
        condition = self.by_variable[variable]
        if condition is None:
            return True
        read: list[Value | None] = [None] * len(self.readings)
        for place, each in enumerate(self.counted):
            reading = self.readings[each]
            value = result(reading, so_far[place], whole=self.whole[each])
            if reading.moved:
                value = None if value is None else _moved(reading, value, around)
            read[each] = value
        for each, reading in enumerate(self.readings):
            if reading.is_from_current:
                read[each] = _moved(reading, number, around)
        return condition((((), row.values), ((), read))) is True


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

    def look(self, number: int, row: PatternRow, conditions: Conditions, around: Around) -> None:
        """Go on with the row of this number."""
        self.looked = number
        automaton = conditions.automaton
        made: list[Way] = []
        seen: set[tuple[int, tuple[Accumulator, ...]]] = set()
        for way in self.ways:
            for place in way.places:
                variable = automaton.variable_at[place]
                so_far = conditions.with_row(way, variable, number, row)
                if (place, so_far) in seen:
                    continue
                if not conditions.hold(variable, so_far, number, row, around):
                    continue
                seen.add((place, so_far))
                following = automaton.following[place]
                mapped = (variable, way.mapped)
                if following.places:
                    made.append(Way(following.places, so_far, mapped))
                if following.end:
                    # All that is behind this in the order of preference cannot win any more.
                    self.found, self.length = mapped, number - self.start + 1
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

"""Event patterns: which rows make a match (SQL's MATCH_RECOGNIZE; 003 §3).

A pattern is a regular expression over variables. Each row of a match is mapped to one variable,
and fulfils the variable's condition. `catalog.plan.Match` has a pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from catalog.expression import Expression

FIRST, LAST, COUNT, CLASSIFIER = "first", "last", "count", "classifier"
# What is computed over all rows of a variable. A deviation would need all values at each row.
PATTERN_AGGREGATES = (COUNT, "sum", "avg", "min", "max")


@dataclass(frozen=True, slots=True)
class PatternVariable:
    """One row that is mapped to the variable."""

    name: str


@dataclass(frozen=True, slots=True)
class PatternSequence:
    """Rows of all parts, one part behind the other."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class PatternChoice:
    """Rows of one of the parts. An earlier part is preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class PatternRepeat:
    """The part `least` to `most` times; None: as often as there are rows.

    If it is `greedy`, more times are preferred, otherwise fewer.
    """

    part: Pattern
    least: int
    most: int | None
    greedy: bool = True


Pattern = PatternVariable | PatternSequence | PatternChoice | PatternRepeat


@dataclass(frozen=True, slots=True)
class Reading:
    """A named value of the rows of a match, up to the current row; if it is `final`, of all rows.

    FIRST and LAST: the argument's value in the first or last row of the variable, or in the one
    that is `offset` of its rows behind the first or before the last. From there it goes `moved`
    rows of the partition on (NEXT), or back if that is negative (PREV). An aggregate: over all rows
    of the variable; without an argument it is count(*). If `variable` is None, all rows of the
    match count: the last one is the current row. CLASSIFIER: the variable of the current row.
    """

    name: str
    function: str
    variable: str | None
    argument: Expression | None
    offset: int = 0
    moved: int = 0
    final: bool = False

    @property
    def is_from_current(self) -> bool:
        """Whether it is of the current row, or of one so many rows before or behind it."""
        return self.function == LAST and self.variable is None and not self.offset


@dataclass(frozen=True, slots=True)
class Definition:
    """The condition of a variable: over the current row, and over readings by their names."""

    variable: str
    condition: Expression


class SkipTo(StrEnum):
    """Where the search goes on behind a match."""

    NEXT_ROW = "to next row"
    PAST_LAST_ROW = "past last row"
    FIRST = "to first"
    LAST = "to last"


@dataclass(frozen=True, slots=True)
class Skip:
    """Where the search goes on behind a match. FIRST and LAST name a variable."""

    to: SkipTo
    variable: str | None = None


NEXT_ROW, PAST_LAST_ROW = Skip(SkipTo.NEXT_ROW), Skip(SkipTo.PAST_LAST_ROW)


def rows_ahead(readings: Iterable[Reading]) -> int:
    """How many rows behind the current one the readings may read at most (NEXT)."""
    return max((each.moved for each in readings if each.moved > 0), default=0)


def rows_back(readings: Iterable[Reading]) -> int:
    """How many rows before the rows of a match the readings may read at most (PREV)."""
    return max((-each.moved for each in readings if each.moved < 0), default=0)


def variables_of(pattern: Pattern) -> Iterator[str]:
    """The variables of a pattern in reading order. One that is there twice comes twice."""
    match pattern:
        case PatternVariable(name):
            yield name
        case PatternSequence(parts) | PatternChoice(parts):
            for part in parts:
                yield from variables_of(part)
        case PatternRepeat(part):
            yield from variables_of(part)


def may_be_empty(pattern: Pattern) -> bool:
    """Whether the pattern matches no row at all."""
    match pattern:
        case PatternVariable():
            return False
        case PatternSequence(parts):
            return all(map(may_be_empty, parts))
        case PatternChoice(parts):
            return any(map(may_be_empty, parts))
        case PatternRepeat(part, least):
            return least == 0 or may_be_empty(part)


def length_of(pattern: Pattern) -> int:
    """The number of variables, if each part is written as often as it is counted."""
    match pattern:
        case PatternVariable():
            return 1
        case PatternSequence(parts) | PatternChoice(parts):
            return sum(map(length_of, parts))
        case PatternRepeat(part, least, most):
            return length_of(part) * max(1, least if most is None else most)


def depth_of(pattern: Pattern) -> int:
    """How many parts are inside each other."""
    match pattern:
        case PatternVariable():
            return 1
        case PatternSequence(parts) | PatternChoice(parts):
            return 1 + max(map(depth_of, parts), default=0)
        case PatternRepeat(part):
            return 1 + depth_of(part)


def pattern_text(pattern: Pattern, name_text: Callable[[str], str] = str) -> str:
    """The pattern as SQL. `name_text` writes a variable.

    >>> either = PatternChoice((PatternVariable("A"), PatternVariable("B")))
    >>> pattern_text(PatternRepeat(either, 1, None))
    '(A | B)+'
    """
    match pattern:
        case PatternVariable(name):
            return name_text(name)
        case PatternSequence(parts):
            return " ".join(_inner_text(part, name_text) for part in parts)
        case PatternChoice(parts):
            return " | ".join(_inner_text(part, name_text) for part in parts)
        case PatternRepeat(part, least, most, greedy):
            times = _SIGNS.get((least, most)) or f"{{{least},{'' if most is None else most}}}"
            inner = _inner_text(part, name_text)
            if isinstance(part, PatternRepeat):
                inner = f"({inner})"
            return f"{inner}{times}{'' if greedy else '?'}"


_SIGNS = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def _inner_text(pattern: Pattern, name_text: Callable[[str], str]) -> str:
    text = pattern_text(pattern, name_text)
    return f"({text})" if isinstance(pattern, PatternSequence | PatternChoice) else text

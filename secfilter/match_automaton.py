"""An event pattern as an automaton: which variables may follow each other, in which order.

Each place of the automaton is one variable of the pattern, with each part written as often as it is
counted. So an automaton has no step without a row, and matching needs no backtracking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from catalog.pattern import (
    Pattern,
    PatternChoice,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
    variables_of,
)


@dataclass(frozen=True, slots=True)
class Following:
    """What may follow a place: other places, the preferred one first, or the end of the match.

    If the match may `end`, the places are those that are preferred to the end. Without any, the
    match ends here.
    """

    places: tuple[int, ...]
    end: bool


@dataclass(frozen=True, slots=True)
class Automaton:
    """The places of a pattern.

    `variables` has the names of the variables, and `variable_at` the number of the variable at each
    place. `first` says where a match begins.
    """

    variables: tuple[str, ...]
    variable_at: tuple[int, ...]
    first: Following
    following: tuple[Following, ...]

    @classmethod
    def of(cls, pattern: Pattern) -> Automaton:
        """The automaton of a pattern that is checked (`catalog.match_check`)."""
        builder = _Builder(tuple(dict.fromkeys(variables_of(pattern))))
        first = builder.add(pattern, _end)
        return cls(
            builder.variables,
            tuple(builder.variable_at),
            _following(first()),
            tuple(_following(behind()) for behind in builder.behind),
        )


# What comes next, in the order of preference: places, and None for the end of the match. This is
# known when the whole pattern is read.
_Next = Callable[[], tuple[int | None, ...]]


def _end() -> tuple[int | None, ...]:
    return (None,)


def _ordered(*several: _Next) -> _Next:
    """What comes next if any of these may be next. It is computed once, each place once."""

    @cache
    def order() -> tuple[int | None, ...]:
        return tuple(dict.fromkeys(place for each in several for place in each()))

    return order


def _following(order: tuple[int | None, ...]) -> Following:
    ends = None in order
    places = order[: order.index(None)] if ends else order
    return Following(tuple(place for place in places if place is not None), ends)


class _Builder:
    """Numbers the places of a pattern. What comes behind a place is known when all are there."""

    def __init__(self, variables: tuple[str, ...]) -> None:
        self.variables = variables
        self.variable_at: list[int] = []
        self.behind: list[_Next] = []

    def add(self, pattern: Pattern, behind: _Next) -> _Next:
        """Add a part with what comes behind it. Gives what the part begins with."""
        match pattern:
            case PatternVariable(name):
                place = len(self.behind)
                self.variable_at.append(self.variables.index(name))
                self.behind.append(behind)
                return lambda: (place,)
            case PatternSequence(parts):
                for part in reversed(parts):
                    behind = self.add(part, behind)
                return behind
            case PatternChoice(parts):
                return _ordered(*(self.add(part, behind) for part in parts))
            case PatternRepeat():
                return self._repeat(pattern, behind)

    def _repeat(self, node: PatternRepeat, behind: _Next) -> _Next:
        optional = 0 if node.most is None else node.most - node.least
        begin = behind
        if node.most is None:
            begin = self._loop(node, behind)
        for _ in range(optional):
            begin = _either(self.add(node.part, begin), behind, node.greedy)
        return self._times(node, begin)

    def _loop(self, node: PatternRepeat, behind: _Next) -> _Next:
        """The part any number of times, also never."""
        loop: _Next

        def again() -> tuple[int | None, ...]:
            return loop()

        loop = _either(self.add(node.part, again), behind, node.greedy)
        return loop

    def _times(self, node: PatternRepeat, begin: _Next) -> _Next:
        """The part as often as it must be there."""
        for _ in range(node.least):
            begin = self.add(node.part, begin)
        return begin


def _either(part: _Next, behind: _Next, greedy: bool) -> _Next:
    return _ordered(part, behind) if greedy else _ordered(behind, part)

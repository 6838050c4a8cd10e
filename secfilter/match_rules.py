"""The rules of one event pattern, as they are sent to a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.expression import Expression, attributes_of
from catalog.match_expressions import READINGS, MatchExpressions, ReadValue
from catalog.pair_expressions import window_of
from catalog.pattern import Pattern, Skip, rows_back
from catalog.plan import Match
from catalog.schema import AttributeType, Schema, Type
from secfilter.match_attempt import Conditions
from secfilter.match_automaton import Automaton
from secfilter.match_partition import PatternRules
from secfilter.match_results import MatchTexts
from secfilter.matching import Matching
from secfilter.moving_window import HeldLimits, Words
from secfilter.pair_values import computation


@dataclass(frozen=True, slots=True)
class MatchRules:
    """What the operator of a pattern needs.

    `schema` has the types of all that the conditions read, and `types` those of a row's values.
    `shown` has the numbers of the values that are attributes of results, if each row is one; None
    if a match is one. `ways` is how many ways to read the rows of a partition are open at once.
    PREV goes `back` rows at most, and NEXT `ahead`.
    """

    pattern: Pattern
    conditions: Mapping[str, Expression]
    readings: tuple[ReadValue, ...]
    measures: tuple[ReadValue, ...]
    shown: tuple[int, ...] | None
    schema: Schema
    types: tuple[AttributeType, ...]
    within_us: int
    skip: Skip
    is_partitioned: bool
    absent: Words
    limits: HeldLimits
    ways: int
    back: int
    ahead: int

    def empty(self) -> Matching:
        """The operator before any row."""
        automaton = Automaton.of(self.pattern)
        made = {
            name: computation(condition, self.schema) for name, condition in self.conditions.items()
        }
        conditions = Conditions(
            automaton,
            [made.get(name) for name in automaton.variables],
            [self._read_by(name) for name in automaton.variables],
            self.readings,
            [self._is_whole(each) for each in self.readings],
        )
        rules = PatternRules(
            conditions, self.within_us, self.skip, self.back, self.ahead, self.ways
        )
        texts = MatchTexts(
            self.types, automaton.variables, self.measures, self.shown, self.is_partitioned
        )
        return Matching(rules, texts, self.absent, self.limits)

    def _read_by(self, variable: str) -> frozenset[int]:
        """The numbers of the readings in the condition of a variable."""
        if variable not in self.conditions:
            return frozenset()
        named = map(window_of, attributes_of(self.conditions[variable]))
        return frozenset(int(place) for window, place in named if window == READINGS)

    def _is_whole(self, each: ReadValue) -> bool:
        return each.argument is not None and self.types[each.argument] is Type.BIGINT


def match_rules(
    node: Match, schema: Schema, absent: Words, limits: HeldLimits, ways: int
) -> MatchRules:
    """The rules of a pattern that is checked, over rows of the schema."""
    expressions = MatchExpressions(node, schema)
    return MatchRules(
        node.pattern,
        expressions.conditions,
        expressions.readings,
        expressions.measures,
        expressions.shown if node.per_row else None,
        expressions.schema(),
        expressions.types,
        node.within_ms * 1_000,
        node.skip,
        bool(node.partition),
        absent,
        limits,
        ways,
        rows_back((*node.readings, *node.measures)),
        node.rows_ahead,
    )

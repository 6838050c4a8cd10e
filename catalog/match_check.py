"""Checks the node of event patterns: its pattern, its conditions, and what it goes over."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.checked_plan import CheckedNode
from catalog.errors import InvalidInput
from catalog.expression import type_of
from catalog.match_expressions import MatchExpressions, reading_type
from catalog.pattern import (
    CLASSIFIER,
    FIRST,
    LAST,
    PATTERN_AGGREGATES,
    Pattern,
    PatternChoice,
    PatternRepeat,
    PatternSequence,
    Reading,
    SkipTo,
    depth_of,
    length_of,
    may_be_empty,
    variables_of,
)
from catalog.plan import MATCH_TIME, Match, Source
from catalog.plan_rules import (
    MAX_WINDOW_MS,
    OWN_QUERY,
    require_comparable,
    require_condition,
    require_event_time,
)
from catalog.schema import Attribute, Schema, Type

MAX_LENGTH = 100
MAX_PATTERN_DEPTH = 30
# So far FIRST and LAST count rows of a variable, and PREV and NEXT rows of the partition.
MAX_MOVED = 100
MAX_READINGS = 100


def match_schema(node: Match, given: CheckedNode) -> Schema:
    """The attributes of the matches. Raises InvalidInput for a wrong pattern."""
    _check_input(node, given)
    _check_pattern(node.pattern)
    _check_skip(node)
    if not 1 <= node.within_ms <= MAX_WINDOW_MS:
        raise InvalidInput("WITHIN is 1 ms to 400 days")
    schema = given.schema
    variables = {*variables_of(node.pattern)}
    for reading in (*node.readings, *node.measures):
        _check_reading(reading, schema, variables)
    if any(each.function == CLASSIFIER or each.final for each in node.readings):
        raise InvalidInput("DEFINE decides row by row: CLASSIFIER() and FINAL are for MEASURES")
    if any(each.final for each in node.measures) and not node.per_row:
        raise InvalidInput("without ALL ROWS PER MATCH, MEASURES are about the whole match anyway")
    _check_definitions(node, schema, variables)
    MatchExpressions(node, schema)
    for key in node.partition:
        require_comparable(type_of(key, schema), "PARTITION BY", key.position)
    keys = tuple(Attribute(each.name, type_of(each, schema)) for each in node.partition)
    measures = tuple(Attribute(each.name, reading_type(each, schema)) for each in node.measures)
    if node.per_row:
        _check_names(schema, measures)
        keys = schema.attributes
    return Schema((Attribute(MATCH_TIME, Type.TIMESTAMP, required=True), *keys, *measures))


def _check_names(schema: Schema, measures: tuple[Attribute, ...]) -> None:
    """Refuse names that the rows of a match would have twice."""
    told = "with ALL ROWS PER MATCH a result has all attributes of its row"
    if schema.get(MATCH_TIME) is not None:
        raise InvalidInput(
            f"{told} beside {MATCH_TIME!r}; give the row's another name in a query of WITH"
        )
    for each in measures:
        if schema.get(each.name) is not None:
            raise InvalidInput(f"{told}; give the measure {each.name!r} another name")


def _check_input(node: Match, given: CheckedNode) -> None:
    require_event_time(given, "a pattern")
    if given.keeps_state:
        raise InvalidInput("a pattern goes over streams; " + OWN_QUERY)
    relations = [each.node.relation for each in given.walk() if isinstance(each.node, Source)]
    if not {*node.absent} <= {relation.name for relation in relations}:
        raise InvalidInput("a pattern names only streams that it reads with NOT")


def _check_pattern(pattern: Pattern) -> None:
    if depth_of(pattern) > MAX_PATTERN_DEPTH:
        raise InvalidInput(f"a pattern is nested at most {MAX_PATTERN_DEPTH} deep")
    if length_of(pattern) > MAX_LENGTH:
        raise InvalidInput(
            f"a pattern has at most {MAX_LENGTH} variables, a part in {{n}} counted n times"
        )
    if may_be_empty(pattern):
        raise InvalidInput("a match has at least one row; use + in place of *")
    for part in _parts(pattern):
        if isinstance(part, PatternRepeat):
            if may_be_empty(part.part):
                raise InvalidInput("a part that may be empty has no quantifier of its own")
            if not 0 <= part.least <= (part.least if part.most is None else part.most):
                raise InvalidInput("in {n,m} of a pattern, n is from 0 to m")
            if part.most == 0:
                raise InvalidInput("a part that is there zero times is left out")
        elif isinstance(part, PatternSequence | PatternChoice) and not part.parts:
            raise InvalidInput("a pattern has at least one variable")


def _parts(pattern: Pattern) -> Iterator[Pattern]:
    yield pattern
    match pattern:
        case PatternSequence(parts) | PatternChoice(parts):
            for part in parts:
                yield from _parts(part)
        case PatternRepeat(part):
            yield from _parts(part)


def _check_skip(node: Match) -> None:
    named = node.skip.to in (SkipTo.FIRST, SkipTo.LAST)
    if named != (node.skip.variable is not None):
        raise InvalidInput("AFTER MATCH SKIP TO FIRST and TO LAST name a variable")
    if named and node.skip.variable not in {*variables_of(node.pattern)}:
        raise InvalidInput(f"AFTER MATCH names {node.skip.variable!r}, and PATTERN does not")


def _check_reading(reading: Reading, schema: Schema, variables: set[str]) -> None:
    if reading.function not in {FIRST, LAST, CLASSIFIER, *PATTERN_AGGREGATES}:
        known = ", ".join((FIRST, LAST, CLASSIFIER, *PATTERN_AGGREGATES))
        raise InvalidInput(f"a pattern has no function {reading.function!r}; there are: {known}")
    if reading.variable is not None and reading.variable not in variables:
        raise InvalidInput(f"PATTERN has no variable {reading.variable!r}")
    far = max(abs(reading.moved), reading.offset)
    if far > MAX_MOVED or reading.offset < 0:
        raise InvalidInput(f"FIRST, LAST, PREV and NEXT go at most {MAX_MOVED} rows on or back")
    if far and reading.function not in {FIRST, LAST}:
        raise InvalidInput(f"{reading.function} is not of a single row")
    if reading.function == CLASSIFIER and (reading.argument or reading.variable or reading.final):
        raise InvalidInput("CLASSIFIER() is of the current row")
    reading_type(reading, schema)


def _check_definitions(node: Match, schema: Schema, variables: set[str]) -> None:
    if len(node.readings) + len(node.measures) > MAX_READINGS:
        raise InvalidInput(f"a pattern reads at most {MAX_READINGS} values of its rows")
    names = [each.variable for each in node.definitions]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"DEFINE has {name!r} twice")
        if name not in variables:
            raise InvalidInput(f"DEFINE has {name!r}, and PATTERN does not")
    readings = tuple(Attribute(r.name, reading_type(r, schema)) for r in node.readings)
    for each in node.definitions:
        require_condition(each.condition, Schema((*schema.attributes, *readings)))

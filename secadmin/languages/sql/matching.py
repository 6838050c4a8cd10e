"""MATCH_RECOGNIZE over a relation of FROM: a pattern, and what its matches give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Call, Expression
from catalog.match_expressions import reading_type
from catalog.pattern import (
    CLASSIFIER,
    COUNT,
    FIRST,
    LAST,
    PATTERN_AGGREGATES,
    Definition,
    Pattern,
    Reading,
    variables_of,
)
from catalog.plan import MATCH_TIME, Column, Match, Project
from catalog.schema import Schema
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import AGGREGATES, NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.event_words import EventWords
from secadmin.languages.expressions.match_clause import MatchClause, PlacedName
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.sql.events import between, is_none_of, is_of, pattern_of, streams_of
from secadmin.languages.typed import Typed, attribute

PREV, NEXT, RUNNING, FINAL = "prev", "next", "running", "final"
_NUMBERED = (
    "MATCH_NUMBER() would tell how many matches came before, also those that you may not see; the "
    "time of a match's first row names it: FIRST(ts) AS began"
)


def read_match(clause: MatchClause, source: Built, environment: Environment) -> Built:
    """The matches of a pattern over a relation. Raises InvalidInput, with its position."""
    scope = Scope((Table.of("", source.schema),))
    if clause.pattern is None or clause.order is None:
        raise TypeError("a pattern of events has no relation of its own")
    variables = tuple(dict.fromkeys(variables_of(clause.pattern)))
    _check_names(clause, clause.order, source.schema, environment)
    _check_order(clause.order, source, scope)
    rows = _Rows(environment, scope, source.schema, variables)
    readings: list[Reading] = []
    definitions = tuple(
        Definition(variable, condition)
        for variable, condition in _conditions(clause, rows, readings)
    )
    return _built(clause, clause.pattern, rows, (definitions, tuple(readings)), source)


def read_events(clause: MatchClause, words: EventWords, environment: Environment) -> Built:
    """The matches of PATTERN SEQ, AND or OR. Raises InvalidInput, with its position."""
    source, schemas = streams_of(words, environment, clause.position)
    scopes = {name: Scope((Table.of("", schema),)) for name, schema in schemas.items()}
    scope = Scope((Table.of("", source.schema),))
    rows = _Rows(environment, scope, source.schema, tuple(schemas), scopes)
    readings: list[Reading] = []
    conditions = dict(_conditions(clause, rows, readings))
    definitions: list[Definition] = []
    behind, absent = "", list[Expression]()
    for event in words.events:
        own = is_of(event, conditions.get(event.variable.text))
        if event.absent:
            absent.append(own)
            continue
        if absent:
            definitions.append(Definition(between(behind), is_none_of(absent)))
        definitions.append(Definition(event.variable.text, own))
        behind, absent = event.variable.text, []
    missing = {each.variable.text for each in words.events if each.absent}
    for reading in readings:
        if reading.variable in missing:
            raise InvalidInput(
                f"{reading.variable!r} is not there, so nothing can be read of it", clause.position
            )
    never = tuple(dict.fromkeys(each.stream.text for each in words.events if each.absent))
    parts = (tuple(definitions), tuple(readings))
    return _built(clause, pattern_of(words), rows, parts, source, never)


def _conditions(
    clause: MatchClause, rows: _Rows, readings: list[Reading]
) -> Iterator[tuple[str, Expression]]:
    """The condition of each variable, whose readings are collected."""
    for name, tree, at in clause.definitions:
        variable = rows.variable(name, at)
        calls = RowCalls(rows, variable, readings)
        reader = Reader(rows.environment, rows.scope_of(variable), calls)
        yield variable, reader.read(tree).expression


def _built(
    clause: MatchClause,
    pattern: Pattern,
    rows: _Rows,
    parts: tuple[tuple[Definition, ...], tuple[Reading, ...]],
    source: Built,
    absent: tuple[str, ...] = (),
) -> Built:
    """The Match, and a Project of what MEASURES compute."""
    partition = tuple(_attribute(name, at, rows.scope) for name, at in clause.partition)
    measures, columns = _measures(clause, rows)
    node = Match(
        source.node,
        partition,
        measures,
        pattern,
        clause.within_ms,
        *parts,
        clause.skip,
        absent,
        clause.per_row,
    )
    built = build(node, (source,), clause.position)
    if columns is None:
        return built
    keys = source.schema.names if clause.per_row else tuple(each.name for each in partition)
    kept = (MATCH_TIME, *keys)
    plain = tuple(Column(name, AttributeRef(name)) for name in kept)
    return build(Project(built.node, (*plain, *columns)), (built,), clause.position)


def _check_names(
    clause: MatchClause, order: PlacedName, schema: Schema, environment: Environment
) -> None:
    """Refuse all attributes without a right together, as a list (003, algorithm 1)."""
    known = {name.lower() for name in schema.names}
    named = [*clause.partition, order]
    for _, tree, _ in (*clause.measures, *clause.definitions):
        named += [
            (str(node.this.this), environment.at(node))
            for node in tree.find_all(exp.Column, bfs=False)
            if isinstance(node.this, exp.Identifier)
        ]
    unknown = {name: at for name, at in reversed(named) if name.lower() not in known}
    if len(unknown) > 1:
        names = ", ".join(repr(name[:80]) for name in reversed(unknown))
        there = ", ".join(schema.names)
        first = next(at for name, at in named if name in unknown)
        raise InvalidInput(f"unknown attributes {names}; there are: {there}", first)


def _check_order(order: PlacedName, source: Built, scope: Scope) -> None:
    name, at = order
    if _attribute(name, at, scope).name != source.event_time:
        told = source.event_time or "and this relation has none"
        raise InvalidInput(f"ORDER BY names the event time, {told}", at)


def _attribute(name: str, at: Position, scope: Scope) -> AttributeRef:
    found = scope.resolve(name, None, at).expression
    if not isinstance(found, AttributeRef):
        raise InvalidInput("an attribute belongs here", at)
    return found


def _measures(
    clause: MatchClause, rows: _Rows
) -> tuple[tuple[Reading, ...], tuple[Column, ...] | None]:
    """The readings of MEASURES, and what is computed of them, or None if nothing is."""
    taken = {name for name, _, _ in clause.measures}
    taken |= {*rows.schema.names} if clause.per_row else set()
    readings: list[Reading] = []
    columns: list[Column] = []
    for name, tree, _ in clause.measures:
        found: list[Reading] = []
        calls = RowCalls(rows, None, found, per_row=clause.per_row)
        value = Reader(rows.environment, rows.scope, calls).read(tree).expression
        is_plain = isinstance(value, AttributeRef)
        names = {each.name: name if is_plain else _unused(name, taken) for each in found}
        readings += [replace(each, name=names[each.name]) for each in found]
        columns.append(Column(name, _renamed(value, names)))
    computed = any(column.expression != AttributeRef(column.name) for column in columns)
    return tuple(readings), tuple(columns) if computed else None


def _unused(name: str, taken: set[str]) -> str:
    number = 1
    while (made := f"{name}_{number}") in taken:
        number += 1
    taken.add(made)
    return made


def _renamed(expression: Expression, names: dict[str, str]) -> Expression:
    match expression:
        case AttributeRef(name, position):
            return AttributeRef(names[name], position)
        case Call(function, arguments, position):
            return Call(function, tuple(_renamed(a, names) for a in arguments), position)
        case _:
            return expression


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a pattern is about."""

    environment: Environment
    scope: Scope
    schema: Schema
    variables: Sequence[str]
    # If the rows are of several streams: what each variable's stream has.
    scopes: Mapping[str, Scope] = field(default_factory=dict)

    def scope_of(self, variable: str | None) -> Scope:
        """The attributes of a variable's rows."""
        return self.scopes.get(variable or "", self.scope)

    def variable(self, name: str, at: Position) -> str:
        """The variable of that name, in any case where this is not ambiguous."""
        if name in self.variables:
            return name
        alike = [each for each in self.variables if each.lower() == name.lower()]
        if len(alike) != 1:
            known = ", ".join(self.variables)
            raise InvalidInput(f"PATTERN has no variable {name[:80]!r}; there are: {known}", at)
        return alike[0]


@dataclass(frozen=True, slots=True)
class RowCalls:
    """Reads the values of rows, and collects them. Each becomes the attribute `row.<n>`.

    `own` is the variable that is defined, or None in MEASURES. If each row is a result (`per_row`),
    FINAL makes a value one of the whole match. A user's name never has a digit after a dot, so
    these names are always new.
    """

    rows: _Rows
    own: str | None
    found: list[Reading]
    per_row: bool = False
    final: bool = False

    def special(self, node: exp.Expr, name: str, reader: Reader) -> Typed | None:
        """The value of FIRST, LAST, PREV, NEXT, an aggregate and so on, or None for others."""
        place = reader.environment.at(node)
        if name == "match_number":
            raise InvalidInput(_NUMBERED, place)
        if name in (RUNNING, FINAL):
            return self._when(node, name, reader)
        if name == CLASSIFIER:
            return self._classified(node, place)
        if name in (FIRST, LAST, PREV, NEXT):
            return self._navigated(node, name, place)
        if name not in AGGREGATES:
            return None
        function = AGGREGATES[name]
        if function not in PATTERN_AGGREGATES or name == "count_if":
            known = ", ".join(PATTERN_AGGREGATES).upper()
            raise InvalidInput(
                f"a pattern has the aggregates {known}, and no {name.upper()}", place
            )
        return self._aggregated(node, function, place)

    def column(self, name: str, alias: str | None, position: Position) -> Typed | None:
        """The value in the current row, or in the last row of a variable."""
        variable = None if alias is None else self.rows.variable(alias, position)
        if self.own is not None and variable in (None, self.own):
            return self.rows.scope_of(self.own).resolve(name, None, position)
        argument = self.rows.scope_of(variable).resolve(name, None, position).expression
        return self._add(Reading("", LAST, variable, argument), position)

    def _when(self, node: exp.Expr, name: str, reader: Reader) -> Typed:
        """RUNNING or FINAL before another function of rows."""
        place = reader.environment.at(node)
        inner = node.expressions[0] if len(node.expressions) == 1 else None
        called = _name_of(inner)
        if inner is None or called not in {FIRST, LAST, PREV, NEXT, *AGGREGATES}:
            raise InvalidInput(
                f"{name.upper()} belongs before FIRST, LAST or an aggregate: "
                f"{name.upper()} LAST(price)",
                place,
            )
        if self.own is not None and name == FINAL:
            raise InvalidInput("DEFINE decides row by row: FINAL is for MEASURES", place)
        calls = replace(self, final=name == FINAL and self.per_row)
        return Reader(reader.environment, reader.scope, calls).read(inner)

    def _classified(self, node: exp.Expr, place: Position) -> Typed:
        if self.own is not None:
            raise InvalidInput(
                f"in DEFINE the current row is mapped to {self.own!r}: CLASSIFIER() is for "
                "MEASURES",
                place,
            )
        if node.expressions:
            raise InvalidInput("CLASSIFIER() takes no argument", place)
        return self._add(Reading("", CLASSIFIER, None, None), place)

    def _navigated(self, node: exp.Expr, name: str, place: Position) -> Typed:
        """FIRST or LAST, PREV or NEXT, or PREV or NEXT of FIRST or LAST."""
        inner, number = self._counted(node, name, place)
        if name in (FIRST, LAST):
            variable, argument = self._argument(inner)
            made = Reading("", name, variable, argument, offset=number or 0)
            return self._add(made, place)
        called = _name_of(inner)
        if called in (FIRST, LAST):
            row, offset = self._counted(inner, called, place)
            variable, argument = self._argument(row)
            made = Reading("", called, variable, argument, offset=offset or 0)
        else:
            variable, argument = self._argument(inner)
            # The current row is the last one of its own variable.
            made = Reading("", LAST, None if variable == self.own else variable, argument)
        number = 1 if number is None else number
        return self._add(replace(made, moved=number if name == NEXT else -number), place)

    def _counted(self, node: exp.Expr, name: str, place: Position) -> tuple[exp.Expr, int | None]:
        """The argument of a function that goes over rows, and over how many."""
        self.rows.environment.only(node, "this", "expressions")
        if len(node.expressions) not in (1, 2):
            raise InvalidInput(f"{name.upper()} takes a value, and perhaps how many rows", place)
        inner, *further = node.expressions
        if not further:
            return inner, None
        given = further[0]
        number = given.this if isinstance(given, exp.Literal) and not given.is_string else ""
        if not (number.isdecimal() and len(number) < 4):
            raise InvalidInput(
                f"{name.upper()} goes over a number of rows: {name.upper()}(price, 2)", place
            )
        return inner, int(number)

    def _aggregated(self, node: exp.Expr, function: str, place: Position) -> Typed:
        self.rows.environment.only(node, "this", "expressions")
        if len(node.expressions) != 1:
            raise InvalidInput(f"{function.upper()} takes one argument", place)
        (given,) = node.expressions
        if function == COUNT and isinstance(given, exp.Star):
            return self._add(Reading("", COUNT, None, None), place)
        if function == COUNT and isinstance(given, exp.Column) and isinstance(given.this, exp.Star):
            name = self.rows.environment.identifier(given.args.get("table"))
            return self._add(Reading("", COUNT, self.rows.variable(name, place), None), place)
        variable, argument = self._argument(given)
        return self._add(Reading("", function, variable, argument), place)

    def _argument(self, node: exp.Expr) -> tuple[str | None, Expression]:
        """The expression over one row, and the variable whose rows are meant (None: all)."""
        calls = _OneRow(self.rows)
        value = Reader(self.rows.environment, self.rows.scope, calls).read(node)
        if len(calls.named) > 1:
            raise InvalidInput("a value inside of these is of one variable", value.position)
        return next(iter(calls.named), None), value.expression

    def _add(self, wanted: Reading, place: Position) -> Typed:
        """The value of a reading. One that is there twice has one name."""
        named = replace(wanted, name=f"row.{len(self.found)}", final=self.final)
        made = next((each for each in self.found if replace(named, name=each.name) == each), named)
        if made is named:
            self.found.append(made)
        return attribute(made.name, reading_type(made, self.rows.schema), place)


@dataclass(frozen=True, slots=True)
class _OneRow:
    """The inside of FIRST, LAST, PREV, NEXT and aggregates: one row. `named` has its variables."""

    rows: _Rows
    named: set[str] = field(default_factory=set)

    def special(self, node: exp.Expr, name: str, reader: Reader) -> Typed | None:
        """None for a scalar function. Raises InvalidInput for the others."""
        if name in _OF_ROWS:
            place = reader.environment.at(node)
            raise InvalidInput(f"{name.upper()} cannot be used in {_INSIDE}", place)
        return NoCalls(_INSIDE).special(node, name, reader)

    def column(self, name: str, alias: str | None, position: Position) -> Typed | None:
        """The attribute of the row."""
        variable = None if alias is None else self.rows.variable(alias, position)
        if variable is not None:
            self.named.add(variable)
        return self.rows.scope_of(variable).resolve(name, None, position)


_INSIDE = "another function of rows"
_OF_ROWS = (FIRST, LAST, PREV, NEXT, RUNNING, FINAL, CLASSIFIER, "match_number")


def _name_of(node: exp.Expr | None) -> str:
    """The function that a syntax tree calls, in lower case, or nothing."""
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""

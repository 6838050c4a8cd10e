"""Interval joins: ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL ... AND a.ts + INTERVAL ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import Expression, attributes_of, conjuncts
from catalog.moments import moments
from catalog.plan import Join, JoinKind
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.syntax import conditions as connected
from secadmin.languages.expressions.windows import interval
from secadmin.languages.join_sides import qualified, split_equal
from secadmin.languages.sql.from_clause import Item, ReadQuery, read_item
from secadmin.languages.sql.time_bounds import (
    Bound,
    Sides,
    bounds,
    is_condition_too,
    written_moments,
)

_KINDS = {
    **dict.fromkeys(("", "INNER", "CROSS"), JoinKind.INNER),
    **dict.fromkeys(("LEFT", "LEFT OUTER"), JoinKind.LEFT),
    **dict.fromkeys(("RIGHT", "RIGHT OUTER"), JoinKind.RIGHT),
    **dict.fromkeys(("FULL", "FULL OUTER"), JoinKind.FULL),
    **dict.fromkeys(("SEMI", "LEFT SEMI"), JoinKind.SEMI),
    **dict.fromkeys(("ANTI", "LEFT ANTI"), JoinKind.ANTI),
}
_WHAT = (
    "a join names what is equal and bounds the time: write JOIN ... ON a.k = b.k AND "
    "b.ts BETWEEN a.ts - INTERVAL '5' MINUTE AND a.ts + INTERVAL '5' MINUTE"
)


@dataclass(frozen=True, slots=True)
class Joining:
    """An item that is joined to those before it.

    `node` is its JOIN, or what is behind a comma. `on` is its condition, or None. `within` is
    the WITHIN of ksqlDB: one length for both directions, or one for each.
    """

    node: exp.Expr
    item: Item
    kind: JoinKind
    on: exp.Expr | None
    within: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """What FROM gives, and the scope of a SELECT over it.

    `where` has the conditions of WHERE that are still to be applied.
    """

    built: Built
    scope: Scope
    where: Sequence[exp.Expr]


def join_streams(
    first: Item, joins: Sequence[Joining], where: Sequence[exp.Expr], environment: Environment
) -> Joined:
    """The joins of FROM, from the left to the right. Raises InvalidInput.

    If all of them are inner ones, WHERE may bound the time of a join too, and it says what is equal
    for an item behind a comma.
    """
    check_names([first, *(each.item for each in joins)], environment)
    built = qualified(first.built, first.alias, environment.at(first.node))
    _event_time(built, environment.at(first.node))
    found = Joined(built, Scope((first.table(f"{first.alias}."),)), where)
    early = all(each.kind is JoinKind.INNER for each in joins)
    for each in joins:
        found = _joined(found, each, environment, early=early)
    return found


def joining(joined: exp.Expr, environment: Environment, read_query: ReadQuery) -> Joining:
    """The item of a JOIN, or of one behind a comma. Raises InvalidInput."""
    on, within = joined.args.get("on"), joined.this.args.pop("within", None)
    if joined.args.get("using"):
        raise InvalidInput(_WHAT, environment.at(joined))
    item = read_item(joined.this, environment, read_query)
    environment.only(joined, "this", "on", "kind", "side", "method")
    kind = kind_of(joined, environment)
    return Joining(joined, item, kind, on if isinstance(on, exp.Expr) else None, within)


def _joined(before: Joined, each: Joining, environment: Environment, *, early: bool) -> Joined:
    """The join of one more item."""
    left, item, place = before.built, each.item, environment.at(each.on or each.node)
    if each.on is None and not (early and before.where):
        raise InvalidInput(_WHAT, place)
    right = qualified(item.built, item.alias, environment.at(item.node))
    table = item.table(f"{item.alias}.")
    scope = Scope((*before.scope.tables, table))
    mine, other = (_event_time(side, environment.at(item.node)) for side in (left, right))
    sides = Sides(
        written_moments(before.scope.tables, moments(left.checked), (table,)),
        written_moments((table,), moments(right.checked), before.scope.tables),
        environment,
    )
    reader = Reader(environment, scope, NoCalls("ON"))
    parts = [] if each.on is None else connected(each.on, environment.place)
    taken = []
    if early:
        both = ({*left.schema.names}, {*right.schema.names}) if each.on is None else None
        taken = [part for part in before.where if _belongs(part, sides, reader, both)]
    found, conditions = read_on([*parts, *taken], sides, reader)
    if each.within is not None:
        lengths = [interval(length, environment) for length in each.within.expressions]
        found += [Bound(lower=True, ms=-lengths[0]), Bound(lower=False, ms=lengths[-1])]
    clause = "WHERE" if each.on is None else "ON"
    limits = interval_of(found, mine, other, place, clause)
    equal, rest = split_equal(conditions, left, right)
    node = Join(left.node, right.node, equal, *limits, rest, each.kind)
    return Joined(
        build(node, (left, right), place),
        scope if each.kind.shows_right else before.scope,
        [part for part in before.where if part not in taken],
    )


def _belongs(
    part: exp.Expr, sides: Sides, reader: Reader, both: tuple[set[str], set[str]] | None
) -> bool:
    """Whether a condition of WHERE is one of the join.

    That is a bound of its time. If `both` has the names of both sides, it is also what compares
    the two.
    """
    if bounds(part, sides):
        return True
    if both is None or part.find(exp.Select, exp.Interval):
        return False
    for column in part.find_all(exp.Column):
        name, alias = reader.environment.column(column)
        known = [t for t in reader.scope.tables if alias in (None, t.alias)]
        names = {field.name.lower() for table in known for field in table.fields}
        if name.lower() not in names:
            # It is of an item that comes later.
            return False
    read = {ref.name for ref in attributes_of(reader.read(part).expression)}
    return all(read & side for side in both)


def check_names(items: Sequence[Item], environment: Environment) -> None:
    """Refuse a join whose sides cannot be told apart. Raises InvalidInput."""
    for number, item in enumerate(items):
        for other in items[:number]:
            _check_aliases(other, item, environment)


def _check_aliases(left: Item, right: Item, environment: Environment) -> None:
    for item in (left, right):
        if not item.alias:
            raise InvalidInput("in a join each side has a name: add AS", environment.at(item.node))
    if left.alias == right.alias:
        raise InvalidInput(
            f"both sides are called {left.alias!r}; rename one with AS", environment.at(right.node)
        )


def kind_of(joined: exp.Expr, environment: Environment) -> JoinKind:
    """Which rows a JOIN gives. Raises InvalidInput for a kind that there is not."""
    words = [str(joined.args.get(part) or "").upper() for part in ("method", "side", "kind")]
    kind = " ".join(word for word in words if word)
    if kind not in _KINDS:
        raise InvalidInput(
            f"there is no {kind} JOIN: write JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN, LEFT SEMI "
            "JOIN or LEFT ANTI JOIN, each with ON",
            environment.at(joined),
        )
    return _KINDS[kind]


def _event_time(side: Built, place: Position) -> str:
    if side.event_time is None:
        alias = side.schema.names[0].partition(".")[0]
        raise InvalidInput(
            f"a join goes by event time, but {alias!r} has none: "
            "keep the stream's event-time attribute under one name",
            place,
        )
    return side.event_time


def read_on(
    parts: Sequence[exp.Expr], sides: Sides, reader: Reader
) -> tuple[list[Bound], list[Expression]]:
    """The time bounds among the conditions of a join, and the others. Raises InvalidInput."""
    found: list[Bound] = []
    conditions: list[Expression] = []
    for part in parts:
        own = bounds(part, sides)
        found += own
        equal_times = isinstance(part, exp.EQ) and bool(own) and not part.find(exp.Interval)
        if not own or equal_times or is_condition_too(part):
            conditions += conjuncts(reader.read(part).expression)
    return found, conditions


def interval_of(
    found: list[Bound], mine: str, other: str, place: Position, clause: str = "ON"
) -> tuple[int, int]:
    """The limits of the distance in time. Raises InvalidInput if there is none on one side.

    `mine` and `other` are the event times of the left and of the right side.
    """
    lower = [bound.ms for bound in found if bound.lower]
    upper = [bound.ms for bound in found if not bound.lower]
    for given, missing in (
        (lower, f"{other} >= {mine} - INTERVAL '5' MINUTE"),
        (upper, f"{other} <= {mine} + INTERVAL '5' MINUTE"),
    ):
        if not given:
            raise InvalidInput(
                f"this join would keep tuples for ever; add a time bound to {clause}: "
                f"AND {missing}",
                place,
            )
    if max(lower) > min(upper):
        raise InvalidInput("the time bounds of this join leave no time between them", place)
    return max(lower), min(upper)

"""Interval joins: ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL ... AND a.ts + INTERVAL ..."""

from __future__ import annotations

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import Expression, conjuncts
from catalog.plan import Join, JoinKind
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.syntax import conditions as connected
from secadmin.languages.expressions.windows import interval
from secadmin.languages.join_sides import qualified, split_equal
from secadmin.languages.sql.from_clause import Item
from secadmin.languages.sql.time_bounds import Bound, Sides, bounds, is_condition_too

_KINDS = {
    **dict.fromkeys(("", "INNER", "CROSS"), JoinKind.INNER),
    **dict.fromkeys(("LEFT", "LEFT OUTER"), JoinKind.LEFT),
    **dict.fromkeys(("RIGHT", "RIGHT OUTER"), JoinKind.RIGHT),
    **dict.fromkeys(("FULL", "FULL OUTER"), JoinKind.FULL),
    **dict.fromkeys(("SEMI", "LEFT SEMI"), JoinKind.SEMI),
    **dict.fromkeys(("ANTI", "LEFT ANTI"), JoinKind.ANTI),
}


def join(
    left: Item,
    right: Item,
    on: exp.Expr,
    kind: JoinKind,
    environment: Environment,
    within: exp.Expr | None = None,
) -> tuple[Built, Scope]:
    """The join of two items of FROM, and the scope of a SELECT over it. Raises InvalidInput.

    `within` is the WITHIN of ksqlDB: one length for both directions, or one for each.
    """
    check_aliases(left, right, environment)
    times = [_event_time(item, environment) for item in (left, right)]
    both = [qualified(item.built, item.alias, environment.at(item.node)) for item in (left, right)]
    scope = Scope(tuple(item.table(f"{item.alias}.") for item in (left, right)))
    sides = Sides(*_written(left, right, times), environment)
    found, conditions = read_on(on, sides, Reader(environment, scope, NoCalls("ON")))
    if within is not None:
        lengths = [interval(length, environment) for length in within.expressions]
        found += [Bound(lower=True, ms=-lengths[0]), Bound(lower=False, ms=lengths[-1])]
    place = environment.at(on)
    lower, upper = interval_of(found, left.alias, right.alias, times, place)
    equal, rest = split_equal(conditions, *both)
    node = Join(both[0].node, both[1].node, equal, lower, upper, rest, kind)
    shown = scope if kind.shows_right else Scope(scope.tables[:1])
    return build(node, (both[0], both[1]), place), shown


def check_aliases(left: Item, right: Item, environment: Environment) -> None:
    """Refuse a join whose sides cannot be told apart. Raises InvalidInput."""
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


def _event_time(item: Item, environment: Environment) -> str:
    name = item.built.event_time
    if name is None:
        raise InvalidInput(
            f"a join goes by event time, but {item.alias!r} has none: "
            "keep the stream's event-time attribute under one name",
            environment.at(item.node),
        )
    return name


def _written(left: Item, right: Item, times: list[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The names of each side's event time: qualified, and also plain if the other side lacks it."""
    names = []
    for item, other, time in ((left, right, times[0]), (right, left, times[1])):
        plain = {time} if other.built.schema.get(time) is None else set()
        names.append(frozenset({f"{item.alias}.{time}", *plain}))
    return names[0], names[1]


def read_on(on: exp.Expr, sides: Sides, reader: Reader) -> tuple[list[Bound], list[Expression]]:
    """The time bounds of a condition, and its other parts. Raises InvalidInput."""
    found: list[Bound] = []
    conditions: list[Expression] = []
    for part in connected(on, reader.environment.place):
        own = bounds(part, sides)
        found += own
        equal_times = isinstance(part, exp.EQ) and bool(own) and not part.find(exp.Interval)
        if not own or equal_times or is_condition_too(part):
            conditions += conjuncts(reader.read(part).expression)
    return found, conditions


def interval_of(  # what a message names
    found: list[Bound], left: str, right: str, times: list[str], place: Position, clause: str = "ON"
) -> tuple[int, int]:
    """The limits of the distance in time. Raises InvalidInput if there is none on one side."""
    lower = [bound.ms for bound in found if bound.lower]
    upper = [bound.ms for bound in found if not bound.lower]
    mine, other = f"{left}.{times[0]}", f"{right}.{times[1]}"
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

"""Rows of moving windows in an order: ROW_NUMBER, LAG and LEAD, and ORDER BY with LIMIT.

OVER without a moving window is meant over all tuples of the stream so far, as groups are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Call, Expression, Literal, conjuncts
from catalog.plan import (
    Column,
    Moving,
    MovingWindow,
    Project,
    Ranked,
    ToStream,
    walk,
)
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.sql.orders import Ordering, whole
from secadmin.languages.sql.over_windows import now_of_windows
from secadmin.languages.text import placed

_BOUNDS = {"<=": 0, "<": -1, "=": 0}
_TURNED = {">=": "<=", ">": "<", "=": "="}


def is_ranked(node: exp.Select) -> bool:
    """Whether a SELECT asks for an order."""
    clauses = (node.args.get("order"), node.args.get("limit"))
    return any(clauses) or has_over(node)


def has_over(node: exp.Select) -> bool:
    """Whether a SELECT has OVER among its results."""
    return any(item.find(exp.Window) is not None for item in node.expressions)


def over_place(node: exp.Select, environment: Environment) -> Position:
    """The place of the first result of a SELECT that has OVER."""
    return environment.at(next(e for e in node.expressions if e.find(exp.Window) is not None))


def without_window(node: exp.Select, source: Built, environment: Environment) -> Built:
    """The relation over which OVER goes if no moving window is written. Raises InvalidInput.

    It holds all tuples so far. Of windows of time it holds the results of those that end now.
    """
    place = over_place(node, environment)
    windows = now_of_windows(source, place)
    if windows is not None:
        return windows
    if source.event_time is None:
        raise InvalidInput(
            "OVER goes over a stream with an event time, because time says which tuples have come",
            place,
        )
    if source.checked.keeps_state:
        raise InvalidInput(
            "OVER goes over streams, moving windows and the results of TUMBLE and HOP, and not "
            "over sessions or a join of streams; add what it goes over as a query of its own, and "
            "write OVER over the output of that",
            place,
        )
    return build(Moving(source.node, MovingWindow()), (source,), place)


def read_ranked(
    node: exp.Select, source: Built, scope: Scope, environment: Environment
) -> tuple[Built, tuple[Column, ...]]:
    """The ordered rows of a relation, and the results of SELECT. Raises InvalidInput."""
    require_rows(node, environment)
    reader = Reader(environment, scope, NoCalls("ORDER BY"))
    aliases = (item.alias for item in node.expressions if isinstance(item, exp.Alias))
    taken = {*source.schema.names, *aliases}
    reading = Ordering(reader, source.schema, has_over(node), taken)
    columns = [column for item in node.expressions for column in reading.item(item)]
    if node.args.get("order") is not None or node.args.get("limit") is not None:
        reading.limit(node)
    return build(reading.node(source), (source,), environment.at(node)), tuple(columns)


def require_rows(node: exp.Select, environment: Environment) -> None:
    """Refuse an order beside groups or DISTINCT."""
    for clause in ("group", "having", "distinct"):
        other = node.args.get(clause)
        if other is not None:
            raise InvalidInput(
                "an order goes over rows, and not over DISTINCT, and OVER not over groups; write "
                "the groups in a query inside FROM: SELECT ... FROM (SELECT ... GROUP BY ...)",
                environment.at(other if isinstance(other, exp.Expr) else node),
            )


def read_first(node: exp.Select, groups: Built, environment: Environment) -> Built:
    """The first ones of groups, in the order of their results. Raises InvalidInput."""
    scope = Scope((Table.of("", groups.schema),))
    reading = Ordering(Reader(environment, scope, NoCalls("ORDER BY")), groups.schema)
    reading.limit(node)
    return build(reading.node(groups), (groups,), environment.at(node))


def limited(stream: Built, condition: Expression) -> Built:
    """The stream of numbered rows with the limit that a condition on the number implies.

    Other streams stay as they are.
    """
    layers = []
    checked = stream.checked
    while isinstance(checked.node, Project | ToStream):
        layers.append(checked)
        checked = checked.inputs[0]
    node = checked.node
    if not isinstance(node, Ranked) or node.number is None or node.limit is not None:
        return stream
    name: str | None = node.number
    for layer in reversed(layers):
        if isinstance(layer.node, Project):
            name = _renamed(layer.node.columns, name)
    bounds = [_bound(part, name) for part in conjuncts(condition)]
    most = min((bound for bound in bounds if bound is not None), default=None)
    if most is None or most < 1:
        return stream
    built = Built(checked.inputs[0], stream.parts)
    with placed(condition.position):
        built = build(replace(node, limit=most), (built,), condition.position)
        for layer in reversed(layers):
            above = layer.node
            if isinstance(above, Project | ToStream):
                built = build(replace(above, input=built.node), (built,), condition.position)
    return replace(built, parts=stream.parts)


def keeps_one(relation: Built, wheres: Sequence[exp.Expr]) -> bool:
    """Whether conditions keep one row of each partition, which newer rows replace.

    The rows are numbered, and come from all tuples so far. Rows in the order of their event times
    are not replaced: the first one stays the first one.
    """
    layers, checked = [], relation.checked
    while isinstance(checked.node, Project):
        layers.append(checked.node.columns)
        checked = checked.inputs[0]
    node = checked.node
    if not isinstance(node, Ranked) or node.number is None or not node.partition or node.limit:
        return False
    if not all(e.window == MovingWindow() for e in walk(node) if isinstance(e, Moving)):
        return False
    first = node.order[0]
    if not first.descending and first.attribute.name == checked.inputs[0].event_time:
        return False
    name: str | None = node.number
    for columns in reversed(layers):
        name = _renamed(columns, name)
    return name is not None and any(_asks_for_first(each, name) for each in wheres)


def _asks_for_first(condition: exp.Expr, number: str) -> bool:
    """Whether a condition is rn = 1, or says the same."""
    if not isinstance(condition, exp.EQ | exp.LTE | exp.LT):
        return False
    left, right = condition.this, condition.expression
    if isinstance(condition, exp.EQ) and isinstance(left, exp.Literal):
        left, right = right, left
    most = 2 if isinstance(condition, exp.LT) else 1
    named = isinstance(left, exp.Column) and left.name == number
    return named and isinstance(right, exp.Literal) and whole(right) == most


def _renamed(columns: Sequence[Column], name: str | None) -> str | None:
    found = (c.name for c in columns if c.expression == AttributeRef(name or ""))
    return next(found, None)


def _bound(part: Expression, name: str | None) -> int | None:
    """How large the number may be at most."""
    match part:
        case Call(function, (AttributeRef(of), Literal(int() as value))) if of == name:
            return value + _BOUNDS[function] if function in _BOUNDS else None
        case Call(function, (Literal(int() as value), AttributeRef(of))) if of == name:
            return value + _BOUNDS[_TURNED[function]] if function in _TURNED else None
    return None

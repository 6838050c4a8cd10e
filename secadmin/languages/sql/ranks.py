"""Rows of moving windows in an order: ROW_NUMBER, LAG and LEAD, and ORDER BY with LIMIT.

OVER without a moving window is meant over all tuples of the stream so far, as groups are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Call, Expression, Literal, conjuncts
from catalog.plan import (
    Column,
    Moving,
    MovingWindow,
    Neighbour,
    OrderKey,
    Project,
    Ranked,
    ToStream,
    walk,
)
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.refusals import RANKED
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.sql.stars import is_star, star_columns
from secadmin.languages.text import placed

_BOUNDS = {"<=": 0, "<": -1, "=": 0}
_TURNED = {">=": "<=", ">": "<", "=": "="}


def is_ranked(node: exp.Select) -> bool:
    """Whether a SELECT asks for an order."""
    clauses = (node.args.get("order"), node.args.get("limit"))
    return any(clauses) or has_over(node)


def has_over(node: exp.Select) -> bool:
    """Whether a SELECT has OVER among its results."""
    return any(_over(item) is not None for item in node.expressions)


def _over(item: exp.Expr) -> exp.Window | None:
    inner = item.this if isinstance(item, exp.Alias) else item
    return inner if isinstance(inner, exp.Window) else None


def without_window(node: exp.Select, source: Built, environment: Environment) -> Built:
    """The relation of all tuples so far, over which OVER goes if no window is written.

    Raises InvalidInput.
    """
    place = environment.at(next(item for item in node.expressions if _over(item) is not None))
    if source.event_time is None:
        raise InvalidInput(
            "OVER goes over a stream with an event time, because time says which tuples have come",
            place,
        )
    if source.checked.keeps_state:
        raise InvalidInput(
            "OVER goes over streams and moving windows, and not over a join of streams or the "
            "results of windows of time; add what it goes over as a query of its own, and write "
            "OVER over the output of that",
            place,
        )
    return build(Moving(source.node, MovingWindow()), (source,), place)


def read_ranked(
    node: exp.Select, source: Built, scope: Scope, environment: Environment
) -> tuple[Built, tuple[Column, ...]]:
    """The ordered rows of a relation, and the results of SELECT. Raises InvalidInput."""
    for clause in ("group", "having", "distinct"):
        other = node.args.get(clause)
        if other is not None:
            raise InvalidInput(
                "an order goes over rows, and not over DISTINCT, and OVER not over groups; write "
                "the groups in a query inside FROM: SELECT ... FROM (SELECT ... GROUP BY ...)",
                environment.at(other if isinstance(other, exp.Expr) else node),
            )
    reading = _Reading(Reader(environment, scope, NoCalls("ORDER BY")))
    columns = [column for item in node.expressions for column in reading.item(item)]
    if node.args.get("order") is not None or node.args.get("limit") is not None:
        reading.limit(node)
    made = replace(reading.node(source), input=source.node)
    return build(made, (source,), environment.at(node)), tuple(columns)


def read_first(node: exp.Select, groups: Built, environment: Environment) -> Built:
    """The first ones of groups, in the order of their results. Raises InvalidInput."""
    scope = Scope((Table.of("", groups.schema),))
    reading = _Reading(Reader(environment, scope, NoCalls("ORDER BY")))
    reading.limit(node)
    return build(reading.node(groups), (groups,), environment.at(node))


@dataclass
class _Reading:
    """Reads the parts of a SELECT over ordered rows. All its OVER have one order."""

    reader: Reader
    partition: tuple[AttributeRef, ...] | None = None
    order: tuple[OrderKey, ...] = ()
    number: str | None = None
    most: int | None = None
    neighbours: list[Neighbour] = field(default_factory=list)

    @property
    def environment(self) -> Environment:
        """That of the SELECT."""
        return self.reader.environment

    def node(self, source: Built) -> Ranked:
        """The node over a source."""
        neighbours = tuple(self.neighbours)
        return Ranked(
            source.node, self.partition or (), self.order, self.most, self.number, neighbours
        )

    def item(self, item: exp.Expr) -> list[Column]:
        """The results of an item of SELECT."""
        environment = self.environment
        if is_star(item):
            return star_columns(item, self.reader.scope, environment)
        over = _over(item)
        name = environment.new_name(item.args["alias"]) if isinstance(item, exp.Alias) else None
        if over is None:
            value = self._attribute(item.this if isinstance(item, exp.Alias) else item)
            return [Column(name or value.name.rpartition(".")[2], value)]
        if name is None:
            raise InvalidInput(
                "give this result a name with AS, such as AS rn", environment.at(item)
            )
        self._window(over)
        self._function(over.this, name)
        return [Column(name, AttributeRef(name, environment.at(item)))]

    def _attribute(self, node: exp.Expr) -> AttributeRef:
        value = self.reader.read(node).expression
        if not isinstance(value, AttributeRef):
            raise InvalidInput(
                "beside an order, SELECT, PARTITION BY and ORDER BY name attributes; compute in a "
                "WITH before this query, or in a query around it",
                self.environment.at(node),
            )
        return value

    def _window(self, over: exp.Window) -> None:
        environment = self.environment
        environment.only(over, "this", "partition_by", "order", "over")
        partition = tuple(map(self._attribute, over.args.get("partition_by") or ()))
        order = self._order(over.args.get("order"), over)
        if self.partition is not None and (self.partition, self.order) != (partition, order):
            raise InvalidInput(
                "all OVER of a query have one PARTITION BY and one ORDER BY; add the other as a "
                "query of its own",
                environment.at(over),
            )
        self.partition, self.order = partition, order

    def _order(self, clause: exp.Expr | None, node: exp.Expr) -> tuple[OrderKey, ...]:
        environment = self.environment
        if clause is None:
            raise InvalidInput("OVER needs ORDER BY here", environment.at(node))
        environment.only(clause, "expressions")
        keys = []
        for each in clause.expressions:
            environment.only(each, "this", "desc", "nulls_first")
            descending = bool(each.args.get("desc"))
            if each.args.get("nulls_first") is descending:
                raise InvalidInput(
                    "NULL is before all other values, or last with DESC; leave NULLS out",
                    environment.at(each),
                )
            keys.append(OrderKey(self._attribute(each.this), descending))
        return tuple(keys)

    def _function(self, call: exp.Expr, name: str) -> None:
        environment = self.environment
        function = str(call.this).upper() if isinstance(call, exp.Anonymous) else ""
        arguments = call.expressions
        place = environment.at(call)
        if function == "ROW_NUMBER" and not arguments:
            if self.number is not None:
                raise InvalidInput("a query has one ROW_NUMBER", place)
            self.number = name
            return
        if function not in RANKED or not 1 <= len(arguments) <= 2 or function == "ROW_NUMBER":
            raise InvalidInput(
                "OVER goes with ROW_NUMBER(), LAG(attribute) and LEAD(attribute), or with the "
                "number of rows: LAG(price, 2)",
                place,
            )
        count = _whole(arguments[1]) if len(arguments) == 2 else 1
        if count is None:
            raise InvalidInput(f"{function} goes a whole number of rows back or on", place)
        offset = count if function == "LAG" else -count
        self.neighbours.append(Neighbour(name, self._attribute(arguments[0]), offset))

    def limit(self, node: exp.Select) -> None:
        """Read ORDER BY ... LIMIT behind the query."""
        environment = self.environment
        order, limit = node.args.get("order"), node.args.get("limit")
        if not isinstance(order, exp.Expr):
            raise InvalidInput(
                "LIMIT keeps the first rows of an order: write ORDER BY price DESC LIMIT 10",
                environment.at(limit or node),
            )
        if self.order:
            raise InvalidInput(
                "OVER orders the rows, so ORDER BY and LIMIT have no other order; leave them out",
                environment.at(order),
            )
        if not isinstance(limit, exp.Expr):
            raise InvalidInput(_SORTED, environment.at(order))
        environment.only(limit, "expression")
        self.most = _whole(limit.args["expression"])
        if self.most is None:
            raise InvalidInput("LIMIT takes a whole number", environment.at(limit))
        self.order = self._order(order, order)


_SORTED = (
    "ORDER BY goes with LIMIT, which says how many rows are kept; a stream has no end: to sort, "
    "sort what you receive"
)


def _whole(node: exp.Expr) -> int | None:
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else None


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
    return named and isinstance(right, exp.Literal) and _whole(right) == most


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

"""Conditions of WHERE that ask whether another relation has a row: IN (SELECT ...) and EXISTS."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Call, Expression, attributes_of, conjuncts
from catalog.moments import moments
from catalog.plan import Filter, Join, JoinKind, MovingJoin
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.expressions.syntax import conditions
from secadmin.languages.join_sides import Equal, qualified, split_equal
from secadmin.languages.sql.from_clause import Item, ReadQuery, read_item
from secadmin.languages.sql.joins import interval_of, read_on
from secadmin.languages.sql.time_bounds import Sides, written_moments

_FORM = (
    "a query inside WHERE reads one moving window, such as EXISTS (SELECT 1 FROM quotes "
    "[RANGE 1 MINUTE] AS q WHERE q.symbol = t.symbol)"
)

_BOTH = (
    "a query inside WHERE reads a stream or output as the query around it does: give both a moving "
    "window, such as [RANGE 1 MINUTE], or none"
)
_TIMES = (
    "a query inside WHERE goes by event time, and one side has none: keep the event-time attribute "
    "under one name"
)


def is_semi(node: exp.Expr) -> bool:
    """Whether a condition asks for a row of another relation."""
    asked = _asked(node)[0]
    return isinstance(asked, exp.Exists) or (
        isinstance(asked, exp.In) and asked.args.get("query") is not None
    )


def _asked(node: exp.Expr) -> tuple[exp.Expr, bool]:
    """What is below NOT and parentheses, and whether it is to be true."""
    wanted = True
    while isinstance(node, exp.Not | exp.Paren):
        wanted = wanted != isinstance(node, exp.Not)
        node = node.this
    return node, wanted


@dataclass(frozen=True, slots=True)
class _Question:
    """What a condition asks of another relation: `item`, whose attributes are those of `right`."""

    left: Built
    scope: Scope
    node: exp.Expr
    asked: exp.Expr
    kind: JoinKind
    query: exp.Select
    item: Item
    right: Built
    inner: Scope
    environment: Environment

    @classmethod
    def of(
        cls,
        left: Built,
        scope: Scope,
        node: exp.Expr,
        environment: Environment,
        read_query: ReadQuery,
    ) -> _Question:
        asked, wanted = _asked(node)
        query = _query(asked, environment)
        item = read_item(query.args["from_"].this, environment.within(), read_query)
        if left.checked.is_changing:
            item = item.relation() or item
        alias = _unused(left)
        right = qualified(item.built, alias, environment.at(item.node))
        inner = Scope((Table.of(item.alias, item.built.schema, f"{alias}."),), outer=scope)
        kind = JoinKind.SEMI if wanted else JoinKind.ANTI
        return cls(left, scope, node, asked, kind, query, item, right, inner, environment)

    @property
    def place(self) -> Position:
        """The position of the condition."""
        return self.environment.at(self.node)

    @property
    def reader(self) -> Reader:
        """Reads the condition of the query inside."""
        return Reader(self.environment, self.inner, NoCalls("WHERE"))

    def compared(self, parts: list[Expression]) -> list[Expression]:
        """These parts, with what IN compares."""
        if not isinstance(self.asked, exp.In):
            return parts
        own = _compared(self.asked, self.query, self.scope, self.inner, self.environment)
        if self.kind is JoinKind.ANTI:
            _refuse_nulls([*own, *parts], self.left, self.right, self.place)
        return [*own, *parts]


def semi_join(
    left: Built, scope: Scope, node: exp.Expr, environment: Environment, read_query: ReadQuery
) -> Built:
    """The rows of a relation for which the condition is true. Raises InvalidInput."""
    asked = _Question.of(left, scope, node, environment, read_query)
    if not asked.item.built.checked.is_changing or asked.item.window is not None:
        raise InvalidInput(_FORM, environment.at(asked.item.node))
    parts = asked.compared(_read_all(asked.query.args.get("where"), asked.reader))
    right, equal, condition = _split(asked, parts)
    joined = MovingJoin(left.node, right.node, equal, condition, asked.kind)
    return build(joined, (left, right), asked.place)


def interval_semi_join(
    left: Built, scope: Scope, node: exp.Expr, environment: Environment, read_query: ReadQuery
) -> Built:
    """The tuples of a stream for which the condition is true. Raises InvalidInput.

    The query inside reads a stream too, and bounds the distance of the event times.
    """
    asked = _Question.of(left, scope, node, environment, read_query)
    item, place = asked.item, asked.place
    if item.built.checked.is_changing or item.window is not None:
        raise InvalidInput(_BOTH, environment.at(item.node))
    mine, other = left.event_time, item.built.event_time
    if mine is None or other is None:
        raise InvalidInput(_TIMES, place)
    table = Table.of(item.alias, item.built.schema)
    sides = Sides(
        written_moments(scope.tables, moments(left.checked), (table,)),
        # A plain name means the query inside.
        written_moments((table,), moments(item.built.checked)),
        environment,
    )
    where = asked.query.args.get("where")
    inside = [] if where is None else conditions(where.this, environment.place)
    found, parts = read_on(inside, sides, asked.reader)
    own = next((name for name, behind in sides.left.items() if behind == 0), mine)
    limits = interval_of(found, own, f"{item.alias}.{other}", place, "WHERE")
    right, equal, condition = _split(asked, asked.compared(parts))
    joined = Join(left.node, right.node, equal, *limits, condition, asked.kind)
    return build(joined, (left, right), place)


def _split(asked: _Question, parts: list[Expression]) -> tuple[Built, Equal, Expression | None]:
    """The right side with its own conditions, what is compared, and the further condition."""
    own = [part for part in parts if not _reads(part, asked.left)]
    right = asked.right
    if own:
        whole = own[0] if len(own) == 1 else Call("and", tuple(own), own[0].position)
        right = build(Filter(right.node, whole), (right,), own[0].position)
    equal, condition = split_equal([p for p in parts if p not in own], asked.left, right)
    if not equal:
        raise InvalidInput(
            "a query inside WHERE compares at least one of its attributes with one of the query "
            "around it with =: add WHERE q.symbol = t.symbol, with your own attributes",
            asked.place,
        )
    return right, equal, condition


def _reads(part: Expression, side: Built) -> bool:
    return any(ref.name in side.schema.names for ref in attributes_of(part))


def _unused(left: Built) -> str:
    """A name before the attributes of the other relation, which no attribute has yet."""
    number = 1
    while any(name.startswith(f"in{number}.") for name in _all_names(left)):
        number += 1
    return f"in{number}"


def _all_names(left: Built) -> set[str]:
    return {name for each in left.checked.walk() for name in each.schema.names}


def _query(asked: exp.Expr, environment: Environment) -> exp.Select:
    query = asked.args["query"] if isinstance(asked, exp.In) else asked.this
    while isinstance(query, exp.Subquery | exp.Paren):
        environment.only(query, "this")
        query = query.this
    if not isinstance(query, exp.Select):
        raise environment.refused(query)
    environment.only(query, "expressions", "from_", "where")
    if query.args.get("from_") is None:
        raise InvalidInput(_FORM, environment.at(query))
    environment.only(query.args["from_"], "this")
    return query


def _read_all(where: exp.Expr | None, reader: Reader) -> list[Expression]:
    if where is None:
        return []
    reader.environment.only(where, "this")
    parts = conditions(where.this, reader.environment.place)
    return [inner for part in parts for inner in conjuncts(reader.read(part).expression)]


def _compared(
    asked: exp.In, query: exp.Select, scope: Scope, inner: Scope, environment: Environment
) -> list[Expression]:
    """The comparison that IN makes: x IN (SELECT y ...) compares x with y."""
    environment.only(asked, "this", "query")
    if len(query.expressions) != 1:
        raise InvalidInput("a query behind IN has one result", environment.at(query))
    value = Reader(environment, scope, NoCalls("WHERE")).read(asked.this).expression
    own = replace(inner, outer=None)
    result = Reader(environment, own, NoCalls("IN")).read(query.expressions[0]).expression
    if not isinstance(value, AttributeRef) or not isinstance(result, AttributeRef):
        raise InvalidInput(
            "IN (SELECT ...) compares two attributes; compute others in a WITH before it",
            environment.at(asked),
        )
    return [Call("=", (value, result), environment.at(asked))]


def _refuse_nulls(parts: list[Expression], left: Built, right: Built, place: Position) -> None:
    """NOT IN is true for no row if a NULL is among the values, and few people mean that."""
    compared = parts[0]
    filters = [each.node for each in left.checked.walk() if isinstance(each.node, Filter)]
    above = [part for each in filters for part in conjuncts(each.condition)]
    known = {ref.name for part in (*parts[1:], *above) for ref in _known(part)}
    for ref in attributes_of(compared):
        found = left.schema.get(ref.name) or right.schema.get(ref.name)
        if found is not None and not found.required and ref.name not in known:
            name = ref.name.rpartition(".")[2]
            raise InvalidInput(
                f"{name!r} may be NULL, and NOT IN is then never true; write NOT EXISTS, with a "
                "query that compares the two",
                place,
            )


def _known(part: Expression) -> tuple[AttributeRef, ...]:
    """The attribute that a condition says is not NULL."""
    match part:
        case Call("not", (Call("is_null", (AttributeRef() as ref,)),)):
            return (ref,)
    return ()

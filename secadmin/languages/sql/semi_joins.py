"""Conditions of WHERE that ask whether another relation has a row: IN (SELECT ...) and EXISTS."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Call, Expression, attributes_of, conjuncts
from catalog.plan import Filter, JoinKind, MovingJoin
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope, Table
from secadmin.languages.expressions.syntax import conditions
from secadmin.languages.join_sides import qualified, split_equal
from secadmin.languages.sql.from_clause import ReadQuery, read_item

_FORM = (
    "a query inside WHERE reads one moving window, such as EXISTS (SELECT 1 FROM quotes "
    "[RANGE 1 MINUTE] AS q WHERE q.symbol = t.symbol)"
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


def semi_join(
    left: Built, scope: Scope, node: exp.Expr, environment: Environment, read_query: ReadQuery
) -> Built:
    """The rows of a relation for which the condition is true. Raises InvalidInput."""
    asked, wanted = _asked(node)
    place = environment.at(node)
    query = _query(asked, environment)
    item = read_item(query.args["from_"].this, environment.within(), read_query)
    if not item.built.checked.is_changing or item.window is not None:
        raise InvalidInput(_FORM, environment.at(item.node))
    alias = _unused(left)
    right = qualified(item.built, alias, environment.at(item.node))
    inner = Scope((Table.of(item.alias, item.built.schema, f"{alias}."),), outer=scope)
    where = query.args.get("where")
    parts = _read_all(where, Reader(environment, inner, NoCalls("WHERE")))
    if isinstance(asked, exp.In):
        parts = [*_compared(asked, query, scope, inner, environment), *parts]
        if not wanted:
            _refuse_nulls(parts, left, right, place)
    kind = JoinKind.SEMI if wanted else JoinKind.ANTI
    return _joined(_Sides(left, right), parts, kind, place)


@dataclass(frozen=True, slots=True)
class _Sides:
    left: Built
    right: Built


def _joined(sides: _Sides, parts: list[Expression], kind: JoinKind, place: Position) -> Built:
    own = [part for part in parts if not _reads(part, sides.left)]
    right = sides.right
    if own:
        whole = own[0] if len(own) == 1 else Call("and", tuple(own), own[0].position)
        right = build(Filter(right.node, whole), (right,), own[0].position)
    equal, condition = split_equal([p for p in parts if p not in own], sides.left, right)
    if not equal:
        raise InvalidInput(
            "a query inside WHERE compares at least one of its attributes with one of the query "
            "around it with =: add WHERE q.symbol = t.symbol, with your own attributes",
            place,
        )
    node = MovingJoin(sides.left.node, right.node, equal, condition, kind)
    return build(node, (sides.left, right), place)


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

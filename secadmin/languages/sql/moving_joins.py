"""Joins of moving windows (CQL): FROM a [NOW], b [ROWS 1] WHERE a.k = b.k, or JOIN ... ON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import Call, Expression, attributes_of, conjuncts
from catalog.plan import Filter, MovingJoin
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.join_sides import qualified, split_equal
from secadmin.languages.sql.from_clause import Item
from secadmin.languages.sql.joins import check_aliases, require_inner


def moving_join(
    left: Item,
    right: Item,
    node: exp.Select,
    environment: Environment,
    within: exp.Expr | None,
) -> tuple[Built, Scope]:
    """The join of two changing relations, and the scope of a SELECT over it.

    Its conditions are those of ON and WHERE. Raises InvalidInput.
    """
    joined = node.args["joins"][0]
    require_inner(joined, environment)
    for other in (within, *(node.args.get("windows") or ()), left.window and left.node):
        if other is not None:
            raise InvalidInput(
                "a join of moving windows has no other window", environment.at(other)
            )
    environment.only(joined, "this", "on", "kind")
    clauses = (("ON", joined.args.get("on")), ("WHERE", node.args.get("where")))
    conditions = [
        (name, clause.this if name == "WHERE" else clause)
        for name, clause in clauses
        if isinstance(clause, exp.Expr)
    ]
    return _joined(left, right, conditions, environment)


def _joined(
    left: Item, right: Item, conditions: Sequence[tuple[str, exp.Expr]], environment: Environment
) -> tuple[Built, Scope]:
    """The join with these conditions, each with the name of its clause.

    A condition on one side alone filters that side below the join.
    """
    check_aliases(left, right, environment)
    place = environment.at(right.node)
    for item in (left, right):
        if not item.built.checked.is_changing:
            raise InvalidInput(
                f"{item.alias} is joined with a moving window, so give it one too, such as "
                f"{item.alias} [NOW], [RANGE 5 MINUTES] or [ROWS 100]",
                environment.at(item.node),
            )
    sides = [qualified(item.built, item.alias, environment.at(item.node)) for item in (left, right)]
    tables = (each.table(f"{each.alias}.") for each in (left, right))
    scope = Scope(tuple(tables))
    parts = [
        part
        for clause, node in conditions
        for part in conjuncts(Reader(environment, scope, NoCalls(clause)).read(node).expression)
    ]
    sides, rest = _filtered(sides, parts)
    equal, condition = split_equal(rest, *sides)
    if not equal:
        raise InvalidInput(
            "a join of moving windows compares at least one attribute of both sides with =: add "
            f"WHERE {left.alias}.symbol = {right.alias}.symbol, with your own attributes",
            place,
        )
    node = MovingJoin(sides[0].node, sides[1].node, equal, condition)
    same = frozenset((mine.name, other.name) for mine, other in equal)
    return build(node, (sides[0], sides[1]), place), replace(scope, same=same)


def _filtered(
    sides: list[Built], parts: Sequence[Expression]
) -> tuple[list[Built], list[Expression]]:
    """The sides with the conditions that read one of them alone, and the other conditions."""
    own: tuple[list[Expression], list[Expression]] = [], []
    rest: list[Expression] = []
    for part in parts:
        names = {ref.name for ref in attributes_of(part)}
        reads = [n for n, side in enumerate(sides) if names & {*side.schema.names}]
        (own[reads[0]] if len(reads) == 1 else rest).append(part)
    return [_filter(side, mine) for side, mine in zip(sides, own, strict=True)], rest


def _filter(side: Built, parts: Sequence[Expression]) -> Built:
    if not parts:
        return side
    position: Position | None = parts[0].position
    whole = parts[0] if len(parts) == 1 else Call("and", tuple(parts), position)
    return build(Filter(side.node, whole), (side,), position)

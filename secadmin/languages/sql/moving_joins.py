"""Joins of moving windows (CQL): FROM a [NOW], b [ROWS 1] WHERE a.k = b.k, or JOIN ... ON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import Call, Expression, attributes_of, conjuncts
from catalog.plan import Filter, JoinKind, MovingJoin
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import NoCalls
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.syntax import conditions
from secadmin.languages.join_sides import qualified, split_equal
from secadmin.languages.sql.from_clause import Item, ReadQuery
from secadmin.languages.sql.joins import Joining, check_names
from secadmin.languages.sql.ranks import limited
from secadmin.languages.sql.semi_joins import is_semi, semi_join

# The kinds of which a condition on one side alone may filter that side below the join.
_FILTERED = {
    JoinKind.INNER: (True, True),
    JoinKind.LEFT: (False, True),
    JoinKind.RIGHT: (True, False),
    JoinKind.FULL: (False, False),
    JoinKind.SEMI: (True, True),
    JoinKind.ANTI: (False, True),
}


def _require_on(each: Joining, environment: Environment) -> None:
    if each.kind is not JoinKind.INNER and each.on is None:
        raise InvalidInput(
            f"a {each.kind.upper()} JOIN says behind ON what is equal: ON a.symbol = b.symbol",
            environment.at(each.node),
        )


def refuse_other_windows(
    node: exp.Select, joins: Sequence[Joining], environment: Environment
) -> None:
    """Refuse windows that are elsewhere than behind a name. Raises InvalidInput."""
    withins = [each.within for each in joins]
    for other in (*withins, *(node.args.get("windows") or ())):
        if other is not None:
            raise InvalidInput(
                "a join of moving windows has no other window", environment.at(other)
            )


def moving_from(
    first: Item,
    joins: Sequence[Joining],
    where: exp.Expr | None,
    environment: Environment,
    read_query: ReadQuery,
) -> tuple[Built, Scope]:
    """The relation of FROM and WHERE over moving windows, and the scope of a SELECT over it.

    Raises InvalidInput.
    """
    parts = [] if where is None else conditions(where, environment.place)
    plain = [part for part in parts if not is_semi(part)]
    for item in (first, *(each.item for each in joins)):
        _require_moving(item, environment)
    for each in joins:
        _require_on(each, environment)
    if joins:
        built, scope = _joined(first, joins, plain, environment)
    else:
        built, scope = first.built, first.scope
        reader = Reader(environment, scope, NoCalls("WHERE"))
        whole = [where] if where is not None and len(plain) == len(parts) else plain
        built = _filter(built, [reader.read(part).expression for part in whole])
    for part in parts:
        if is_semi(part):
            built = semi_join(built, scope, part, environment, read_query)
    return built, scope


def _require_moving(item: Item, environment: Environment) -> None:
    if item.window is not None:
        raise InvalidInput(
            "a join of moving windows has no other window", environment.at(item.node)
        )
    if not item.built.checked.is_changing:
        raise InvalidInput(
            f"{item.alias} is joined with a moving window, so give it one too, such as "
            f"{item.alias} [NOW], [RANGE 5 MINUTES] or [ROWS 100]",
            environment.at(item.node),
        )


def _joined(
    first: Item, joins: Sequence[Joining], where: Sequence[exp.Expr], environment: Environment
) -> tuple[Built, Scope]:
    """The joins with the conditions of ON and WHERE.

    If all joins are inner ones, a condition of WHERE is one of the first join that has all its
    attributes. Otherwise WHERE goes over the rows of all joins.
    """
    check_names([first, *(each.item for each in joins)], environment)
    built = qualified(first.built, first.alias, environment.at(first.node))
    scope = Scope((first.table(f"{first.alias}."),))
    whole = Scope(
        (
            first.table(f"{first.alias}."),
            *(each.item.table(f"{each.item.alias}.") for each in joins if each.kind.shows_right),
        )
    )
    rest = [
        inner
        for part in where
        for inner in conjuncts(Reader(environment, whole, NoCalls("WHERE")).read(part).expression)
    ]
    early = all(each.kind is JoinKind.INNER for each in joins)
    for each in joins:
        known = Scope((*scope.tables, each.item.table(f"{each.item.alias}.")), scope.same)
        reader = Reader(environment, known, NoCalls("ON"))
        own = [] if each.on is None else list(conjuncts(reader.read(each.on).expression))
        right = qualified(each.item.built, each.item.alias, environment.at(each.item.node))
        if early:
            names = {*built.schema.names, *right.schema.names}
            mine = [part for part in rest if {r.name for r in attributes_of(part)} <= names]
            own, rest = own + mine, [part for part in rest if part not in mine]
        built, same = _join(built, right, each, own, environment)
        scope = replace(known, same=scope.same | same) if each.kind.shows_right else scope
    return _filter(built, rest), scope


def _join(
    left: Built,
    right: Built,
    joining: Joining,
    parts: Sequence[Expression],
    environment: Environment,
) -> tuple[Built, frozenset[tuple[str, str]]]:
    """The join with these conditions, and the pairs of names whose plain name means the first."""
    place, kind = environment.at(joining.item.node), joining.kind
    sides, rest = _filtered([left, right], parts, _FILTERED[kind])
    equal, condition = split_equal(rest, *sides)
    if not equal:
        clause = "WHERE" if kind is JoinKind.INNER and joining.on is None else "ON"
        one = left.schema.names[0].partition(".")[0]
        raise InvalidInput(
            "a join of moving windows compares at least one attribute of both sides with =: add "
            f"{clause} {one}.symbol = {joining.item.alias}.symbol, with your own attributes",
            place,
        )
    node = MovingJoin(sides[0].node, sides[1].node, equal, condition, kind)
    named = kind in (JoinKind.INNER, JoinKind.LEFT)
    same = frozenset((mine.name, other.name) for mine, other in equal if named)
    return build(node, (sides[0], sides[1]), place), same


def _filtered(
    sides: list[Built], parts: Sequence[Expression], may: tuple[bool, bool]
) -> tuple[list[Built], list[Expression]]:
    """The sides with the conditions that read one of them alone, and the other conditions."""
    own: tuple[list[Expression], list[Expression]] = [], []
    rest: list[Expression] = []
    for part in parts:
        names = {ref.name for ref in attributes_of(part)}
        reads = [n for n, side in enumerate(sides) if names & {*side.schema.names}]
        (own[reads[0]] if len(reads) == 1 and may[reads[0]] else rest).append(part)
    return [_filter(side, mine) for side, mine in zip(sides, own, strict=True)], rest


def _filter(side: Built, parts: Sequence[Expression]) -> Built:
    if not parts:
        return side
    position: Position | None = parts[0].position
    whole = parts[0] if len(parts) == 1 else Call("and", tuple(parts), position)
    side = limited(side, whole)
    return build(Filter(side.node, whole), (side,), position)

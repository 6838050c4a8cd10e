"""UNION, EXCEPT and INTERSECT of the relations of moving windows: by value, each row once."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef
from catalog.plan import Aggregate, Column, Filter, JoinKind, MovingJoin, Project, Union
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.join_sides import qualified

# Reads one side as a relation.
ReadRelation = Callable[[exp.Expr], Built]
_NAMES = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


def is_set_operator(node: exp.Expr) -> bool:
    """Whether a query compares rows of two relations. UNION ALL does not."""
    return isinstance(node, exp.SetOperation) and not (
        isinstance(node, exp.Union) and node.args.get("distinct") is False
    )


def read_set(node: exp.SetOperation, environment: Environment, read: ReadRelation) -> Built:
    """The relation of a set operator: each different row once. Raises InvalidInput."""
    return distinct(_rows(node, environment, read), environment.at(node))


def distinct(rows: Built, place: Position) -> Built:
    """Each different row once: groups that compute nothing."""
    keys = tuple(Column(name, AttributeRef(name)) for name in rows.schema.names)
    return build(Aggregate(rows.node, keys, ()), (rows,), place)


def _rows(node: exp.Expr, environment: Environment, read: ReadRelation) -> Built:
    """The rows of a set operator, perhaps several times, or those of a SELECT."""
    if isinstance(node, exp.Subquery):
        environment.only(node, "this")
        return _rows(node.this, environment, read)
    if not isinstance(node, exp.SetOperation):
        return read(node)
    environment.only(node, "this", "expression", "distinct")
    name, place = _NAMES[type(node)], environment.at(node.expression)
    if node.args.get("distinct") is False:
        raise InvalidInput(
            f"{name} ALL does not go beside other set operators, and EXCEPT ALL and INTERSECT ALL "
            f"are not part of this language; write {name}, which gives each row once",
            place,
        )
    if isinstance(node, exp.Union):
        first, *others = _branches(node, environment, read)
        others = [_renamed(other, first, name, place) for other in others]
        branches = tuple(_single(each, environment.at(node)) for each in (first, *others))
        return build(Union(tuple(each.node for each in branches)), branches, place)
    left, right = (_rows(side, environment, read) for side in (node.this, node.expression))
    right = _renamed(right, left, name, place)
    left, right = (distinct(e, place) if _base(e) is Union else e for e in (left, right))
    return _compared(left, right, isinstance(node, exp.Except), place)


def _single(branch: Built, place: Position) -> Built:
    """A branch of UNION. It may be no join, which then gives each row once already."""
    return distinct(branch, place) if _base(branch) in (MovingJoin, Union) else branch


def _base(rows: Built) -> type:
    """What makes the rows of a relation, below their conditions and results."""
    node = rows.node
    while isinstance(node, Filter | Project):
        node = node.input
    return type(node)


def _branches(node: exp.Expr, environment: Environment, read: ReadRelation) -> list[Built]:
    """The sides of a UNION, which may be one itself: it gives each row once all the same."""
    if not is_set_operator(node) or not isinstance(node, exp.Union):
        return [_rows(node, environment, read)]
    environment.only(node, "this", "expression", "distinct")
    sides = (node.this, node.expression)
    return [branch for side in sides for branch in _branches(side, environment, read)]


def _compared(left: Built, right: Built, without: bool, place: Position) -> Built:
    """The left rows that are on the right too, or that are not there."""
    names = left.schema.names
    other = qualified(right, "other", place)
    equal = tuple((AttributeRef(name, place), AttributeRef(f"other.{name}")) for name in names)
    kind = JoinKind.ANTI if without else JoinKind.INNER
    node = MovingJoin(left.node, other.node, equal, None, kind, nulls_equal=True)
    joined = build(node, (left, other), place)
    if without:
        return joined
    columns = tuple(Column(name, AttributeRef(name)) for name in names)
    return build(Project(joined.node, columns), (joined,), place)


def _renamed(right: Built, left: Built, name: str, place: Position) -> Built:
    """The right side with the names of the left one: set operators match by position."""
    mine, own = left.schema.attributes, right.schema.attributes
    if [each.type for each in mine] != [each.type for each in own]:
        shown = [
            ", ".join(str(each.type) for each in several) or "nothing" for several in (mine, own)
        ]
        raise InvalidInput(
            f"the sides of {name} have other results: ({shown[0]}) and ({shown[1]})", place
        )
    if left.schema.names == right.schema.names:
        return right
    columns = tuple(
        Column(new.name, AttributeRef(old.name)) for new, old in zip(mine, own, strict=True)
    )
    return build(Project(right.node, columns), (right,), place)

"""Whether a row of groups depends on other rows than its own, straight from catalog/SPEC.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from catalog.expression import AttributeRef, Call, Expression
from catalog.plan import (
    Aggregate,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    Node,
    Project,
    Ranked,
    Union,
)
from tests.oracle.relations import movings_of
from tests.oracle.schemas import schema_of


def nodes_of(node: Node, at: int = 0) -> Iterator[tuple[Node, int]]:
    """All nodes of a relation, each with the number of its first window."""
    yield node, at
    match node:
        case Moving():
            return
        case Union(several):
            below: Iterable[Node] = several
        case MovingJoin(left, right):
            below = (left, right)
        case Filter(one) | Project(one) | Aggregate(one) | Ranked(one):
            below = (one,)
        case _:
            raise AssertionError("no node of a relation")
    for each in below:
        yield from nodes_of(each, at)
        at += len(movings_of(each))


def is_loose(node: Aggregate | Ranked) -> bool:
    """Whether something else than what never changes says in which group a row below is."""
    if isinstance(node, Aggregate) and not node.aggregations:
        return False
    read: list[Expression] = []
    if isinstance(node, Aggregate):
        read += [key.expression for key in node.keys]
    else:
        read += [*node.partition, *(key.attribute for key in node.order)]
    return not _fixed(node.input, read)


def _fixed(node: Node, expressions: Iterable[Expression]) -> bool:
    """Whether these never change in a row, and nothing that changes says if the row is there."""
    names = {name for each in expressions for name in _names(each)}
    match node:
        case Moving():
            return True
        case Filter(below, condition):
            return _fixed(below, [condition]) and _fixed(below, expressions)
        case Project(below, columns):
            return _fixed(below, [c.expression for c in columns if c.name in names])
        case Union(several):
            return all(_fixed(below, expressions) for below in several)
        case MovingJoin(left, right, equal, condition, kind):
            shows = kind not in (JoinKind.SEMI, JoinKind.ANTI)
            read = names if shows else names & {*schema_of(left).names}
            refs = {each.name for pair in equal for each in pair} | read
            refs |= set() if condition is None else _names(condition)
            return all(_fixed(side, _among(side, refs)) for side in (left, right))
        case Aggregate(_, keys):
            return names <= {key.name for key in keys}
        case Ranked(below, partition, number=number):
            others = names - {number}
            return others <= {key.name for key in partition} and _fixed(
                below, _among(below, others)
            )
        case _:
            raise AssertionError("no node of a relation")


def _names(expression: Expression) -> set[str]:
    match expression:
        case AttributeRef(name):
            return {name}
        case Call(_, arguments):
            return {name for each in arguments for name in _names(each)}
        case _:
            return set()


def _among(side: Node, names: set[str]) -> list[Expression]:
    return [AttributeRef(name) for name in schema_of(side).names if name in names]

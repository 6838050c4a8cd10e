"""The two sides of a join, for both languages."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.errors import Position
from catalog.expression import AttributeRef, Call, Expression
from catalog.plan import Column, Project
from secadmin.languages.building import Built, build

Equal = tuple[tuple[AttributeRef, AttributeRef], ...]


def qualified(side: Built, alias: str, position: Position) -> Built:
    """The side with its attributes renamed to `<alias>.<name>`. So no name is on both sides."""
    columns = tuple(
        Column(f"{alias}.{name}", AttributeRef(name, position)) for name in side.schema.names
    )
    return build(Project(side.node, columns), (side,), position)


def split_equal(
    parts: Iterable[Expression], left: Built, right: Built
) -> tuple[Equal, Expression | None]:
    """The pairs (left, right) that a join compares with =, and the other conditions as one."""
    equal: list[tuple[AttributeRef, AttributeRef]] = []
    rest: list[Expression] = []
    for part in parts:
        pair = _equal_pair(part, left, right)
        if pair is None:
            rest.append(part)
        else:
            equal.append(pair)
    if len(rest) < 2:
        return tuple(equal), rest[0] if rest else None
    return tuple(equal), Call("and", tuple(rest), rest[0].position)


def _equal_pair(
    part: Expression, left: Built, right: Built
) -> tuple[AttributeRef, AttributeRef] | None:
    match part:
        case Call("=", (AttributeRef() as one, AttributeRef() as other)):
            pair = (one, other) if left.schema.get(one.name) else (other, one)
            between = left.schema.get(pair[0].name) and right.schema.get(pair[1].name)
            # Numbers of two types are compared like any condition: a key has one type.
            same = between and _type(left, pair[0]) is _type(right, pair[1])
            return pair if same else None
    return None


def _type(side: Built, ref: AttributeRef) -> object:
    found = side.schema.get(ref.name)
    return found.type if found else None

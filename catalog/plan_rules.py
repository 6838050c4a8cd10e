"""What several nodes of a plan require of their parts. All functions raise InvalidInput."""

from __future__ import annotations

from dataclasses import replace

from catalog.checked_plan import CheckedNode
from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Expression, type_of
from catalog.plan import JoinKind
from catalog.schema import AttributeType, Schema, Type, is_comparable

MAX_WINDOW_MS = 400 * 24 * 3_600_000
# Each new tuple costs as many steps as a moving window has rows.
MAX_ROWS = 10_000
OWN_QUERY = "add this part as a query of its own over the other one's output"


def require_condition(condition: Expression, schema: Schema) -> None:
    """Refuse a condition that is not true or false."""
    if type_of(condition, schema) is not Type.BOOLEAN:
        raise InvalidInput(
            "a condition is true or false; compare with =, < or the like", condition.position
        )


def require_event_time(below: CheckedNode, what: str) -> None:
    """Refuse tuples without an event time. The error begins with `what` needs it."""
    if below.event_time is None:
        raise InvalidInput(
            f"{what} goes by event time, but its input has none: "
            "keep the stream's event-time attribute under one name"
        )


def require_comparable(type_: AttributeType, what: str, position: Position | None) -> None:
    """Refuse values of which nobody can say whether two are equal. `what` compares them."""
    if not is_comparable(type_):
        raise InvalidInput(
            f"{what} compares values, and {type_} has doubles inside, which are not compared; "
            "name a part of it that has none",
            position,
        )


def require_ordered(type_: AttributeType, what: str, position: Position | None) -> None:
    """Refuse values that have no order. `what` orders them."""
    if not isinstance(type_, Type):
        raise InvalidInput(
            f"{what} goes by plain values, and {type_} has no order; name a part of it, such as "
            "an element or a field",
            position,
        )


def joined_schema(
    left: Schema,
    right: Schema,
    equal: tuple[tuple[AttributeRef, AttributeRef], ...],
    condition: Expression | None,
    kind: JoinKind,
) -> Schema:
    """The attributes of the rows of a join. Refuses attributes that cannot be compared."""
    if not equal:
        raise InvalidInput("a join compares at least one attribute of both sides with =")
    for mine, other in equal:
        mine_type, other_type = type_of(mine, left), type_of(other, right)
        if mine_type != other_type:
            raise InvalidInput(
                f"{mine.name} is a {mine_type}, {other.name} a {other_type}", mine.position
            )
        require_comparable(mine_type, "a join", mine.position)
    both = Schema((*left.attributes, *right.attributes))
    if condition is not None:
        require_condition(condition, both)
    shown = _optional(left) if kind.keeps_right else left
    if not kind.shows_right:
        return shown
    behind = _optional(right) if kind.keeps_left else right
    return Schema((*shown.attributes, *behind.attributes))


def _optional(schema: Schema) -> Schema:
    """The attributes of a side that may be absent, and is NULL then."""
    return Schema(tuple(replace(each, required=False) for each in schema.attributes))

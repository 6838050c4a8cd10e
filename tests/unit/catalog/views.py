"""A shorthand for views, for tests: conditions and rights over one stream."""

from __future__ import annotations

from catalog.expression import Expression
from catalog.relation import Relation, RelationKind
from catalog.role_view import AttributeRight, RoleView, SmallestWindow, TupleWindow
from catalog.schema import Attribute, Schema, Type
from secadmin.languages import parse_condition

STREAM = Relation(
    7,
    "trades",
    RelationKind.STREAM,
    Schema(
        (
            Attribute("ts", Type.TIMESTAMP, required=True),
            Attribute("symbol", Type.STRING, required=True),
            Attribute("price", Type.DOUBLE),
            Attribute("volume", Type.BIGINT),
        )
    ),
    "ts",
    0,
)


def condition(text: str) -> Expression:
    """The condition of a text over the stream."""
    return parse_condition(text, STREAM.schema)


def right(text: str) -> AttributeRight:
    """A right: `price`, `price when volume > 5`, `price: avg, max`."""
    name, when, after = text.partition(" when ")
    if when:
        return AttributeRight(name, condition(after))
    name, colon, functions = text.partition(":")
    return AttributeRight(name, None, tuple(functions.replace(",", " ").split()) if colon else None)


def view(
    rows: str | None = None,
    *rights: str,
    window: tuple[int, int] | SmallestWindow | TupleWindow | None = None,
    minimum: int = 1,
) -> RoleView:
    """A view. Without rights, it shows all attributes. A window is in seconds."""
    if isinstance(window, tuple):
        window = SmallestWindow(window[0] * 1000, window[1] * 1000)
    return RoleView(
        None if rows is None else condition(rows),
        tuple(map(right, rights)) or None,
        window,
        minimum,
    )

"""Policies as people write them, and the views that they mean (paper 003, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.errors import InvalidInput
from catalog.expression import Expression
from catalog.relation import Relation
from catalog.role_view import (
    AttributeRight,
    RoleView,
    SmallestWindow,
    TupleWindow,
    checked_view,
)
from secadmin.languages import expression_text, parse_condition


@dataclass(frozen=True, slots=True)
class WrittenRight:
    """The right to one attribute, with its condition as text; see `AttributeRight`."""

    name: str
    when: str | None = None
    functions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class WrittenView:
    """What a role sees of a stream, with its conditions as text; see `RoleView`."""

    rows: str | None = None
    rights: tuple[WrittenRight, ...] | None = None
    window: SmallestWindow | TupleWindow | None = None
    minimum: int = 1


def read_view(written: WrittenView, stream: Relation) -> RoleView:
    """The view of the stream that is written. Raises InvalidInput, which says where it is wrong."""
    rights = written.rights
    view = RoleView(
        _condition(written.rows, stream, "rows"),
        None if rights is None else tuple(_right(each, stream) for each in rights),
        written.window,
        written.minimum,
    )
    return checked_view(view, stream)


def written_view(view: RoleView) -> WrittenView:
    """The view with its conditions as text."""
    rights = view.attributes
    return WrittenView(
        _text(view.rows),
        None
        if rights is None
        else tuple(WrittenRight(r.name, _text(r.when), r.functions) for r in rights),
        view.window,
        view.minimum,
    )


def rows_text(view: RoleView) -> str:
    """Which tuples the view shows."""
    return _text(view.rows) or "all"


def right_text(right: AttributeRight) -> str:
    """How the right lets an attribute be used."""
    functions = right.functions
    text = right.name if functions is None else ", ".join(f"{f}({right.name})" for f in functions)
    when = "" if right.when is None else f" when {_text(right.when)}"
    return f"{text or f'{right.name} as the time of windows'}{when}"


def window_text(view: RoleView) -> str | None:
    """Which windows the view asks for, or None if it asks for none."""
    window = view.window
    tumbling = "tumbling" if view.only_tumbling else ""
    if window is None:
        return tumbling or None
    if isinstance(window, TupleWindow):
        text = f"of {window.size} tuples or more, slide {window.slide} or more"
    else:
        size, slide = window.size_ms / 1000, window.slide_ms / 1000
        text = f"of {size:g} s or more, slide {slide:g} s or more"
    return f"{text}, {tumbling}" if tumbling else text


def _right(written: WrittenRight, stream: Relation) -> AttributeRight:
    if stream.schema.get(written.name) is None:
        known = ", ".join(stream.schema.names)
        raise InvalidInput(f"{stream.name} has no attribute {written.name!r}; there are: {known}")
    functions = written.functions
    lowered = None if functions is None else tuple(name.lower() for name in functions)
    when = _condition(written.when, stream, f"the condition of {written.name}")
    return AttributeRight(written.name, when, lowered)


def _condition(text: str | None, stream: Relation, where: str) -> Expression | None:
    if text is None:
        return None
    try:
        return parse_condition(text, stream.schema)
    except InvalidInput as error:
        joint = ":" if error.position is None else ","
        raise InvalidInput(f"{where}{joint} {error.detail}") from None


def _text(condition: Expression | None) -> str | None:
    return None if condition is None else expression_text(condition)

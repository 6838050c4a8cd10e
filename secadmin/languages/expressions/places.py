"""Places of syntax nodes in the text."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from catalog.errors import Position

# From an offset in the text that was parsed to a place in the text that the user wrote.
Place = Callable[[int], Position]


def own_offset(node: exp.Expr) -> int | None:
    """The offset of the token that the node was made of, if it was made of one."""
    start = node.meta.get("start")
    return start if isinstance(start, int) else None


def offset(node: exp.Expr) -> int:
    """The offset of the first token that can be found of a node and all below it."""
    own = own_offset(node)
    if own is not None:
        return own
    return min((o for n in node.walk() if (o := own_offset(n)) is not None), default=0)

"""The positions of syntax nodes in the text."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from catalog.errors import Position

# Gives the position in the user's text for an offset in the parsed text.
Place = Callable[[int], Position]


def own_offset(node: exp.Expr) -> int | None:
    """The offset of the token that the node comes from, or None."""
    start = node.meta.get("start")
    return start if isinstance(start, int) else None


def offset(node: exp.Expr) -> int:
    """The offset of the node, or else the smallest offset of the nodes below it."""
    own = own_offset(node)
    if own is not None:
        return own
    return min((o for n in node.walk() if (o := own_offset(n)) is not None), default=0)

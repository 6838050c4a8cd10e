"""Combines views: policies of one role by AND, views of several roles, and which view is wider.

Whether one condition implies another is decided by their form. What is not decided counts as no.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from catalog.expression import AttributeRef, Call, Expression, Literal, conjuncts
from catalog.role_view import AttributeRight, RoleView, SmallestWindow, TupleWindow
from catalog.schema import Type

_EXACT = 2**53
_NEVER = Literal(False, Type.BOOLEAN)


def all_of(views: Iterable[RoleView]) -> RoleView:
    """What a role sees if all these views hold together (002, section 3.1)."""
    merged = RoleView()
    for view in views:
        merged = _both(merged, view)
    return merged


def one_of(views: Sequence[RoleView]) -> RoleView | None:
    """What several roles see together. None if their views do not add up.

    The widest view counts, if it covers all others. Otherwise conditions of rows add up by OR, if
    the views are equal in all else. Else a tuple could show together what no role sees together.
    """
    for view in views:
        if all(covers(view, other) for other in views):
            return view
    first = views[0]
    if any(replace(view, rows=None) != replace(first, rows=None) for view in views):
        return None
    rows = [view.rows for view in views if view.rows is not None]
    distinct = tuple(dict.fromkeys(part for each in rows for part in _disjuncts(each)))
    return replace(first, rows=distinct[0] if len(distinct) == 1 else Call("or", distinct))


def covers(wide: RoleView, narrow: RoleView) -> bool:
    """Whether `wide` surely shows everything that `narrow` shows."""
    return _is_never(narrow.rows) or (
        implies(narrow.rows, wide.rows)
        and _covers_attributes(wide, narrow)
        and _covers_window(wide, narrow)
        and (not wide.only_aggregates or narrow.minimum >= wide.minimum)
    )


def implies(left: Expression | None, right: Expression | None) -> bool:
    """Whether `right` is surely true where `left` is true. None is always true."""
    if right is None or left == right or _is_never(left):
        return True
    if left is None:
        return False
    if _is(left, "or"):
        return all(implies(part, right) for part in _disjuncts(left))
    if _is(right, "and"):
        return all(implies(left, part) for part in conjuncts(right))
    if _is(right, "or") and any(implies(left, part) for part in _disjuncts(right)):
        return True
    if _is(left, "and"):
        return any(implies(part, right) for part in conjuncts(left))
    return _bound_implies(left, right)


def _is_never(rows: Expression | None) -> bool:
    """Whether it is the constant FALSE, as in a policy that denies."""
    return isinstance(rows, Literal) and rows.value is False


def _is(expression: Expression, function: str) -> bool:
    return isinstance(expression, Call) and expression.function == function


def _disjuncts(expression: Expression) -> tuple[Expression, ...]:
    if isinstance(expression, Call) and expression.function == "or":
        return tuple(part for argument in expression.arguments for part in _disjuncts(argument))
    return (expression,)


def _bound_implies(left: Expression, right: Expression) -> bool:
    """Whether a comparison of an attribute with a constant implies another one of it."""
    match left, right:
        case (
            Call(own, (AttributeRef(name), Literal(low, kind))),
            Call(other, (AttributeRef(same), Literal(high, same_kind))),
        ) if name == same and low is not None and high is not None:
            alike = kind is same_kind or (_is_exact(low) and _is_exact(high))
            return alike and _holds(own, low, other, high)
    return False


def _is_exact(value: object) -> bool:
    """Whether it is a number that is the same as a BIGINT and as a DOUBLE."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < _EXACT


def _holds(own: str, low: object, other: str, high: object) -> bool:
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return own == "=" and other == "<>" and low != high
    match own, other:
        case (">", ">" | ">=") | (">=", ">="):
            return low >= high
        case (">=", ">"):
            return low > high
        case ("<", "<" | "<=") | ("<=", "<="):
            return low <= high
        case ("<=", "<"):
            return low < high
        case "=", ">":
            return low > high
        case "=", ">=":
            return low >= high
        case "=", "<":
            return low < high
        case "=", "<=":
            return low <= high
        case "=", "<>":
            return low != high
        case _:
            return False


def _covers_attributes(wide: RoleView, narrow: RoleView) -> bool:
    if wide.attributes is None:
        return True
    if narrow.attributes is None:
        return False
    return all(_covers_right(wide.right(right.name), right) for right in narrow.attributes)


def _covers_right(wide: AttributeRight | None, narrow: AttributeRight) -> bool:
    if wide is None or not implies(narrow.when, wide.when):
        return False
    if wide.functions is None:
        return True
    return narrow.functions is not None and set(narrow.functions) <= set(wide.functions)


def _covers_window(wide: RoleView, narrow: RoleView) -> bool:
    if wide.only_tumbling and narrow.window is not None and not narrow.only_tumbling:
        return False
    if wide.window is None:
        return True
    return narrow.window is not None and narrow.window.is_as_coarse_as(wide.window)


def _both(first: RoleView, second: RoleView) -> RoleView:
    rows = _and(first.rows, second.rows)
    if not _of_one_type(first, second):
        # No window is of two types (002 §3.5, NR), so nothing is shown.
        rows = _NEVER
    return RoleView(
        rows,
        _common_attributes(first, second),
        _coarser(first, second),
        max(first.minimum, second.minimum),
    )


def _of_one_type(first: RoleView, second: RoleView) -> bool:
    """Whether a window may be as coarse as those of both views."""
    types = {type(view.window) for view in (first, second) if view.window is not None}
    return len(types) < 2


def _and(first: Expression | None, second: Expression | None) -> Expression | None:
    """Both conditions, without what the other one implies."""
    if implies(first, second):
        return first
    if implies(second, first):
        return second
    parts = [*(conjuncts(first) if first else ()), *(conjuncts(second) if second else ())]
    return Call("and", tuple(dict.fromkeys(parts)))


def _common_attributes(first: RoleView, second: RoleView) -> tuple[AttributeRight, ...] | None:
    if first.attributes is None:
        return second.attributes
    return tuple(
        _common_right(right, other)
        for right in first.attributes
        if (other := second.right(right.name)) is not None
    )


def _common_right(first: AttributeRight, second: AttributeRight) -> AttributeRight:
    functions = first.functions
    if functions is None or second.functions is None:
        functions = second.functions if functions is None else functions
    else:
        functions = tuple(name for name in functions if name in second.functions)
    return AttributeRight(first.name, _and(first.when, second.when), functions)


def _coarser(first: RoleView, second: RoleView) -> SmallestWindow | TupleWindow | None:
    tumbling = first.only_tumbling or second.only_tumbling
    match first.window or second.window, second.window or first.window:
        case SmallestWindow() as one, SmallestWindow() as other:
            size, slide = max(one.size_ms, other.size_ms), max(one.slide_ms, other.slide_ms)
            return SmallestWindow(size, slide, tumbling)
        case TupleWindow() as one, TupleWindow() as other:
            size, slide = max(one.size, other.size), max(one.slide, other.slide)
            return TupleWindow(size, slide, tumbling)
    return first.window

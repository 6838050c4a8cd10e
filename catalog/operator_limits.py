"""Which operators a role may use in queries, and with which parameters (004 §5.4).

A role that holds ADD QUERY may have limits. A plan is allowed if each of its operators is allowed
by one of these roles at least. A role without limits allows everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from catalog.errors import Denied
from catalog.plan import (
    Aggregate,
    Emission,
    Filter,
    Join,
    Match,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    Plan,
    Project,
    Ranked,
    SessionWindow,
    Source,
    ToStream,
    Union,
    Unnest,
    Window,
    Windowed,
    walk,
)


class Operator(StrEnum):
    """An operator that a role may be kept from.

    Filters and projections are none: they keep nothing, and policies put them into plans, too.
    """

    UNION = "union"
    UNNEST = "unnest"
    WINDOW = "window"
    AGGREGATE = "aggregate"
    JOIN = "join"
    MOVING_WINDOW = "moving-window"
    ORDER = "order"
    PATTERN = "pattern"
    UPDATES = "updates"

    @property
    def clause(self) -> str:
        """What of a query text makes the operator."""
        return _CLAUSES[self]


_CLAUSES = {
    Operator.UNION: "UNION",
    Operator.UNNEST: "UNNEST, EXPLODE",
    Operator.WINDOW: "TUMBLE, HOP, SESSION",
    Operator.AGGREGATE: "GROUP BY, DISTINCT",
    Operator.JOIN: "JOIN, IN, EXISTS, EXCEPT, INTERSECT",
    Operator.MOVING_WINDOW: "[RANGE], [ROWS], [NOW], [UNBOUNDED]",
    Operator.ORDER: "ROW_NUMBER, LAG, LIMIT",
    Operator.PATTERN: "MATCH_RECOGNIZE, PATTERN",
    Operator.UPDATES: "EMIT UPDATES",
}


@dataclass(frozen=True, slots=True)
class Use:
    """One operator of a plan with the parameters that can be limited. None: it has no such one.

    `window_ms` is how long it keeps a tuple, in event time. `slide_ms` is the time from one window
    to the next. `windows` is in how many of its windows a tuple is at once. `window_rows` is the
    number of rows that a window of rows keeps. An `endless` one keeps tuples without an end.
    """

    operator: Operator
    window_ms: int | None = None
    slide_ms: int | None = None
    windows: int | None = None
    window_rows: int | None = None
    endless: bool = False


def uses_of(plan: Plan) -> Iterator[Use]:
    """The operators of a plan, inputs first."""
    for node in walk(plan.root):
        found = _use_of(node)
        if found is not None:
            yield found
    if plan.emission is Emission.UPDATES:
        yield Use(Operator.UPDATES)


def _use_of(node: Node) -> Use | None:
    match node:
        case Source() | Filter() | Project() | ToStream():
            return None
        case Union():
            return Use(Operator.UNION)
        case Unnest():
            return Use(Operator.UNNEST)
        case Windowed(_, window):
            return _window(window)
        case Aggregate():
            return Use(Operator.AGGREGATE)
        case Join():
            return Use(Operator.JOIN, max(node.upper_ms, -node.lower_ms, 0))
        case MovingJoin():
            return Use(Operator.JOIN)
        case Moving(_, window):
            return _moving(window)
        case Ranked():
            return Use(Operator.ORDER)
        case Match():
            return Use(Operator.PATTERN, node.within_ms)
        case _:
            assert_never(node)


def _window(window: Window | SessionWindow) -> Use:
    if isinstance(window, SessionWindow):
        # It lasts as long as tuples come, and the next one of its keys begins after the gap.
        return Use(Operator.WINDOW, slide_ms=window.gap_ms, windows=1, endless=True)
    copies = -(-window.size_ms // window.slide_ms)
    return Use(Operator.WINDOW, window.size_ms, window.slide_ms, copies)


def _moving(window: MovingWindow) -> Use:
    endless = window.range_ms is None and window.rows is None
    return Use(
        Operator.MOVING_WINDOW,
        window.range_ms,
        window.slide_ms,
        window_rows=window.rows,
        endless=endless,
    )


@dataclass(frozen=True, slots=True)
class OperatorLimits:
    """What a role allows in queries. None: there is no limit.

    `operators` are the operators that it allows. `window_ms` is the longest time for which one of
    them keeps a tuple, and `slide_ms` the shortest time from one window to the next. `windows` and
    `window_rows` limit the state: in so many windows of one operator may a tuple be at once, and so
    many rows may a window of rows keep. A window without an end is beyond both `window_ms` and
    `window_rows`.
    """

    operators: frozenset[Operator] | None = None
    window_ms: int | None = None
    slide_ms: int | None = None
    windows: int | None = None
    window_rows: int | None = None

    def refusal(self, use: Use) -> str | None:
        """Why the role does not allow this operator, to be put behind its name, or None."""
        if self.operators is not None and use.operator not in self.operators:
            return f"does not allow the operator {use.operator}"
        if use.endless and (self.window_ms is not None or self.window_rows is not None):
            return "allows no window without an end"
        if _beyond(use.window_ms, self.window_ms):
            return f"allows {self.window_ms} ms at most, and it keeps tuples for {use.window_ms} ms"
        if _beyond(self.slide_ms, use.slide_ms):
            return f"allows a slide of {self.slide_ms} ms or more, and it has {use.slide_ms} ms"
        if _beyond(use.windows, self.windows):
            return f"allows a tuple in {self.windows} windows at once, and it takes {use.windows}"
        if _beyond(use.window_rows, self.window_rows):
            return f"allows {self.window_rows} rows at most, and it keeps {use.window_rows}"
        return None


def _beyond(value: int | None, most: int | None) -> bool:
    return value is not None and most is not None and value > most


# `None` in place of limits: the role has none.
RoleLimits = Mapping[str, OperatorLimits | None]


def require_allowed(plan: Plan, roles: RoleLimits) -> None:
    """Raise Denied for an operator that none of the roles allows.

    `roles` has by its name each role by which the query may be added. Without one, no limit
    counts.
    """
    given = {name: limits for name, limits in roles.items() if limits is not None}
    if len(given) < len(roles):
        return
    for use in uses_of(plan):
        reasons = [
            f"the role {name} {reason}"
            for name, limits in sorted(given.items())
            if (reason := limits.refusal(use)) is not None
        ]
        if reasons and len(reasons) == len(given):
            raise Denied(
                f"the operator {use.operator} ({use.operator.clause}) is not allowed to you: "
                f"{'; '.join(reasons)}. Change that clause, or ask an administrator"
            )

"""GROUP BY with a window and keys, HAVING, and the results that SELECT makes of the groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Window,
    Windowed,
)
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import Aggregates, NoCalls, edge_marker
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.windows import EXAMPLE, is_window, window
from secadmin.languages.typed import Typed, known

_EDGES = (WINDOW_START, WINDOW_END)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The window and the keys of a GROUP BY."""

    window: Window
    event_time: str
    keys: tuple[Expression, ...]
    position: Position


def read_grouping(
    group: exp.Expr, source: Built, scope: Scope, environment: Environment
) -> Grouping:
    """The window and the keys of a GROUP BY clause. Raises InvalidInput."""
    environment.only(group, "expressions")
    items = group.expressions
    windows = [item for item in items if is_window(item)]
    if len(windows) != 1:
        place = environment.at(windows[1] if windows else group)
        raise InvalidInput(
            f"GROUP BY has one window, or its groups would never close: add {EXAMPLE}"
            if not windows
            else "GROUP BY has one window",
            place,
        )
    time = source.event_time
    size = window(windows[0], time, environment, scope)
    reader = Reader(environment, scope, NoCalls("GROUP BY"))
    keys = [reader.read(item) for item in items if not is_window(item)]
    for key in keys:
        known(key)
        if isinstance(key.expression, Literal):
            raise InvalidInput("a constant is not a key; name an attribute", key.position)
    expressions = tuple(key.expression for key in keys)
    place = environment.at(group)
    return Grouping(size, time or "", expressions, place)


@dataclass(frozen=True, slots=True)
class Selected:
    """The results of SELECT, the condition of HAVING, and the aggregates that they use."""

    items: Sequence[tuple[str, Typed]]
    having: Typed | None
    aggregations: Sequence[Aggregation]


def grouped(
    source: Built, grouping: Grouping, selected: Selected
) -> tuple[Built, tuple[Column, ...]]:
    """The Aggregate, filtered by HAVING, and the columns of SELECT over it."""
    found, having = selected.aggregations, selected.having
    names = _Names(grouping.keys, found, selected.items)
    windows = build(Windowed(source.node, grouping.window), (source,), grouping.position)
    aggregate = Aggregate(
        windows.node,
        tuple(Column(name, key) for name, key in zip(names.keys, grouping.keys, strict=True)),
        tuple(
            Aggregation(name, each.function, each.argument)
            for name, each in zip(names.aggregations, found, strict=True)
        ),
    )
    result = build(aggregate, (windows,), grouping.position)
    if having is not None:
        condition = names.rewrite(having.expression)
        result = build(Filter(result.node, condition), (result,), having.position)
    columns = (Column(name, names.rewrite(item.expression)) for name, item in selected.items)
    return result, tuple(columns)


class _Names:
    """The names of the Aggregate's attributes: the names of SELECT, if that is possible."""

    def __init__(
        self,
        keys: Sequence[Expression],
        found: Sequence[Aggregation],
        items: Iterable[tuple[str, Typed]],
    ) -> None:
        self._taken = set(_EDGES)
        wanted = [(name, item.expression) for name, item in items]
        self._keys = keys
        self.keys = [
            self._pick(key, key.name if isinstance(key, AttributeRef) else "", f"key.{i}", wanted)
            for i, key in enumerate(keys)
        ]
        self.aggregations = [
            self._pick(AttributeRef(each.name), "", each.name, wanted) for each in found
        ]
        own = (*(edge_marker(edge) for edge in _EDGES), *(each.name for each in found))
        self._known = dict(zip(own, (*_EDGES, *self.aggregations), strict=True))

    def _pick(
        self, part: Expression, own: str, last: str, wanted: list[tuple[str, Expression]]
    ) -> str:
        called = next((name for name, expression in wanted if expression == part), "")
        name = next(n for n in (called, own, last) if n and n not in self._taken)
        self._taken.add(name)
        return name

    def rewrite(self, expression: Expression) -> Expression:
        """The expression over the Aggregate's attributes. Raises InvalidInput for other values."""
        for name, key in zip(self.keys, self._keys, strict=True):
            if expression == key:
                return AttributeRef(name, expression.position)
        match expression:
            case Literal():
                return expression
            case Call(function, arguments, position):
                return Call(function, tuple(self.rewrite(a) for a in arguments), position)
            case AttributeRef(name, position) if name in self._known:
                return AttributeRef(self._known[name], position)
            case AttributeRef(name, position):
                raise InvalidInput(
                    f"{name!r} has many values in a group: put it into GROUP BY or an aggregate",
                    position,
                )


def read_aggregates(
    grouping: Grouping, environment: Environment, scope: Scope
) -> tuple[Reader, list[Aggregation]]:
    """A reader for SELECT and HAVING over groups, and the list in which it collects aggregates."""
    calls = Aggregates(grouping.window, grouping.event_time, scope)
    return Reader(environment, scope, calls), calls.found

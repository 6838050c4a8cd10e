"""GROUP BY with a window and keys, HAVING, and the results that SELECT makes of the groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.moments import closing, moments, same
from catalog.plan import (
    WINDOW_END,
    WINDOW_START,
    Aggregate,
    Aggregation,
    Column,
    Filter,
    Plan,
    SessionWindow,
    Window,
    Windowed,
    source_nodes,
)
from catalog.relation import RelationKind
from secadmin.languages.building import Built, build
from secadmin.languages.expressions.aggregates import Aggregates, NoCalls, edge_marker
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.windows import EDGES, EXAMPLE, is_window, window
from secadmin.languages.typed import Typed, known

_EDGES = (WINDOW_START, WINDOW_END)


@dataclass(frozen=True, slots=True)
class Outside:
    """A window that is not written in GROUP BY, and whether GROUP BY must name its edges.

    GROUP BY names the edges of a window function in FROM (`alias` is that of its relation), but not
    those of WINDOW TUMBLING. A session around a relation names its keys with PARTITION BY
    (`partition`), which GROUP BY must have too.
    """

    window: Window | SessionWindow
    alias: str = ""
    named: bool = False
    partition: tuple[exp.Expr, ...] = ()

    def is_edge(self, node: exp.Expr, environment: Environment) -> bool:
        """Say whether an item of GROUP BY is an edge of the window."""
        if not self.named or not isinstance(node, exp.Column) or node.args.get("db"):
            return False
        name, alias = environment.column(node)
        return name in _EDGES and alias in (None, self.alias)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The window and the keys of a GROUP BY.

    With `again`, the groups are those of the windows of which the input has the results, and
    `event_time` is the end of these windows.
    """

    window: Window | SessionWindow
    event_time: str
    keys: tuple[Expression, ...]
    position: Position
    alias: str = ""
    again: bool = False


def read_grouping(
    group: exp.Expr,
    source: Built,
    scope: Scope,
    environment: Environment,
    outside: Outside | None = None,
) -> Grouping:
    """The window and the keys of a GROUP BY clause. Raises InvalidInput.

    `outside` is the window that FROM or WINDOW gives, or None.
    """
    environment.only(group, "expressions")
    items = group.expressions
    time = source.event_time
    reader = Reader(environment, scope, NoCalls("GROUP BY"))
    if outside is None:
        again = _same_windows(items, source, reader)
        if again is not None:
            return again
        size = _own_window(group, time, scope, environment)
        rest = [item for item in items if not is_window(item)]
    else:
        size = outside.window
        rest = _without_edges(group, scope, outside, environment)
    keys = key_expressions(rest, reader)
    if outside is not None and outside.named and isinstance(size, SessionWindow):
        _require_same(keys, key_expressions(outside.partition, reader), environment.at(group))
    alias = outside.alias if outside is not None else ""
    return Grouping(size, time or "", keys, environment.at(group), alias)


def _same_windows(items: Sequence[exp.Expr], source: Built, reader: Reader) -> Grouping | None:
    """The groups of a GROUP BY that names an edge of the windows of which these are the results."""
    windows, time = closing(source.checked), source.event_time
    if windows is None or time is None or any(map(is_window, items)):
        return None
    keys = key_expressions(items, reader)
    edges = {AttributeRef(name) for name in moments(source.checked)}
    if edges.isdisjoint(keys):
        return None
    rest = tuple(key for key in keys if key != AttributeRef(time))
    return Grouping(same(windows), time, rest, reader.environment.at(items[0]), again=True)


def _require_same(
    keys: Sequence[Expression], partition: Sequence[Expression], place: Position
) -> None:
    """The groups of a session window are its partitions. Raises InvalidInput for others."""
    names = sorted(each.name for each in partition if isinstance(each, AttributeRef))
    if {*keys} != {*partition}:
        raise InvalidInput(
            "the tuples of a session have equal keys, so SESSION and GROUP BY name the same ones: "
            "write SESSION(trades PARTITION BY symbol, ts, INTERVAL '10' SECOND), and GROUP BY "
            f"window_start, window_end, {', '.join(names) or 'symbol'}",
            place,
        )


def is_open_ended(node: exp.Select, source: Built) -> bool:
    """Whether a SELECT has groups without any window, over streams with an event time."""
    group = node.args.get("group")
    if group is None or source.event_time is None or source.checked.keeps_state:
        return False
    names = {item.name.lower() for item in group.expressions if isinstance(item, exp.Column)}
    if names & {*EDGES} or any(map(is_window, group.expressions)):
        return False
    read = source_nodes(Plan(source.node))
    return all(each.relation.kind is RelationKind.STREAM for each in read)


def _own_window(
    group: exp.Expr, time: str | None, scope: Scope, environment: Environment
) -> Window | SessionWindow:
    windows = [item for item in group.expressions if is_window(item)]
    if len(windows) == 1:
        return window(windows[0], time, environment, scope)
    if windows:
        raise InvalidInput("GROUP BY has one window", environment.at(windows[1]))
    items = [item for item in group.expressions if isinstance(item, exp.Column)]
    edges = [
        item
        for item in items
        if environment.column(item)[0] in EDGES and not scope.has(environment.column(item)[0])
    ]
    if edges:
        raise InvalidInput(
            "there is no window whose edge this is: write FROM TUMBLE(trades, ts, INTERVAL '1' "
            f"HOUR), or {EXAMPLE} in GROUP BY",
            environment.at(edges[0]),
        )
    raise InvalidInput(
        f"GROUP BY has one window, or its groups would never close: add {EXAMPLE}",
        environment.at(group),
    )


def _without_edges(
    group: exp.Expr, scope: Scope, outside: Outside, environment: Environment
) -> list[exp.Expr]:
    items = group.expressions
    for item in items:
        if is_window(item):
            raise InvalidInput(
                "there is a window before GROUP BY already; write one of them",
                environment.at(item),
            )
    if not outside.named:
        return list(items)
    rest = [item for item in items if not outside.is_edge(item, environment)]
    if len(rest) == len(items):
        raise InvalidInput(
            "GROUP BY names the window's edges: add window_start, window_end",
            environment.at(group),
        )
    for edge in _EDGES:
        if scope.has(edge):
            raise InvalidInput(
                f"the relation has an attribute {edge!r} of its own: rename it in a derived "
                "table, or write the window in GROUP BY",
                environment.at(group),
            )
    return rest


def key_expressions(items: Sequence[exp.Expr], reader: Reader) -> tuple[Expression, ...]:
    """The keys of a GROUP BY. Raises InvalidInput for a constant."""
    keys = [reader.read(item) for item in items]
    for key in keys:
        known(key)
        if isinstance(key.expression, Literal):
            raise InvalidInput("a constant is not a key; name an attribute", key.position)
    return tuple(key.expression for key in keys)


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
    # Groups of which nothing is asked but that they are there.
    found = selected.aggregations or [Aggregation("agg.0", "count", None)]
    having = selected.having
    names = Names(
        grouping.keys, found, selected.items, grouping.event_time if grouping.again else ""
    )
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


class Names:
    """The names of the Aggregate's attributes: the names of SELECT, if that is possible.

    `end` is the attribute of the input that is the end of the group's window, if there is one.
    """

    def __init__(
        self,
        keys: Sequence[Expression],
        found: Sequence[Aggregation],
        items: Iterable[tuple[str, Typed]],
        end: str = "",
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
        if end:
            self._known[end] = WINDOW_END

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
    calls = Aggregates(
        *(grouping.window, grouping.event_time, scope, grouping.alias), again=grouping.again
    )
    return Reader(environment, scope, calls), calls.found

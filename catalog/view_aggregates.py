"""What a view allows only inside aggregates: attributes with functions, and smallest windows.

`require_aggregates` follows the restricted attributes from the sources up to the aggregates
(002: window-aggregation; 003: Ω). What it does not know is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from catalog.analysis import analyse_node
from catalog.errors import InvalidInput
from catalog.expression import AttributeRef, Expression, attributes_of
from catalog.pattern import Reading, SkipTo
from catalog.plan import (
    MATCH_TIME,
    Aggregate,
    Aggregation,
    Change,
    Column,
    Emission,
    Enough,
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
from catalog.role_view import RoleView, SmallestWindow, TupleWindow, shows_last_time


@dataclass(frozen=True, slots=True)
class _Restricted:
    """What of a node's tuples may only be aggregated.

    `functions` has the restricted attributes with the functions that may take them. `views` are the
    views that restrict something. With `paired`, a tuple may be there several times, because it is
    in several pairs. `united` says that there are tuples of several inputs. With `partition`, these
    are the tuples of full windows of tuples, one for each value of these attributes.
    """

    functions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    views: tuple[RoleView, ...] = ()
    paired: bool = False
    united: bool = False
    partition: frozenset[str] | None = None

    @property
    def tuples_hidden(self) -> bool:
        """Whether no single tuple may be seen."""
        return any(view.window is not None for view in self.views)

    @property
    def minimum(self) -> int:
        return max((view.minimum for view in self.views), default=1)


_FREE = _Restricted()


def require_aggregates(plan: Plan, views: Mapping[int, RoleView]) -> Plan:
    """The plan if it shows what the views restrict only in aggregates that they allow.

    Groups that are too small are left out of the plan's results. Raises InvalidInput, with what is
    allowed.
    """
    if not any(view.only_aggregates for view in views.values()):
        return plan
    root, left = _Rewriting(plan.emission, views).node(plan.root)
    _require_free(left)
    return replace(plan, root=root)


def _require_free(left: _Restricted) -> None:
    for name, functions in left.functions.items():
        raise InvalidInput(_only_in(name, functions))
    for view in left.views:
        if view.window is not None:
            raise InvalidInput(_only_windows(view))


def _only_in(name: str, functions: Iterable[str]) -> str:
    allowed = ", ".join(f"{function}({name})" for function in sorted(functions))
    if not allowed:
        return f"your roles' policies use {name!r} only as the time of windows; leave it out"
    return f"your roles' policies allow {name!r} only as {allowed} over windows"


def _only_windows(view: RoleView) -> str:
    window = view.window
    if window is None:
        return "your roles' policies allow aggregates over tumbling windows only"
    kind = "tumbling windows" if view.only_tumbling else "windows"
    if isinstance(window, TupleWindow):
        return (
            f"your roles' policies allow only aggregates over {kind} of tuples, of {window.size} "
            f"tuples or more with a slide of {window.slide} or more, such as "
            f"[ROWS {window.size} SLIDE {window.size if view.only_tumbling else window.slide}]"
        )
    size, slide = _seconds(window.size_ms), _seconds(window.slide_ms)
    return (
        f"your roles' policies allow only aggregates over {kind} of event time, "
        f"of {size} seconds or more with a slide of {slide} seconds or more"
    )


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:g}"


@dataclass(frozen=True, slots=True)
class _Rewriting:
    emission: Emission
    views: Mapping[int, RoleView]

    def node(self, node: Node) -> tuple[Node, _Restricted]:
        """The node with its groups cut to the minimum, and what is restricted above it."""
        match node:
            case Source(relation):
                return node, _of_source(self.views.get(relation.object_id), node)
            case Filter(below, condition):
                inner, restricted = self.node(below)
                _refuse_few_tuples(restricted)
                _refuse(condition, restricted)
                return replace(node, input=inner), restricted
            case Project(below, columns):
                inner, restricted = self.node(below)
                return replace(node, input=inner), _projected(columns, restricted)
            case Windowed(below):
                inner, restricted = self.node(below)
                _refuse_few_tuples(restricted)
                return replace(node, input=inner), restricted
            case Aggregate(below):
                inner, restricted = self.node(below)
                return self._aggregate(replace(node, input=inner), restricted)
            case Union(several):
                pairs = [self.node(below) for below in several]
                return Union(tuple(inner for inner, _ in pairs)), _united([r for _, r in pairs])
            case Join() | MovingJoin():
                return self._join(node)
            case Unnest(below):
                inner, restricted = self.node(below)
                if restricted.functions or restricted.tuples_hidden:
                    # How often a tuple counts in an aggregate reveals it alone.
                    raise InvalidInput(
                        "your roles' policies show parts of this stream in aggregates only, where "
                        "each tuple counts once; leave UNNEST out"
                    )
                return replace(node, input=inner), restricted
            case Moving() | Ranked() | ToStream():
                return self._of_relation(node)
            case Match(below):
                inner, restricted = self.node(below)
                time = analyse_node(below).event_time
                return _matches(replace(node, input=inner), restricted, time or "")

    def _of_relation(self, node: Moving | Ranked | ToStream) -> tuple[Node, _Restricted]:
        inner, restricted = self.node(node.input)
        if isinstance(node, Moving):
            return replace(node, input=inner), _in_moving_window(node.window, restricted)
        _require_free(restricted)
        upserts = isinstance(node, ToStream) and node.change is Change.UPSERT
        if upserts and self._has_tuple_windows(node.input):
            raise InvalidInput(
                "your roles' policies allow each window's result once, and a row that stands is "
                "given again; write ISTREAM or RSTREAM"
            )
        return replace(node, input=inner), restricted

    def _has_tuple_windows(self, root: Node) -> bool:
        """Whether something below is a stream that a view shows in windows of tuples."""
        streams = (n.relation.object_id for n in walk(root) if isinstance(n, Source))
        found = (self.views.get(stream) for stream in streams)
        return any(view is not None and isinstance(view.window, TupleWindow) for view in found)

    def _join(self, node: Join | MovingJoin) -> tuple[Node, _Restricted]:
        left, mine = self.node(node.left)
        right, other = self.node(node.right)
        functions = {**mine.functions, **other.functions}
        both = _Restricted(functions, mine.views + other.views, paired=True)
        for pair in node.equal:
            for ref in pair:
                _refuse(ref, both)
        if node.condition is not None:
            _refuse(node.condition, both)
        for below in (node.left, node.right):
            # The bounds of a join tell when its tuples happened.
            _refuse(AttributeRef(analyse_node(below).event_time or ""), both)
        _require_free(_Restricted({}, both.views))
        return replace(node, left=left, right=right), both

    def _aggregate(self, node: Aggregate, below: _Restricted) -> tuple[Node, _Restricted]:
        for key in node.keys:
            _refuse(key.expression, below)
            _require_partition(key, below)
        counted = [name for each in node.aggregations for name in _restricted_argument(each, below)]
        if below.tuples_hidden:
            _refuse_count_of_tuples(node, below)
        if not counted and not below.tuples_hidden:
            return node, _FREE
        if self.emission is Emission.UPDATES:
            raise InvalidInput(
                "your roles' policies allow each window's result once; leave EMIT UPDATES out"
            )
        if below.partition is not None:
            # The windows of tuples were looked at where they begin.
            return node, _FREE
        if not isinstance(node.input, Windowed):
            raise InvalidInput(_only_windows(below.views[0]))
        for view in below.views:
            if view.only_aggregates:
                _require_coarse(view, node.input.window)
        if below.minimum == 1:
            return node, _FREE
        if below.paired:
            raise InvalidInput(
                "your roles' policies want a minimum of senders in each group, and a pair has two; "
                "leave the join out"
            )
        enough = Enough(below.minimum, tuple(dict.fromkeys(counted)))
        return replace(node, enough=enough), _FREE


def _matches(node: Match, below: _Restricted, event_time: str) -> tuple[Node, _Restricted]:
    """A pattern: restricted attributes are only in aggregates of MEASURES.

    A condition over one would reveal single tuples. So would the difference of two groups that
    overlap: matches that do, a variable and the whole match, or the first rows of a match.
    """
    if below.tuples_hidden:
        raise InvalidInput(
            "your roles' policies allow no pattern over this stream; use TUMBLE or HOP"
        )
    if node.per_row and below.functions:
        raise InvalidInput(
            f"your roles' policies show {', '.join(sorted(below.functions))} in no single tuple: "
            "write ONE ROW PER MATCH"
        )
    for key in node.partition:
        _refuse(key, below)
    for definition in node.definitions:
        _refuse(definition.condition, below)
    for reading in node.readings:
        if reading.argument is not None:
            _refuse(reading.argument, below)
    used = [each for each in node.measures if _takes_restricted(each, below)]
    # The time of a match is that of its last tuple.
    hidden = {MATCH_TIME: frozenset[str]()} if event_time in below.functions else {}
    above = _Restricted(hidden)
    if not used:
        return node, above
    if below.minimum > 1:
        raise InvalidInput(
            "your roles' policies want a minimum of senders in each group, which patterns do not "
            "count; use TUMBLE"
        )
    if node.skip.to is not SkipTo.PAST_LAST_ROW or len({each.variable for each in used}) > 1:
        raise InvalidInput(
            "your roles' policies allow aggregates over groups that do not overlap: write AFTER "
            "MATCH SKIP PAST LAST ROW, and use the attributes of one variable"
        )
    return node, above


def _takes_restricted(reading: Reading, below: _Restricted) -> bool:
    if reading.argument is None:
        return False
    if reading.offset or reading.moved:
        # FIRST and LAST of all rows are aggregates. A row between them is a single tuple.
        _refuse(reading.argument, below)
    as_aggregation = Aggregation(reading.name, reading.function, reading.argument)
    return bool(_restricted_argument(as_aggregation, below))


def _of_source(view: RoleView | None, source: Source) -> _Restricted:
    if view is None or not view.only_aggregates:
        return _FREE
    if isinstance(view.window, TupleWindow) and not shows_last_time(view, source.relation):
        raise InvalidInput(
            "your roles' policies together hide the time of tuples, and a result of a window of "
            "tuples comes at the time of its last one; ask the owner of the stream to show it"
        )
    rights = {name: view.right(name) for name in source.schema.names}
    functions = {
        name: frozenset(right.functions)
        for name, right in rights.items()
        if right is not None and right.functions is not None
    }
    return _Restricted(functions, (view,))


def _refuse(expression: Expression, restricted: _Restricted) -> None:
    for ref in attributes_of(expression):
        if ref.name in restricted.functions:
            raise InvalidInput(_only_in(ref.name, restricted.functions[ref.name]), ref.position)


def _projected(columns: tuple[Column, ...], below: _Restricted) -> _Restricted:
    """Plain columns keep their restriction under their new names. Nothing else may use them."""
    functions, partition = {}, set()
    for column in columns:
        inner = column.expression
        if isinstance(inner, AttributeRef) and inner.name in below.functions:
            functions[column.name] = below.functions[inner.name]
        else:
            _refuse(inner, below)
        if isinstance(inner, AttributeRef) and inner.name in (below.partition or ()):
            partition.add(column.name)
    parts = None if below.partition is None else frozenset(partition)
    return replace(below, functions=functions, partition=parts)


def _united(inputs: list[_Restricted]) -> _Restricted:
    """An attribute is restricted as in all inputs together.

    Another input could fill up a group until it has the minimum of senders.
    """
    views = tuple(view for each in inputs for view in each.views)
    if any((each.functions or each.tuples_hidden) and each.minimum > 1 for each in inputs):
        raise InvalidInput(
            "your roles' policies want a minimum of senders in each group; leave the UNION out"
        )
    functions: dict[str, frozenset[str]] = {}
    for each in inputs:
        for name, allowed in each.functions.items():
            functions[name] = functions[name] & allowed if name in functions else allowed
    for each in inputs:
        _refuse_few_tuples(each)
    return _Restricted(functions, views, any(each.paired for each in inputs), united=True)


def _restricted_argument(aggregation: Aggregation, below: _Restricted) -> list[str]:
    """The restricted attribute that the aggregation takes. Raises InvalidInput if it may not."""
    argument = aggregation.argument
    if isinstance(argument, AttributeRef) and argument.name in below.functions:
        allowed = below.functions[argument.name]
        if aggregation.function not in allowed:
            raise InvalidInput(_only_in(argument.name, allowed), argument.position)
        return [argument.name]
    if argument is not None:
        _refuse(argument, below)
    return []


def _refuse_count_of_tuples(node: Aggregate, below: _Restricted) -> None:
    """Where no tuple is seen, the number of tuples is a value that the policy must name."""
    if any("count" in allowed for allowed in below.functions.values()):
        return
    for each in node.aggregations:
        if each.argument is None:
            raise InvalidInput("your roles' policies allow no count of tuples; leave count(*) out")


def _require_coarse(view: RoleView, window: Window | SessionWindow) -> None:
    smallest = view.window
    if isinstance(window, SessionWindow):
        # A session is of no size: it may be as short as one tuple.
        raise InvalidInput(_only_windows(view))
    overlaps = window.slide_ms < window.size_ms
    asked = SmallestWindow(window.size_ms, window.slide_ms)
    fine = smallest is not None and not asked.is_as_coarse_as(smallest)
    if fine or (overlaps and view.only_tumbling):
        raise InvalidInput(_only_windows(view))


def _in_moving_window(window: MovingWindow, below: _Restricted) -> _Restricted:
    """What of a moving window's tuples may only be aggregated.

    A window of tuples has as many hidden ones as the policy says only if all of them are of the
    stream. The author of the query knows the tuples of another input, or may.
    """
    if not below.functions and not below.tuples_hidden:
        return below
    for view in below.views:
        _require_full(view, window)
    if below.united:
        raise InvalidInput(
            "your roles' policies allow windows of tuples of this stream alone, because tuples of "
            "another one would take the places of hidden ones; leave the UNION out"
        )
    for key in window.partition:
        _refuse(key, below)
    if below.minimum > 1:
        raise InvalidInput(
            "your roles' policies want a minimum of senders in each group, which windows of tuples "
            "do not count; ask the owner of the stream for a window of time"
        )
    return replace(below, partition=frozenset(key.name for key in window.partition))


def _require_full(view: RoleView, window: MovingWindow) -> None:
    """Raise InvalidInput unless the window always holds as many tuples as the view asks for."""
    smallest = view.window
    if not isinstance(smallest, TupleWindow):
        raise InvalidInput(
            "your roles' policies allow no moving window over this stream; use TUMBLE or HOP"
        )
    if window.rows is None or window.slide_rows is None:
        raise InvalidInput(_only_windows(view))
    asked = TupleWindow(window.rows, window.slide_rows)
    overlaps = window.slide_rows < window.rows
    if not asked.is_as_coarse_as(smallest) or (overlaps and view.only_tumbling):
        raise InvalidInput(_only_windows(view))


def _refuse_few_tuples(below: _Restricted) -> None:
    """Refuse what would leave fewer tuples of a window of tuples than it holds."""
    if below.partition is not None:
        raise InvalidInput(
            "your roles' policies allow aggregates over all tuples of a window of tuples; put "
            "conditions below the window, in a query of WITH"
        )


def _require_partition(key: Column, below: _Restricted) -> None:
    """Refuse a group that has only a part of a window of tuples."""
    if below.partition is None:
        return
    inner = key.expression
    if not (isinstance(inner, AttributeRef) and inner.name in below.partition):
        raise InvalidInput(
            "your roles' policies allow aggregates over all tuples of a window of tuples; for "
            f"groups by {key.name!r} write [PARTITION BY ... ROWS ... SLIDE ...]",
            inner.position if isinstance(inner, AttributeRef) else None,
        )

"""Aggregate functions and window edges inside expressions."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from catalog.aggregates import (
    AGGREGATE_FUNCTIONS,
    COLLECT_LIST,
    COLLECT_SET,
    COUNT_DISTINCT,
    FIRST,
    LAST,
    MAX_TOP,
    TOPK,
    TOPKDISTINCT,
    aggregate_rule,
)
from catalog.errors import InvalidInput, Position
from catalog.expression import Literal
from catalog.plan import Aggregation, SessionWindow, Window
from catalog.schema import AttributeType, Type
from secadmin.languages.expressions.reader import Reader
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.expressions.windows import EDGES, EXAMPLE, WINDOW_FUNCTIONS, window
from secadmin.languages.typed import Typed, attribute, call, known, literal, null

# The names in SQL, and the aggregate for each. COUNT_IF counts where a condition is true. What asks
# for about how many different values there are gets exactly so many.
AGGREGATES = {
    **{name: name for name in AGGREGATE_FUNCTIONS},
    FIRST: FIRST,
    LAST: LAST,
    "first_value": FIRST,
    "last_value": LAST,
    "mean": "avg",
    "stddev_samp": "stddev",
    "count_if": "count",
    "approx_count_distinct": COUNT_DISTINCT,
    "approx_distinct": COUNT_DISTINCT,
    COLLECT_LIST: COLLECT_LIST,
    COLLECT_SET: COLLECT_SET,
    "array_agg": COLLECT_LIST,
    TOPK: TOPK,
    TOPKDISTINCT: TOPKDISTINCT,
}

_EDGES = {
    f"{name}_{edge}": f"window_{edge}" for name in WINDOW_FUNCTIONS for edge in ("start", "end")
}


def edge_marker(name: str) -> str:
    """The name of a window's edge until the Aggregate is made.

    The marker is needed because the input may have an attribute `window_start` of its own.
    """
    return f"{name}()"


@dataclass(frozen=True, slots=True)
class NoCalls:
    """A clause in which neither aggregates nor windows are allowed. Errors name the `clause`."""

    clause: str

    def special(self, node: exp.Expr, name: str, reader: Reader) -> Typed | None:
        """None for a scalar function. Raises InvalidInput for the others."""
        place = reader.environment.at(node)
        if name in AGGREGATES:
            raise InvalidInput(f"{name.upper()} cannot be used in {self.clause}", place)
        if name in WINDOW_FUNCTIONS:
            raise InvalidInput(f"{name.upper()} belongs in GROUP BY", place)
        if name in _EDGES:
            raise InvalidInput(f"{name.upper()} needs GROUP BY {EXAMPLE}", place)
        return None

    def column(self, name: str, alias: str | None, position: Position) -> Typed | None:
        """None, because every name is an attribute here."""
        return None


@dataclass(frozen=True, slots=True)
class Ungrouped(NoCalls):
    """The results of a SELECT without GROUP BY."""

    clause: str = "SELECT"

    def special(self, node: exp.Expr, name: str, reader: Reader) -> Typed | None:
        """None for a scalar function. Raises InvalidInput for the others."""
        if name in AGGREGATES:
            raise InvalidInput(
                f"{name.upper()} over all of a stream would never end: add GROUP BY {EXAMPLE}",
                reader.environment.at(node),
            )
        return NoCalls.special(self, node, name, reader)


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Collects the aggregates of a grouped SELECT. Each becomes the attribute `agg.<n>`.

    A user's name never has a digit after a dot, so these names are always new.
    """

    window: Window | SessionWindow
    event_time: str
    scope: Scope
    alias: str = ""
    # Whether the groups are those of a changing relation.
    changing: bool = False
    # Whether GROUP BY names the edges of the input's windows, so that it has no window itself.
    again: bool = False
    found: list[Aggregation] = field(default_factory=list)

    def special(self, node: exp.Expr, name: str, reader: Reader) -> Typed | None:
        """The value of an aggregate or of a window's edge, or None for a scalar function."""
        place = reader.environment.at(node)
        if name in _EDGES:
            if self.again:
                raise InvalidInput(
                    "GROUP BY names the edges of windows: write their names here too", place
                )
            self._check_edge(node, name, reader)
            return attribute(edge_marker(_EDGES[name]), Type.TIMESTAMP, place)
        if name in WINDOW_FUNCTIONS:
            raise InvalidInput(
                f"{name.upper()} belongs in GROUP BY; here {name.upper()}_START()", place
            )
        if name not in AGGREGATES:
            return None
        aggregation, kind = _aggregation(node, name, reader)
        return self._add(aggregation, kind, place)

    def column(self, name: str, alias: str | None, position: Position) -> Typed | None:
        """The window's edge of that name, which Spark writes as window.start.

        In CQL COUNT alone is count(*).
        """
        if self.changing and name.upper() == "COUNT" and not (alias or self.scope.has(name)):
            return self._add(Aggregation("", "count", None), Type.BIGINT, position)
        if (
            alias in ("window", "session_window")
            and name in ("start", "end")
            and not self._is_table(alias)
        ):
            return attribute(edge_marker(f"window_{name}"), Type.TIMESTAMP, position)
        edge = EDGES.get(name)
        if self.again or edge is None or (alias is not None and alias != self.alias):
            return None
        if not self.scope.has(name):
            return attribute(edge_marker(edge), Type.TIMESTAMP, position)
        if alias is not None or name != edge:
            return None
        raise InvalidInput(
            f"{name!r} is ambiguous: qualify the attribute, or write TUMBLE_START() or "
            "TUMBLE_END() for the window",
            position,
        )

    def _is_table(self, alias: str) -> bool:
        return any(table.alias == alias for table in self.scope.tables)

    def _check_edge(self, node: exp.Expr, name: str, reader: Reader) -> None:
        """Check that an edge has no arguments, or the same arguments as the window in GROUP BY."""
        if not node.expressions:
            return
        again = exp.Anonymous(this=name.rpartition("_")[0], expressions=node.expressions)
        if window(again, self.event_time, reader.environment, reader.scope) != self.window:
            place = reader.environment.at(node)
            raise InvalidInput(f"this is not the window of GROUP BY; write {name.upper()}()", place)

    def _add(self, aggregation: Aggregation, kind: AttributeType, place: Position) -> Typed:
        for index, other in enumerate(self.found):
            if (other.function, other.argument) == (aggregation.function, aggregation.argument):
                return attribute(f"agg.{index}", kind, place)
        name = f"agg.{len(self.found)}"
        self.found.append(Aggregation(name, aggregation.function, aggregation.argument))
        return attribute(name, kind, place)


def aggregate_call(node: exp.Expr, reader: Reader) -> tuple[Aggregation, AttributeType]:
    """Read an aggregate, still without a name, from its syntax tree. Raises InvalidInput."""
    name = node.this.lower() if isinstance(node, exp.Anonymous) else ""
    if name not in AGGREGATES:
        known_names = ", ".join((*AGGREGATE_FUNCTIONS, FIRST, LAST))
        raise InvalidInput(
            f"an aggregate function belongs here: one of {known_names}", reader.environment.at(node)
        )
    return _aggregation(node, name, reader)


def _aggregation(node: exp.Expr, name: str, reader: Reader) -> tuple[Aggregation, AttributeType]:
    environment = reader.environment
    inner = Reader(environment, reader.scope, NoCalls("another aggregate"))
    condition = None
    if isinstance(node, exp.Filter):
        environment.only(node.expression, "this")
        condition = inner.read(node.expression.this)
        node = node.this
    environment.only(node, "this", "expressions")
    place = environment.at(node)
    distinct = name == "count" and [type(each) for each in node.expressions] == [exp.Distinct]
    if distinct:
        _open_distinct(node, inner)
    function = COUNT_DISTINCT if distinct else AGGREGATES[name]
    if function in (TOPK, TOPKDISTINCT):
        function = f"{function}_{_taken_number(node, name, inner)}"
    argument = _argument(node, name, inner)
    if argument is None and condition is None:
        return Aggregation("", function, None), Type.BIGINT
    given = argument or literal(True, Type.BOOLEAN, place)
    if condition is not None:
        # The other tuples have NULL, which no aggregate counts.
        given = call("case", [condition, given, null(place)], place)
    rule = aggregate_rule(function)
    kind = None if rule is None else rule(known(given))
    if kind is None:
        raise InvalidInput(f"{name} does not take a {given.type}", place)
    return Aggregation("", function, given.expression), kind


def _taken_number(node: exp.Expr, name: str, inner: Reader) -> int:
    """Take the number of values off TOPK(x, 3). Raises InvalidInput."""
    place = inner.environment.at(node)
    number = inner.read(node.expressions[1]) if len(node.expressions) == 2 else None
    wanted = number.expression.value if number and isinstance(number.expression, Literal) else None
    if not isinstance(wanted, int) or isinstance(wanted, bool) or not 1 <= wanted <= MAX_TOP:
        raise InvalidInput(
            f"{name.upper()} takes a value, and a constant number from 1 to {MAX_TOP}: write "
            f"{name.upper()}(price, 3)",
            place,
        )
    node.set("expressions", node.expressions[:1])
    return wanted


def _open_distinct(node: exp.Expr, inner: Reader) -> None:
    """Make COUNT(DISTINCT a) a call with the argument a. Raises InvalidInput."""
    place = inner.environment.at(node)
    given = node.expressions[0]
    inner.environment.only(given, "expressions")
    if len(given.expressions) != 1:
        raise InvalidInput("COUNT(DISTINCT ...) takes one argument", place)
    node.set("expressions", given.expressions)


def _argument(node: exp.Expr, name: str, inner: Reader) -> Typed | None:
    """The argument of an aggregate, or None for count(*)."""
    arguments = node.expressions
    place = inner.environment.at(node)
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        inner.environment.only(arguments[0])
        return None
    if len(arguments) != 1:
        raise InvalidInput(f"{name.upper()} takes one argument", place)
    argument = inner.read(arguments[0])
    if name != "count_if":
        return argument
    return call("case", [argument, literal(True, Type.BOOLEAN, place), null(place)], place)

"""Windows, as each dialect writes them: in GROUP BY, around a relation, and behind FROM.

| | |
|---|---|
| GROUP BY | `TUMBLE(ts, size)`, `HOP(ts, slide, size)`, `SESSION(ts, gap)` |
| GROUP BY, Spark | `window(ts, size, slide)`, `session_window(ts, gap)` |
| FROM | RisingWave and Flink: `TUMBLE(trades, ts, size)`, `SESSION(trades, ts, gap)` |
| behind FROM | ksqlDB: `WINDOW TUMBLING (SIZE ...)`, `WINDOW SESSION (...)` |

TUMBLE and HOP take an offset as the last argument, but for ksqlDB, which has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef
from catalog.plan import WINDOW_END, WINDOW_START, SessionWindow, Window
from catalog.plan_check import check_window
from secadmin.languages.duration import interval_ms
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.text import placed


@dataclass(frozen=True, slots=True)
class _Form:
    """A window function: how it is written, and the lengths in the order of its arguments."""

    example: str
    lengths: tuple[str, ...]
    least: int


_FORMS = {
    "tumble": _Form("TUMBLE(ts, INTERVAL '1' HOUR)", ("size", "offset"), 1),
    "hop": _Form(
        "HOP(ts, INTERVAL '10' MINUTE, INTERVAL '1' HOUR)", ("slide", "size", "offset"), 2
    ),
    "window": _Form("window(ts, '1 hour')", ("size", "slide", "offset"), 1),
    "session": _Form("SESSION(ts, INTERVAL '10' SECOND)", ("gap",), 1),
    "session_window": _Form("session_window(ts, '10 seconds')", ("gap",), 1),
    "sessions": _Form("WINDOW SESSION (10 SECONDS)", ("gap",), 1),
    "tumbling": _Form("WINDOW TUMBLING (SIZE 1 HOUR)", ("size",), 1),
    "hopping": _Form("WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 10 MINUTES)", ("size", "slide"), 2),
}
WINDOW_FUNCTIONS = frozenset({"tumble", "hop", "session", "window", "session_window"})
AROUND_RELATIONS = frozenset({"tumble", "hop", "session"})
"""The window functions that FROM has."""
_OF_SPARK = frozenset({"window", "session_window"})
EXAMPLE = _FORMS["tumble"].example
EDGES = {
    WINDOW_START: WINDOW_START,
    WINDOW_END: WINDOW_END,
    "windowstart": WINDOW_START,
    "windowend": WINDOW_END,
    "WINDOWSTART": WINDOW_START,
    "WINDOWEND": WINDOW_END,
}
"""The names of a window's edges (Flink, RisingWave; ksqlDB), and the plan's names for them."""


def is_window(node: exp.Expr) -> bool:
    """Say whether a syntax tree is a call of a window function."""
    name = node.this if isinstance(node, exp.Anonymous) else None
    return isinstance(name, str) and name.lower() in WINDOW_FUNCTIONS


def interval(node: exp.Expr, environment: Environment) -> int:
    """The length of an INTERVAL in milliseconds. Raises InvalidInput for anything else."""
    place = environment.at(node)
    if not isinstance(node, exp.Interval):
        raise InvalidInput("an interval belongs here, as in INTERVAL '5' MINUTE", place)
    environment.only(node, "this", "unit")
    return interval_ms(str(node.this.this), str(node.args["unit"].this), place)


def window(
    node: exp.Expr, event_time: str | None, environment: Environment, scope: Scope
) -> Window | SessionWindow:
    """The window of a call of a window function over the event time.

    `event_time` is the plan's name of the attribute with the input's event time. Raises
    InvalidInput.
    """
    environment.only(node, "this", "expressions")
    name = str(node.this).lower()
    if not node.expressions:
        raise InvalidInput(f"write {_FORMS[name].example}", environment.at(node))
    time, *lengths = node.expressions
    found = window_of(name, lengths, environment.at(node), environment)
    _check_time(time, event_time, environment, scope)
    return found


def window_over(
    node: exp.Expr, event_time: str | None, environment: Environment, scope: Scope
) -> tuple[Window | SessionWindow, tuple[exp.Expr, ...]]:
    """The window of a window function in FROM, whose first argument is a relation.

    With it come the keys of a session (PARTITION BY).
    """
    environment.only(node, "this", "expressions")
    name = str(node.this).lower()
    place = environment.at(node)
    if len(node.expressions) < (3 if name == "session" else 2):
        raise InvalidInput(f"write {name.upper()}(trades, ts, INTERVAL '1' HOUR)", place)
    _, time, *lengths = node.expressions
    keys: list[exp.Expr] = []
    if name == "session":
        # Its keys are between the relation and the time.
        *keys, time, gap = node.expressions[1:]
        lengths = [gap]
    if isinstance(time, exp.Anonymous) and str(time.this).upper() == "DESCRIPTOR":
        environment.only(time, "this", "expressions")
        if len(time.expressions) != 1:
            raise InvalidInput("DESCRIPTOR takes one attribute", environment.at(time))
        time = time.expressions[0]
    found = window_of(name, lengths, place, environment)
    _check_time(time, event_time, environment, scope)
    return found, tuple(keys)


def clause_window(
    node: exp.Expr, event_time: str | None, environment: Environment
) -> Window | SessionWindow:
    """The window of WINDOW TUMBLING, HOPPING or SESSION behind FROM. Raises InvalidInput."""
    environment.only(node, "this", "expressions", "words")
    place = environment.at(node)
    _require_time(event_time, place)
    return window_of(str(node.this), node.expressions, place, environment)


def window_of(
    name: str, lengths: Sequence[exp.Expr], place: Position, environment: Environment
) -> Window | SessionWindow:
    """The window of a form with these lengths. Raises InvalidInput."""
    form = _FORMS[name]
    if not form.least <= len(lengths) <= len(form.lengths):
        raise InvalidInput(f"write {form.example}", place)
    given = [_length(node, name, environment) for node in lengths]
    known = dict(zip(form.lengths, given, strict=False))
    result = _session_or_other(known)
    with placed(place):
        check_window(result)
    return result


def _session_or_other(lengths: Mapping[str, int]) -> Window | SessionWindow:
    if "gap" in lengths:
        return SessionWindow(lengths["gap"])
    size = lengths["size"]
    slide = lengths.get("slide", size)
    offset = lengths.get("offset", 0)
    return Window(size, slide, offset % slide if slide else 0)


def _length(node: exp.Expr, name: str, environment: Environment) -> int:
    """A length. Spark's windows also take it as a string: window(ts, '10 minutes')."""
    if name in _OF_SPARK and isinstance(node, exp.Literal) and node.is_string:
        words = str(node.this).split()
        if len(words) != 2:
            raise InvalidInput("write a length as '10 minutes'", environment.at(node))
        return interval_ms(words[0], words[1], environment.at(node))
    return interval(node, environment)


def _require_time(event_time: str | None, place: Position) -> None:
    if event_time is None:
        raise InvalidInput(
            "a window goes by event time, but its input has none: "
            "keep the stream's event-time attribute under one name",
            place,
        )


def _check_time(
    node: exp.Expr, event_time: str | None, environment: Environment, scope: Scope
) -> None:
    place = environment.at(node)
    _require_time(event_time, place)
    if isinstance(node, exp.Column):
        name, alias = environment.column(node)
        if scope.resolve(name, alias, place).expression == AttributeRef(event_time or ""):
            return
    raise InvalidInput(f"a window goes by the event time, which is {event_time}", place)

"""Windows, as each dialect writes them: in GROUP BY, around a relation, and behind FROM.

| | |
|---|---|
| GROUP BY | `TUMBLE(ts, size)`, `HOP(ts, slide, size)`; Spark: `window(ts, size, slide)` |
| FROM | RisingWave and Flink: `TUMBLE(trades, ts, size)`, `HOP(trades, ts, slide, size)` |
| behind FROM | ksqlDB: `WINDOW TUMBLING (SIZE ...)`, `WINDOW HOPPING (SIZE ..., ADVANCE BY ...)` |

Each takes an offset as the last argument, but for ksqlDB, which has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef
from catalog.plan import WINDOW_END, WINDOW_START, Window
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
    "tumbling": _Form("WINDOW TUMBLING (SIZE 1 HOUR)", ("size",), 1),
    "hopping": _Form("WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 10 MINUTES)", ("size", "slide"), 2),
}
WINDOW_FUNCTIONS = frozenset({"tumble", "hop", "window"})
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
) -> Window:
    """The window of a call of TUMBLE, HOP or window over the event time.

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
) -> Window:
    """The window of a window function in FROM, whose first argument is a relation."""
    environment.only(node, "this", "expressions")
    name = str(node.this).lower()
    place = environment.at(node)
    if len(node.expressions) < 2:
        raise InvalidInput(f"write {name.upper()}(trades, ts, INTERVAL '1' HOUR)", place)
    _, time, *lengths = node.expressions
    if isinstance(time, exp.Anonymous) and str(time.this).upper() == "DESCRIPTOR":
        environment.only(time, "this", "expressions")
        if len(time.expressions) != 1:
            raise InvalidInput("DESCRIPTOR takes one attribute", environment.at(time))
        time = time.expressions[0]
    found = window_of(name, lengths, place, environment)
    _check_time(time, event_time, environment, scope)
    return found


def clause_window(node: exp.Expr, event_time: str | None, environment: Environment) -> Window:
    """The window of WINDOW TUMBLING or HOPPING behind FROM. Raises InvalidInput."""
    environment.only(node, "this", "expressions", "words")
    place = environment.at(node)
    _require_time(event_time, place)
    return window_of(str(node.this), node.expressions, place, environment)


def window_of(
    name: str, lengths: Sequence[exp.Expr], place: Position, environment: Environment
) -> Window:
    """The window of a form with these lengths. Raises InvalidInput."""
    form = _FORMS[name]
    if not form.least <= len(lengths) <= len(form.lengths):
        raise InvalidInput(f"write {form.example}", place)
    given = [_length(node, name, environment) for node in lengths]
    known = dict(zip(form.lengths, given, strict=False))
    size = known["size"]
    slide = known.get("slide", size)
    offset = known.get("offset", 0)
    result = Window(size, slide, offset % slide if slide else 0)
    with placed(place):
        check_window(result)
    return result


def _length(node: exp.Expr, name: str, environment: Environment) -> int:
    """A length. Spark's window also takes it as a string: window(ts, '10 minutes')."""
    if name == "window" and isinstance(node, exp.Literal) and node.is_string:
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

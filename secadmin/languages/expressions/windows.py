"""Windows in GROUP BY: TUMBLE(ts, INTERVAL '1' HOUR) and HOP(ts, slide, size)."""

from __future__ import annotations

from sqlglot import exp

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef
from catalog.plan import Window
from catalog.plan_check import check_window
from secadmin.languages.duration import interval_ms
from secadmin.languages.expressions.environment import Environment
from secadmin.languages.expressions.scope import Scope
from secadmin.languages.text import placed

_FORMS = {
    "tumble": "TUMBLE(ts, INTERVAL '1' HOUR)",
    "hop": "HOP(ts, INTERVAL '10' MINUTE, INTERVAL '1' HOUR)",
}
WINDOW_FUNCTIONS = frozenset(_FORMS)
EXAMPLE = _FORMS["tumble"]


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
    """The window of a call of TUMBLE or HOP over the event time.

    `event_time` is the plan's name of the attribute with the input's event time. Raises
    InvalidInput.
    """
    environment.only(node, "this", "expressions")
    name = str(node.this).lower()
    arguments = node.expressions
    place = environment.at(node)
    if len(arguments) != (2 if name == "tumble" else 3):
        raise InvalidInput(f"write {_FORMS[name]}", place)
    _check_time(arguments[0], event_time, environment, scope)
    lengths = [interval(argument, environment) for argument in arguments[1:]]
    result = Window(size_ms=lengths[-1], slide_ms=lengths[0])
    with placed(place):
        check_window(result)
    return result


def _check_time(
    node: exp.Expr, event_time: str | None, environment: Environment, scope: Scope
) -> None:
    place = environment.at(node)
    if event_time is None:
        raise InvalidInput(
            "a window goes by event time, but its input has none: "
            "keep the stream's event-time attribute under one name",
            place,
        )
    if isinstance(node, exp.Column):
        name, alias = environment.column(node)
        if scope.resolve(name, alias, place).expression == AttributeRef(event_time):
            return
    raise InvalidInput(f"a window goes by the event time, which is {event_time}", place)

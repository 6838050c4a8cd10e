"""The text of MATCH_RECOGNIZE for a plan's Match."""

from __future__ import annotations

from catalog.expression import Expression, attributes_of
from catalog.pattern import CLASSIFIER, COUNT, Definition, Reading, pattern_text
from catalog.plan import Match
from secadmin.languages.sql.events import EVENT_TYPE
from secadmin.languages.writing.expression_text import (
    Names,
    expression_text,
    name_text,
)
from secadmin.languages.writing.intervals import interval_text
from secadmin.languages.writing.unsayable import Unsayable


def match_text(node: Match, event_time: str) -> str:
    """MATCH_RECOGNIZE (...) with exactly this pattern. Raises Unsayable if there is none."""
    conditions_of = (each.condition for each in node.definitions)
    if any(each.name == EVENT_TYPE for of in conditions_of for each in attributes_of(of)):
        raise Unsayable(
            "MATCH_RECOGNIZE does not say what PATTERN SEQ, AND and OR say; `query show` without "
            "an option has the text with which the query was added"
        )
    if node.absent:
        raise Unsayable("MATCH_RECOGNIZE says nothing about streams that have no tuple")
    keys = ", ".join(name_text(key.name) for key in node.partition)
    measures = ", ".join(f"{_reading(r)} AS {name_text(r.name)}" for r in node.measures)
    skip = node.skip.to.upper()
    if node.skip.variable is not None:
        skip = f"{skip} {name_text(node.skip.variable)}"
    conditions = ",\n    ".join(_definition(each, node) for each in node.definitions)
    lines = [
        *([f"PARTITION BY {keys}"] if keys else []),
        f"ORDER BY {name_text(event_time)}",
        *([f"MEASURES {measures}"] if measures else []),
        "ALL ROWS PER MATCH" if node.per_row else "ONE ROW PER MATCH",
        f"AFTER MATCH SKIP {skip}",
        f"PATTERN ({pattern_text(node.pattern, name_text)}) WITHIN {interval_text(node.within_ms)}",
        *([f"DEFINE {conditions}"] if conditions else []),
    ]
    return "MATCH_RECOGNIZE (\n  " + "\n  ".join(lines) + "\n)"


def _definition(each: Definition, node: Match) -> str:
    known = {reading.name: _reading(reading) for reading in node.readings}
    names: Names = lambda name: known.get(name) or name_text(name)  # noqa: E731
    return f"{name_text(each.variable)} AS {expression_text(each.condition, names)}"


def _reading(reading: Reading) -> str:
    """FIRST, LAST, PREV, NEXT, CLASSIFIER or an aggregate, perhaps behind FINAL."""
    text = _moved(reading) if reading.moved else _of_variable(reading)
    return f"FINAL {text}" if reading.final else text


def _moved(reading: Reading) -> str:
    inner = _of_variable(reading)
    if reading.is_from_current and reading.argument is not None:
        inner = _qualified(reading.argument, "")
    direction = "NEXT" if reading.moved > 0 else "PREV"
    far = "" if abs(reading.moved) == 1 else f", {abs(reading.moved)}"
    return f"{direction}({inner}{far})"


def _of_variable(reading: Reading) -> str:
    function = reading.function.upper()
    if reading.function == CLASSIFIER:
        return f"{function}()"
    qualifier = "" if reading.variable is None else f"{name_text(reading.variable)}."
    if reading.argument is None:
        return f"{COUNT.upper()}({qualifier}*)"
    argument = _qualified(reading.argument, qualifier)
    offset = f", {reading.offset}" if reading.offset else ""
    return f"{function}({argument}{offset})"


def _qualified(expression: Expression, qualifier: str) -> str:
    return expression_text(expression, lambda name: f"{qualifier}{name_text(name)}")

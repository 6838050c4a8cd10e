"""A query's plan as a tree to print: the output at the top, the streams at the ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text
from rich.tree import Tree

from catalog.aggregates import aggregate_words
from catalog.expression import AttributeRef, Call, Expression
from catalog.pattern import CLASSIFIER, Reading, pattern_text
from catalog.plan import (
    Aggregate,
    Column,
    Emission,
    Enough,
    Filter,
    Join,
    JoinKind,
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
    inputs,
)
from catalog.stored_form import from_stored
from secadmin.cli.durations import duration_words
from secadmin.cli.expression_words import expression_words
from secadmin.cli.safe_text import safe_text


def output_tree(output: Mapping[str, Any]) -> Tree:
    """The tree of one output in the answer of `GET /queries/{name}/plan`.

    Raises ValueError for a plan that this version does not know.
    """
    attributes = ", ".join(f"{a['name']} {a['type']}" for a in output["attributes"])
    plan = from_stored(Plan, output["plan"])
    updates = ", emit updates" if plan.emission is Emission.UPDATES else ""
    label = label_text("output", f"{output['name']} ({attributes}){updates}")
    tree = Tree(label, highlight=False)
    _add(tree, plan.root)
    return tree


def _add(tree: Tree, node: Node) -> None:
    branch = tree.add(label_text(*node_words(node)))
    for below in inputs(node):
        _add(branch, below)


def node_words(node: Node) -> tuple[str, str]:
    """The name of a node, and what it does."""
    match node:
        case Source(relation):
            clock = f", event time {relation.event_time}" if relation.event_time else ""
            late = f", lateness {duration_words(relation.lateness_ms)}" if clock else ""
            return (relation.kind.value, f"{relation.name}{clock}{late}")
        case Filter(_, condition):
            return ("filter", expression_words(condition))
        case Project(_, columns):
            return ("project", _columns(columns))
        case Union():
            return ("union", "")
        case Unnest():
            return ("unnest", _unnest(node))
        case Windowed(_, window):
            return ("windows", _window(window))
        case Aggregate():
            return ("aggregate", _aggregate(node))
        case Join():
            kind = "" if node.kind is JoinKind.INNER else f"{node.kind} "
            return (f"{kind}join", _join(node))
        case Match():
            return ("pattern", _match(node))
        case _:
            return _relation_words(node)


def _relation_words(node: Moving | MovingJoin | Ranked | ToStream) -> tuple[str, str]:
    match node:
        case MovingJoin():
            kind = "" if node.kind is JoinKind.INNER else f"{node.kind} "
            nulls = ", NULL equal to NULL" if node.nulls_equal else ""
            words = f"{_equal(node)}{_condition(node)}{nulls}"
            return (f"{kind}join of moving windows", words)
        case Moving(_, window):
            return ("moving window", _moving(window))
        case Ranked():
            return ("in an order", _ranked(node))
        case ToStream(_, change):
            return ("to stream", change.value)


def _unnest(node: Unnest) -> str:
    number = f", numbered as {node.number}" if node.number else ""
    keeps = ", NULL if there is none" if node.keeps else ""
    return f"each element of {expression_words(node.array)} as {node.name}{number}{keeps}"


def _ranked(node: Ranked) -> str:
    order = ", ".join(
        f"{key.attribute.name}{' descending' if key.descending else ''}" for key in node.order
    )
    each = ", ".join(key.name for key in node.partition)
    found = [f"by {order}" + (f" for each {each}" if each else "")]
    if node.limit is not None:
        found.append(f"the first {node.limit}")
    if node.number is not None:
        found.append(f"numbered as {node.number}")
    for other in node.neighbours:
        place = f"{abs(other.offset)} {'back' if other.offset > 0 else 'on'}"
        found.append(f"{other.attribute.name} of the row {place} as {other.name}")
    return ", ".join(found)


def label_text(name: str, rest: str) -> Text:
    """A name, and what is said of it, safe to print."""
    return Text.assemble((name, "bold"), " " if rest else "", safe_text(rest))


def _columns(columns: tuple[Column, ...]) -> str:
    return ", ".join(_named(column.name, expression_words(column.expression)) for column in columns)


def _named(name: str, words: str) -> str:
    return name if words == name else f"{words} AS {name}"


def _window(window: Window | SessionWindow) -> str:
    if isinstance(window, SessionWindow):
        return f"of sessions, until nothing comes for {duration_words(window.gap_ms)}"
    every = f" every {duration_words(window.slide_ms)}" if window.slide_ms != window.size_ms else ""
    offset = f" from {duration_words(window.offset_ms)} on" if window.offset_ms else ""
    return f"of {duration_words(window.size_ms)}{every}{offset}"


def _moving(window: MovingWindow) -> str:
    if window.rows is None and window.range_ms is None:
        return "of all tuples"
    if window.rows is None:
        every = f" every {duration_words(window.slide_ms)}" if window.slide_ms else ""
        return f"of the last {duration_words(window.range_ms or 0)}{every}"
    parts = ", ".join(each.name for each in window.partition)
    every = f" every {window.slide_rows}" if window.slide_rows else ""
    shared = ", hidden tuples counted" if window.of_all else ""
    return f"of {window.rows} rows{every}" + (f" for each {parts}" if parts else "") + shared


def _aggregate(node: Aggregate) -> str:
    arguments = [expression_words(a.argument) if a.argument else "*" for a in node.aggregations]
    results = ", ".join(
        _named(a.name, aggregate_words(a.function, argument))
        for a, argument in zip(node.aggregations, arguments, strict=True)
    )
    keys = f" by {_columns(node.keys)}" if node.keys else ""
    return f"{results}{keys}{_enough(node.enough)}"


def _enough(enough: Enough | None) -> str:
    if enough is None:
        return ""
    what = f"values of {' and of '.join(enough.of)}" if enough.of else "tuples"
    return f", where {enough.minimum} or more independent senders sent {what}"


def _match(node: Match) -> str:
    named = {each.name: _reading(each) for each in node.readings}
    parts = [
        f"{pattern_text(node.pattern)} within {duration_words(node.within_ms)}",
        *(["each row of a match"] if node.per_row else []),
        *([f"for each {', '.join(key.name for key in node.partition)}"] if node.partition else []),
        *(
            f"{each.variable} AS {expression_words(_with_names(each.condition, named))}"
            for each in node.definitions
        ),
        *(_named(each.name, _reading(each)) for each in node.measures),
        f"skip {node.skip.to}" + (f" {node.skip.variable}" if node.skip.variable else ""),
        *(f"no tuple of {name} between" for name in node.absent),
    ]
    return ", ".join(parts)


def _reading(reading: Reading) -> str:
    if reading.function == CLASSIFIER:
        return "classifier()"
    argument = "*" if reading.argument is None else expression_words(reading.argument)
    variable = f"{reading.variable}: " if reading.variable else ""
    text = f"{reading.function}({variable}{argument}{_number(reading.offset, 0)})"
    if reading.moved:
        inner = argument if reading.is_from_current else text
        direction = "next" if reading.moved > 0 else "prev"
        text = f"{direction}({inner}{_number(abs(reading.moved), 1)})"
    return f"final {text}" if reading.final else text


def _number(value: int, usual: int) -> str:
    return "" if value == usual else f", {value}"


def _with_names(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression with readings written in full."""
    match expression:
        case AttributeRef(name):
            return AttributeRef(names.get(name, name))
        case Call(function, arguments):
            return Call(function, tuple(_with_names(each, names) for each in arguments))
        case _:
            return expression


def _join(node: Join) -> str:
    near = (
        f"right's event time {duration_words(node.lower_ms)} to "
        f"{duration_words(node.upper_ms)} after left's"
    )
    return f"{_equal(node)}, {near}{_condition(node)}"


def _equal(node: Join | MovingJoin) -> str:
    return " AND ".join(f"{left.name} = {right.name}" for left, right in node.equal)


def _condition(node: Join | MovingJoin) -> str:
    return f", {expression_words(node.condition)}" if node.condition else ""

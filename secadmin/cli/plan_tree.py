"""A query's plan as a tree to look at: the output on top, the streams at the tips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text
from rich.tree import Tree

from catalog.plan import Aggregate, Column, Filter, Join, Plan, Project, Source, Union, inputs
from catalog.plan_json import decode_plan
from secadmin.cli.durations import duration_words
from secadmin.cli.expression_words import expression_words
from secadmin.cli.safe_text import safe_text


def output_tree(output: Mapping[str, Any]) -> Tree:
    """The tree of one output as `GET /queries/{name}/plan` tells it.

    Raises ValueError for a plan that this version does not know.
    """
    attributes = ", ".join(f"{a['name']} {a['type']}" for a in output["attributes"])
    tree = Tree(_label("output", f"{output['name']} ({attributes})"), highlight=False)
    _add(tree, decode_plan(output["plan"]))
    return tree


def _add(tree: Tree, plan: Plan) -> None:
    branch = tree.add(_node(plan))
    for node in inputs(plan):
        _add(branch, node)


def _node(plan: Plan) -> Text:
    match plan:
        case Source(relation):
            clock = f", event time {relation.event_time}" if relation.event_time else ""
            late = f", lateness {duration_words(relation.lateness_ms)}" if clock else ""
            return _label(relation.kind.value, f"{relation.name}{clock}{late}")
        case Filter(_, condition):
            return _label("filter", expression_words(condition))
        case Project(_, columns):
            return _label("project", _columns(columns))
        case Union():
            return _label("union", "")
        case Aggregate():
            return _label("aggregate", _aggregate(plan))
        case Join():
            return _label("join", _join(plan))


def _label(name: str, rest: str) -> Text:
    return Text.assemble((name, "bold"), " " if rest else "", safe_text(rest))


def _columns(columns: tuple[Column, ...]) -> str:
    return ", ".join(_named(column.name, expression_words(column.expression)) for column in columns)


def _named(name: str, words: str) -> str:
    return name if words == name else f"{words} AS {name}"


def _aggregate(plan: Aggregate) -> str:
    arguments = [expression_words(a.argument) if a.argument else "*" for a in plan.aggregations]
    results = ", ".join(
        _named(a.name, f"{a.function}({argument})")
        for a, argument in zip(plan.aggregations, arguments, strict=True)
    )
    window = f"windows of {duration_words(plan.window.size_ms)}"
    if plan.window.slide_ms != plan.window.size_ms:
        window += f" every {duration_words(plan.window.slide_ms)}"
    keys = f" by {_columns(plan.keys)}" if plan.keys else ""
    updates = ", emit updates" if plan.updates else ""
    return f"{results}{keys}, {window}{updates}"


def _join(plan: Join) -> str:
    equal = " AND ".join(f"{left.name} = {right.name}" for left, right in plan.equal)
    near = (
        f"right's event time {duration_words(plan.lower_ms)} to "
        f"{duration_words(plan.upper_ms)} after left's"
    )
    condition = f", {expression_words(plan.condition)}" if plan.condition else ""
    return f"{equal}, {near}{condition}"

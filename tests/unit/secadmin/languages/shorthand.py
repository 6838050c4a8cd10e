"""Plans and expressions as one line, so that test cases can say what they expect."""

from __future__ import annotations

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.plan import Aggregate, Filter, Join, Plan, Project, Source, Union


def show(plan: Plan) -> str:
    """A plan as functions of its inputs."""
    match plan:
        case Source(relation):
            return relation.name
        case Filter(node, condition):
            return f"filter({show(node)}, {value(condition)})"
        case Project(node, columns):
            return f"project({show(node)}, {_columns(columns)})"
        case Union(nodes):
            return f"union({', '.join(show(node) for node in nodes)})"
        case Aggregate(node, window, keys, aggregations, updates):
            results = ", ".join(
                f"{a.name}={a.function}({'*' if a.argument is None else value(a.argument)})"
                for a in aggregations
            )
            span = f"{window.size_ms}/{window.slide_ms}"
            name = "updates" if updates else "aggregate"
            return f"{name}({show(node)}, {span}, [{_columns(keys)}], {results})"
        case Join(left, right, equal, lower, upper, condition):
            pairs = " ".join(f"{mine.name}={other.name}" for mine, other in equal)
            rest = "" if condition is None else f", {value(condition)}"
            return f"join({show(left)}, {show(right)}, {pairs}, {lower}..{upper}{rest})"


def _columns(columns: object) -> str:
    return ", ".join(f"{c.name}={value(c.expression)}" for c in columns)  # type: ignore[attr-defined]


def value(expression: Expression) -> str:
    """An expression in prefix form; constants with their type where it is not plain."""
    match expression:
        case AttributeRef(name):
            return name
        case Literal(None, kind):
            return f"NULL:{kind}"
        case Literal(constant, kind):
            return f"{constant!r}:ts" if kind == "timestamp" else repr(constant)
        case Call(function, arguments):
            return f"({function} {' '.join(value(a) for a in arguments)})"

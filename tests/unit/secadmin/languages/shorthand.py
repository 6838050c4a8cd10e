"""Plans and expressions as one line, so that test cases can say what they expect."""

from __future__ import annotations

from catalog.expression import AttributeRef, Call, Expression, Literal
from catalog.pattern import (
    Pattern,
    PatternChoice,
    PatternRepeat,
    PatternSequence,
    PatternVariable,
    Reading,
)
from catalog.plan import (
    Aggregate,
    Emission,
    Filter,
    Join,
    JoinKind,
    Match,
    Moving,
    MovingJoin,
    Node,
    Project,
    Ranked,
    SessionWindow,
    Source,
    ToStream,
    Union,
    Unnest,
    Window,
    Windowed,
)
from tests.plans import AnyPlan, whole


def show(plan: AnyPlan) -> str:
    """A plan as functions of its inputs; aggregates that give updates are called `updates`."""
    meant = whole(plan)
    return _node(meant.root, "aggregate" if meant.emission is Emission.CLOSED else "updates")


def _node(node: Node, name: str) -> str:
    match node:
        case Source(relation):
            return relation.name
        case Filter(below, condition):
            return f"filter({_node(below, name)}, {value(condition)})"
        case Project(below, columns):
            return f"project({_node(below, name)}, {_columns(columns)})"
        case Union(several):
            return f"union({', '.join(_node(below, name) for below in several)})"
        case Unnest(below, array, element, number, keeps):
            named = f"{element}@{number}" if number else element
            kept = ", kept" if keeps else ""
            return f"unnest({_node(below, name)}, {named}={value(array)}{kept})"
        case Windowed(below, window):
            return f"{_node(below, name)}, {_window(window)}"
        case Moving() | MovingJoin() | Ranked() | ToStream():
            return _relation(node, name)
        case Match(below, partition, measures):
            parts = "".join(f" {each.name}" for each in partition)
            skip = f"{node.skip.to} {node.skip.variable}" if node.skip.variable else node.skip.to
            lists = (
                [f"{r.name}={_reading(r)}" for r in measures],
                [f"{d.variable}: {value(d.condition)}" for d in node.definitions],
                [f"{r.name}={_reading(r)}" for r in node.readings],
                [f"no {name}" for name in node.absent],
            )
            rest = "".join(f", [{', '.join(each)}]" for each in lists)
            return (
                f"match({_node(below, name)}{parts}, {pattern(node.pattern)}, {node.within_ms} ms, "
                f"{skip}{rest}{', per row' if node.per_row else ''})"
            )
        case Aggregate(below, keys, aggregations, enough):
            results = ", ".join(
                f"{a.name}={a.function}({'*' if a.argument is None else value(a.argument)})"
                for a in aggregations
            )
            least = "" if enough is None else f", {enough.minimum} senders of {enough.of}"
            return f"{name}({_node(below, name)}, [{_columns(keys)}], {results}{least})"
        case Join(left, right, equal, lower, upper, condition, kind):
            pairs = " ".join(f"{mine.name}={other.name}" for mine, other in equal)
            rest = "" if condition is None else f", {value(condition)}"
            return (
                f"{'' if kind is JoinKind.INNER else f'{kind} '}join({_node(left, name)}, "
                f"{_node(right, name)}, {pairs}, {lower}..{upper}{rest})"
            )


def _relation(node: Moving | MovingJoin | Ranked | ToStream, name: str) -> str:
    match node:
        case Moving(below, window):
            length = f"{window.rows} rows" if window.rows else f"{window.range_ms} ms"
            length = "unbounded" if window.rows is window.range_ms else length
            length += f"/{window.slide_ms}" if window.slide_ms else ""
            length += f"/{window.slide_rows}" if window.slide_rows else ""
            length += " of all" if window.of_all else ""
            parts = "".join(f" {each.name}" for each in window.partition)
            return f"moving({_node(below, name)}, {length}{parts})"
        case MovingJoin(left, right, equal, condition, kind, nulls_equal):
            pairs = " ".join(f"{mine.name}={other.name}" for mine, other in equal)
            rest = "" if condition is None else f", {value(condition)}"
            rest += ", nulls equal" if nulls_equal else ""
            what = "pairs" if kind is JoinKind.INNER else f"{kind} join"
            return f"{what}({_node(left, name)}, {_node(right, name)}, {pairs}{rest})"
        case Ranked(below, partition, order, limit, number, neighbours):
            keys = " ".join(
                f"{key.attribute.name}{' desc' if key.descending else ''}" for key in order
            )
            each = "".join(f" {key.name}" for key in partition)
            others = "".join(f", {n.name}={n.attribute.name}@{n.offset}" for n in neighbours)
            named = f", {number}" if number else ""
            first = "all" if limit is None else f"first {limit}"
            return f"ranked({_node(below, name)},{each} by {keys}, {first}{named}{others})"
        case ToStream(below, change):
            return f"{change.value}({_node(below, name)})"


def _window(window: Window | SessionWindow) -> str:
    if isinstance(window, SessionWindow):
        return f"session {window.gap_ms}"
    offset = f"+{window.offset_ms}" if window.offset_ms else ""
    return f"{window.size_ms}/{window.slide_ms}{offset}"


def pattern(part: Pattern) -> str:
    """A pattern with all parentheses."""
    match part:
        case PatternVariable(name):
            return name
        case PatternSequence(parts):
            return f"({' '.join(map(pattern, parts))})"
        case PatternChoice(parts):
            return f"({'|'.join(map(pattern, parts))})"
        case PatternRepeat(inner, least, most, greedy):
            times = f"{least},{'' if most is None else most}"
            return f"{pattern(inner)}{{{times}}}{'' if greedy else '?'}"


def _reading(reading: Reading) -> str:
    argument = "*" if reading.argument is None else value(reading.argument)
    text = f"{reading.function} {reading.variable or '-'} {argument} {reading.offset}"
    moved = f" moved {reading.moved}" if reading.moved else ""
    return f"{text}{moved}{' final' if reading.final else ''}"


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

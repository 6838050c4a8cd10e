"""Running a plan over tables of tuples: each node's rule in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product

from catalog.label import Label, combine
from catalog.plan import (
    Aggregate,
    Column,
    Filter,
    Join,
    Plan,
    Project,
    Source,
    Union,
    Window,
    inputs,
)
from catalog.plan_check import event_time, lowers, output_schema
from catalog.relation import DeclaredAggregate, Relation
from tests.oracle.aggregates import aggregate
from tests.oracle.expressions import evaluate
from tests.oracle.values import EPOCH, Row, Tuple, Value

Tables = Mapping[str, Sequence[Tuple]]


def run(
    plan: Plan, tables: Tables, watermark: datetime | None = None, newest: Tables | None = None
) -> list[Tuple]:
    """The results of a plan over all tuples of each relation, by its name, in no order.

    Windows that end after the watermark have not closed; without one, all have. With `newest`, the
    last of the tables' tuples, only the groups that these belong to have a result (EMIT UPDATES).
    """
    given = [run(node, tables, watermark, newest) for node in inputs(plan)]
    match plan:
        case Source(relation):
            return [each for each in tables[relation.name] if is_visible(each, relation)]
        case Filter(node, condition):
            return [each for each in given[0] if evaluate(condition, _row(node, each)) is True]
        case Project(node, columns):
            return [_evaluated(columns, node, each) for each in given[0]]
        case Union():
            return [each for results in given for each in results]
        case Aggregate():
            joined = given[0] if newest is None else run(plan.input, newest)
            return _aggregate(plan, given[0], joined, watermark)
        case Join():
            pairs = (_pair(plan, left, right) for left, right in product(*given))
            return [pair for pair in pairs if pair is not None]


def is_visible(each: Tuple, relation: Relation) -> bool:
    """Whether Source lets a tuple in: its label can be read, and can occur in the relation."""
    if each.label is None or not each.label.within(relation.reach):
        return False
    return each.label != Label() or relation.public


def watermark_of(plan: Plan, tables: Tables) -> datetime | None:
    """How far time has come: the slowest source's newest event time, less its lateness.

    None while a source has no tuple with an event time: then no window has closed.
    """
    if not isinstance(plan, Source):
        marks = [watermark_of(node, tables) for node in inputs(plan)]
        known = [mark for mark in marks if mark is not None]
        return min(known) if len(known) == len(marks) else None
    times = [time for each in run(plan, tables) if (time := _time(plan, each)) is not None]
    lateness = timedelta(milliseconds=plan.relation.lateness_ms)
    return max(times) - lateness if times else None


def windows(window: Window, time: datetime) -> list[tuple[datetime, datetime]]:
    """The windows [n·slide, n·slide + size) that a time lies in."""
    size, slide = (timedelta(milliseconds=ms) for ms in (window.size_ms, window.slide_ms))
    last = EPOCH + (time - EPOCH) // slide * slide
    starts = (last - back * slide for back in range(size // slide))
    return [(start, start + size) for start in starts if start <= time < start + size]


def lowered(
    label: Label, counts: Sequence[int], start: Value, declared: DeclaredAggregate
) -> Label:
    """The label of a group of a declared aggregate, which gives "aggregated" for "source".

    Only where there are enough tuples, and enough values of each attribute (`counts`), and only of
    windows that the query has seen whole; every other category stays.
    """
    since = EPOCH + timedelta(milliseconds=declared.since_ms)
    whole = isinstance(start, datetime) and start >= since
    if not whole or min(counts) < declared.minimum or declared.source not in label.categories():
        return label
    kept = (each for each in label.categories() if each != declared.source)
    return Label.of(*kept, declared.aggregated)


def _row(node: Plan, each: Tuple) -> Row:
    return Row(output_schema(node), each.values)


def _time(node: Plan, each: Tuple) -> datetime | None:
    name = event_time(node)
    time = _row(node, each)[name] if name else None
    return time if isinstance(time, datetime) else None


def _evaluated(columns: Iterable[Column], node: Plan, each: Tuple) -> Tuple:
    row = _row(node, each)
    return Tuple(tuple(evaluate(column.expression, row) for column in columns), each.label)


def _pair(join: Join, left: Tuple, right: Tuple) -> Tuple | None:
    mine, other = _row(join.left, left), _row(join.right, right)
    equal = [(mine[a.name], other[b.name]) for a, b in join.equal]
    if any(a is None or a != b for a, b in equal):
        return None
    first, second = _time(join.left, left), _time(join.right, right)
    if first is None or second is None:
        return None
    lower, upper = (timedelta(milliseconds=ms) for ms in (join.lower_ms, join.upper_ms))
    if not first + lower <= second <= first + upper:
        return None
    pair = Tuple((*left.values, *right.values), combine(_labels([left, right])))
    true = join.condition is None or evaluate(join.condition, _row(join, pair)) is True
    return pair if true else None


def _labels(group: Iterable[Tuple]) -> list[Label]:
    return [each.label for each in group if each.label is not None]


def _aggregate(
    node: Aggregate, given: list[Tuple], joined: list[Tuple], watermark: datetime | None
) -> list[Tuple]:
    changed = _groups(node, joined, watermark)
    groups = _groups(node, given, watermark)
    return [_result(node, key, group) for key, group in groups.items() if key in changed]


def _groups(
    node: Aggregate, given: list[Tuple], watermark: datetime | None
) -> dict[tuple[Value, ...], list[Tuple]]:
    groups: dict[tuple[Value, ...], list[Tuple]] = {}
    for each in given:
        time = _time(node.input, each)
        keys = _evaluated(node.keys, node.input, each).values
        for start, end in windows(node.window, time) if time else ():
            if watermark is None or end <= watermark:
                groups.setdefault((start, end, *keys), []).append(each)
    return groups


def _result(node: Aggregate, key: tuple[Value, ...], group: list[Tuple]) -> Tuple:
    rows = [_row(node.input, each) for each in group]
    results, counts = [], [len(group)]
    for wanted in node.aggregations:
        argument = wanted.argument
        values = [True if argument is None else evaluate(argument, row) for row in rows]
        results.append(aggregate(wanted.function, values))
        counts.append(sum(value is not None for value in values))
    label, declared = combine(_labels(group)), lowers(node)
    if declared is not None:
        label = lowered(label, counts, key[0], declared)
    return Tuple((*key, *results), label)

"""Running a plan over tables of tuples: each node's rule in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product

from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Aggregation,
    Column,
    Enough,
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
from catalog.relation import Relation
from catalog.schema import Schema
from tests.oracle.aggregates import aggregate
from tests.oracle.expressions import evaluate
from tests.oracle.labels import declared_aggregate, is_visible, lowered, united
from tests.oracle.matching import matches, partitions
from tests.oracle.moving import changes
from tests.oracle.relations import Rules, movings_of
from tests.oracle.schemas import schema_of, time_of
from tests.oracle.values import EPOCH, Items, Row, Tuple, Value

Tables = Mapping[str, Sequence[Tuple]]
ReachOf = Callable[[Relation], Label]


def run(
    node: Node,
    tables: Tables,
    reach_of: ReachOf,
    watermark: datetime | None = None,
    newest: Tables | None = None,
    *,
    alone: bool = False,
    of_all: bool = False,
) -> list[Tuple]:
    """The results of a node over all tuples of each relation, by its name, in no order.

    `reach_of` says which categories can occur in a relation.

    Windows that end after the watermark have not closed; without one, all have. With `newest`, the
    last of the tables' tuples, the results are updates (EMIT UPDATES): only the groups that these
    tuples belong to have one, and no label is lowered. With `alone`, the reader learns of no tuple
    that is not in the tables. So that something is absent tells nothing, and carries no label.
    `of_all` says that the node is below a window with one size for all tuples (000 §5.2.1). So it
    also gives tuples that are hidden, and the window shows nothing of them but their time.
    """
    over = () if isinstance(node, ToStream) else _inputs(node)
    given = [run(below, tables, reach_of, watermark, newest, alone=alone) for below in over]
    match node:
        case Source(relation):
            reach = reach_of(relation)
            return [
                each
                for each in tables[relation.name]
                if (of_all if each.hidden else is_visible(each, relation, reach))
            ]
        case Filter(below, condition):
            return [each for each in given[0] if evaluate(condition, _row(below, each)) is True]
        case Project(below, columns):
            return [_evaluated(columns, below, each) for each in given[0]]
        case Union():
            return [each for results in given for each in results]
        case Unnest(below):
            return [made for each in given[0] for made in _unnested(node, _row(below, each), each)]
        case Windowed():
            return given[0]
        case Aggregate():
            if newest is None:
                return _aggregate(node, given[0], _behind(node.input, watermark))
            changed = _groups(node, run(node.input, newest, reach_of), watermark)
            groups = _groups(node, given[0], watermark)
            return [_result(node, key, groups[key]) for key in groups if key in changed]
        case Moving() | MovingJoin() | Ranked():
            raise AssertionError("a relation is no table; ToStream makes one of it")
        case ToStream():
            streams = [
                run(
                    *(moving.input, tables, reach_of, watermark, newest),
                    alone=alone,
                    of_all=moving.window.of_all,
                )
                for moving in movings_of(node)
            ]
            reaches = [
                Label() if alone else _reach(moving, reach_of) for moving in movings_of(node)
            ]
            return changes(node, streams, reaches, _RULES, watermark)
        case Match(below):
            named = _relations(below)
            told = [] if alone else [each for each in named if each.name in node.absent]
            absent = united(reach_of(each) for each in told)
            rows = partitions(
                given[0],
                schema_of(below),
                lambda each: _time(below, each),
                lambda each: tuple(evaluate(key, _row(below, each)) for key in node.partition),
            )
            return [*matches(node, rows, absent, watermark)]
        case Join():
            sides = (node.left, node.right)
            reaches = [Label() if alone else _reach(below, reach_of) for below in sides]
            return _joined(node, given[0], given[1], reaches)


def _inputs(node: Node) -> tuple[Node, ...]:
    match node:
        case Source():
            return ()
        case Union(several):
            return several
        case Join(left, right) | MovingJoin(left, right):
            return (left, right)
        case _:
            return (node.input,)


def watermark_of(node: Node, tables: Tables, reach_of: ReachOf) -> datetime | None:
    """How far time has come: the slowest source's newest event time, less its lateness.

    None while a source has no tuple with an event time: then no window has closed.
    """
    if not isinstance(node, Source):
        marks = [watermark_of(below, tables, reach_of) for below in _inputs(node)]
        known = [mark for mark in marks if mark is not None]
        return min(known) if len(known) == len(marks) else None
    times = [
        time for each in run(node, tables, reach_of) if (time := _time(node, each)) is not None
    ]
    lateness = timedelta(milliseconds=node.relation.lateness_ms)
    return max(times) - lateness if times else None


def windows(window: Window, time: datetime) -> list[tuple[datetime, datetime]]:
    """The windows [offset + n·slide, offset + n·slide + size) that a time lies in."""
    size, slide = (timedelta(milliseconds=ms) for ms in (window.size_ms, window.slide_ms))
    first = EPOCH + timedelta(milliseconds=window.offset_ms)
    last = first + (time - first) // slide * slide
    starts = (last - back * slide for back in range(size // slide))
    return [(start, start + size) for start in starts if start <= time < start + size]


def _behind(node: Node, watermark: datetime | None) -> datetime | None:
    """How far time has come in a node's results, if it has come to the watermark in the sources.

    A pair may be as old as its older tuple.
    """
    if watermark is None or isinstance(node, Source):
        return watermark
    marks = [mark for below in _inputs(node) if (mark := _behind(below, watermark)) is not None]
    wait = max(node.upper_ms, -node.lower_ms, 0) if isinstance(node, Join) else 0
    return min(marks) - timedelta(milliseconds=wait)


def _relations(node: Node) -> list[Relation]:
    """The relations that a node reads, each as often as it does."""
    if isinstance(node, Source):
        return [node.relation]
    return [found for below in _inputs(node) for found in _relations(below)]


def _reach(node: Node, reach_of: ReachOf) -> Label:
    """All categories that the tuples of a node can carry."""
    if isinstance(node, Source):
        return reach_of(node.relation)
    declared = declared_aggregate(node)
    own = [] if declared is None else [Label.of(declared.aggregated)]
    return united([*own, *(_reach(below, reach_of) for below in _inputs(node))])


def _row(node: Node, each: Tuple) -> Row:
    return Row(schema_of(node), each.values)


def _time(node: Node, each: Tuple) -> datetime | None:
    name = time_of(node)
    time = _row(node, each)[name] if name else None
    return time if isinstance(time, datetime) else None


def _evaluated(columns: Iterable[Column], node: Node, each: Tuple) -> Tuple:
    row = _row(node, each)
    values = tuple(evaluate(column.expression, row) for column in columns)
    return Tuple(values, each.label, each.sender, closes=each.closes)


def _unnested(node: Unnest, row: Row, each: Tuple) -> list[Tuple]:
    """The tuple once for each of the first 1,000 elements, in their order."""
    array = evaluate(node.array, row)
    found: list[tuple[Value, ...]] = []
    if isinstance(array, Items):
        found = [(element, place) for place, element in enumerate(array.values[:1_000], start=1)]
    if not found and node.keeps:
        found = [(None, None)]
    shown = 1 if node.number is None else 2
    return [replace(each, values=(*each.values, *added[:shown])) for added in found]


def _joined(join: Join, left: list[Tuple], right: list[Tuple], reaches: list[Label]) -> list[Tuple]:
    """The rows of a join. `reaches` has what the tuples of each side can carry.

    What has its time of the result of a window is one itself, as far as windows over it go.
    """
    of_left, of_right = reaches
    found = [(a, b, _pair(join, a, b)) for a, b in product(left, right)]
    pairs = [(a, b, pair) for a, b, pair in found if pair is not None]
    width = len(schema_of(join.left).names)
    if join.kind is JoinKind.SEMI:
        return [
            replace(mine, label=label)
            for mine in left
            for label in {pair.label for a, _, pair in pairs if a is mine}
        ]
    results = [] if join.kind is JoinKind.ANTI else [pair for *_, pair in pairs]
    if join.kind.keeps_left:
        shown = 0 if join.kind is JoinKind.ANTI else len(schema_of(join.right).names)
        paired = {id(a) for a, _, _ in pairs}
        results += [
            replace(
                each,
                values=(*each.values, *(None,) * shown),
                label=united([each.label, of_right]),
            )
            for each in left
            if id(each) not in paired and _time(join.left, each) is not None
        ]
    if join.kind.keeps_right:
        paired = {id(b) for _, b, _ in pairs}
        results += [
            replace(
                each, values=(*(None,) * width, *each.values), label=united([each.label, of_left])
            )
            for each in right
            if id(each) not in paired and _time(join.right, each) is not None
        ]
    return results


def _pair(join: Join, left: Tuple, right: Tuple) -> Tuple | None:
    first, second = _time(join.left, left), _time(join.right, right)
    if first is None or second is None:
        return None
    lower, upper = (timedelta(milliseconds=ms) for ms in (join.lower_ms, join.upper_ms))
    if not first + lower <= second <= first + upper:
        return None
    pair = _matching(join, left, right)
    closes = right.closes if join.kind is JoinKind.RIGHT else left.closes
    return pair and replace(pair, closes=closes)


def _matching(join: Join | MovingJoin, left: Tuple, right: Tuple) -> Tuple | None:
    """The pair of two tuples with equal attributes, if the further condition is true."""
    mine, other = _row(join.left, left), _row(join.right, right)
    nulls_equal = isinstance(join, MovingJoin) and join.nulls_equal
    equal = [(mine[a.name], other[b.name]) for a, b in join.equal]
    if any(a != b or (a is None and not nulls_equal) for a, b in equal):
        return None
    pair = Tuple((*left.values, *right.values), united([left.label, right.label]))
    schema = Schema((*schema_of(join.left).attributes, *schema_of(join.right).attributes))
    row = Row(schema, pair.values)
    return pair if join.condition is None or evaluate(join.condition, row) is True else None


def _aggregate(node: Aggregate, given: list[Tuple], watermark: datetime | None) -> list[Tuple]:
    results = []
    declared = declared_aggregate(node)
    for key, group in _groups(node, given, watermark).items():
        if node.enough is not None and not _sent_by_enough(node, node.enough, group):
            continue
        result = _result(node, key, group)
        if declared is not None and result.label is not None:
            counts = _users_known(node, group)
            label = lowered(result.label, counts, key[0], declared)
            result = Tuple(result.values, label, closes=True)
        results.append(result)
    return results


def _groups(
    node: Aggregate, given: list[Tuple], watermark: datetime | None
) -> dict[tuple[Value, ...], list[Tuple]]:
    """The tuples of each window and keys, in the order of their event times."""
    assert isinstance(node.input, Windowed)
    window = node.input.window
    of_keys: dict[tuple[Value, ...], list[tuple[datetime, Tuple]]] = {}
    for each in given:
        time = _moment(node.input, each)
        if time is not None:
            keys = _evaluated(node.keys, node.input, each).values
            of_keys.setdefault(keys, []).append((time, each))
    groups: dict[tuple[Value, ...], list[Tuple]] = {}
    for keys, several in of_keys.items():
        placed = sorted(several, key=lambda pair: pair[0])
        times = [time for time, _ in placed]
        sessions = _sessions(window, times) if isinstance(window, SessionWindow) else None
        for time, each in placed:
            around = windows(window, time) if isinstance(window, Window) else sessions or ()
            for start, end in around:
                if start <= time <= end and (watermark is None or end <= watermark):
                    groups.setdefault((start, end, *keys), []).append(each)
    return groups


def _moment(node: Node, each: Tuple) -> datetime | None:
    """The time that says in which windows a tuple is. That of a result is within its window."""
    time = _time(node, each)
    return time - timedelta(microseconds=1) if time and each.closes else time


def _sessions(window: SessionWindow, times: list[datetime]) -> list[tuple[datetime, datetime]]:
    """The sessions of tuples with these times, which are in order."""
    gap = timedelta(milliseconds=window.gap_ms)
    found: list[tuple[datetime, datetime]] = []
    for time in times:
        start = found.pop()[0] if found and time <= found[-1][1] else time
        found.append((start, time + gap))
    return found


def _result(node: Aggregate, key: tuple[Value, ...], group: list[Tuple]) -> Tuple:
    results = [aggregate(a.function, _values(node, a, group)) for a in node.aggregations]
    return Tuple((*key, *results), united(each.label for each in group), closes=True)


def _values(node: Aggregate, wanted: Aggregation, group: list[Tuple]) -> list[Value]:
    """What goes into an aggregation; of count(*) something for each tuple."""
    rows = [_row(node.input, each) for each in group]
    argument = wanted.argument
    return [True if argument is None else evaluate(argument, row) for row in rows]


def _sent_by_enough(node: Aggregate, enough: Enough, group: list[Tuple]) -> bool:
    """Whether enough independent users sent tuples of the group, and values of each attribute."""
    columns: list[list[Value]] = [[True for _ in group]]
    columns += ([_row(node.input, each)[name] for each in group] for name in enough.of)
    return all(len(_users(group, column)) >= enough.minimum for column in columns)


def _users_known(node: Aggregate, group: list[Tuple]) -> list[int]:
    """How many independent users sent tuples, and values of each aggregation."""
    columns: list[list[Value]] = [[True for _ in group]]
    columns += (_values(node, wanted, group) for wanted in node.aggregations)
    return [len(_users(group, column)) for column in columns]


def _users(group: list[Tuple], column: list[Value]) -> set[int]:
    """The independent users whose tuples have a value in the column."""
    pairs = zip(group, column, strict=True)
    return {each.sender for each, value in pairs if value is not None and each.sender is not None}


def _group_row(node: Aggregate, key: tuple[Value, ...], group: list[Tuple]) -> tuple[Value, ...]:
    results = (aggregate(a.function, _values(node, a, group)) for a in node.aggregations)
    return (*key, *results)


_RULES = Rules(
    passes=lambda node, each: evaluate(node.condition, _row(node.input, each)) is True,
    made=lambda node, each: _evaluated(node.columns, node.input, each),
    pair=_matching,
    keys=lambda node, each: _evaluated(node.keys, node.input, each).values,
    row=_group_row,
    value=lambda node, name, each: _row(node, each)[name],
    width=lambda node: len(schema_of(node).names),
    time=_time,
    partition=lambda node, each: tuple(
        evaluate(key, _row(node.input, each)) for key in node.window.partition
    ),
)

"""Moving windows, each instant computed from scratch, straight from catalog/SPEC.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, product

from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Change,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    Project,
    Ranked,
    ToStream,
    Union,
)
from tests.oracle.labels import united
from tests.oracle.values import EPOCH, Tuple, Value

# The key of a group. If these tell groups apart: the label of its rows, and the members that they
# have without the witnesses of a semi join.
_Key = tuple[tuple[Value, ...], Label | None, tuple["_Member", ...]]
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class _Member:
    """A tuple below a window: the window's number, the tuple's number in the order of time."""

    side: int
    number: int
    time: datetime
    partition: tuple[Value, ...]
    tuple: Tuple


@dataclass(frozen=True)
class Rules:
    """The rules of single tuples and of groups, which the relation's nodes share with others.

    `passes` applies a Filter, `made` a Project, `pair` a MovingJoin. `keys` gives the key of a
    group, `row` its row. `width` is the number of a node's attributes, `value` gives
    that of an attribute.
    """

    passes: Callable[[Filter, Tuple], bool]
    made: Callable[[Project, Tuple], Tuple]
    pair: Callable[[MovingJoin, Tuple, Tuple], Tuple | None]
    keys: Callable[[Aggregate, Tuple], tuple[Value, ...]]
    row: Callable[[Aggregate, tuple[Value, ...], list[Tuple]], tuple[Value, ...]]
    time: Callable[[Node, Tuple], datetime | None]
    partition: Callable[[Moving, Tuple], tuple[Value, ...]]
    width: Callable[[Node], int]
    value: Callable[[Node, str, Tuple], Value]


@dataclass(frozen=True)
class _Row:
    """A row of the relation at an instant: its values, and the members from which it is derived.

    `group` is the key of its group, or None if it is the row of no group. `absent` is what the row
    tells by absence. `witnesses` are the members that only decide.
    """

    values: tuple[Value, ...]
    members: tuple[_Member, ...]
    group: _Key | None = None
    absent: Label = field(default_factory=Label)
    witnesses: tuple[_Member, ...] = ()

    @property
    def subject(self) -> tuple[_Member, ...]:
        """The members without the witnesses. Rows of one subject are one row in an aggregate."""
        return tuple(each for each in self.members if each not in self.witnesses)


def _label(row: _Row) -> Label:
    return united([*(each.tuple.label for each in row.members), row.absent])


def movings_of(node: Node) -> list[Moving]:
    """The moving windows of a relation, the left one first."""
    match node:
        case Moving():
            return [node]
        case MovingJoin(left, right):
            return [*movings_of(left), *movings_of(right)]
        case Filter(below) | Project(below) | Aggregate(below) | Ranked(below) | ToStream(below):
            return movings_of(below)
        case Union(several):
            return [moving for below in several for moving in movings_of(below)]
        case _:
            raise AssertionError("no node of a relation")


def changes(
    node: ToStream,
    given: Sequence[Sequence[Tuple]],
    reaches: Sequence[Label],
    rules: Rules,
    watermark: datetime | None,
) -> list[Tuple]:
    """The stream of a relation over the tuples below each of its windows, up to the watermark.

    `reaches` has all that the tuples of each window can carry.
    """
    movings = movings_of(node)
    members = [
        _members(side, moving, tuples, rules)
        for side, (moving, tuples) in enumerate(zip(movings, given, strict=True))
    ]
    windows = [moving.window for moving in movings]
    instants = [_instants(*each) for each in zip(windows, members, strict=True)]
    found = []
    for instant in sorted({at for several in instants for at in several}):
        if watermark is None or instant < watermark:
            before, now = (
                [_content(*each, at) for each in zip(windows, members, strict=True)]
                for at in (instant - _TICK, instant)
            )
            relations = [_top(node.input, rules, held, reaches) for held in (before, now)]
            found += _step(node, instant, members, (before, now), relations)
    return found


def _members(side: int, moving: Moving, given: Sequence[Tuple], rules: Rules) -> list[_Member]:
    timed = [(time, each) for each in given if (time := rules.time(moving.input, each)) is not None]
    return [
        _Member(side, number, time, rules.partition(moving, each), each)
        for number, (time, each) in enumerate(sorted(timed, key=lambda pair: pair[0]))
    ]


def _instants(window: MovingWindow, members: Sequence[_Member]) -> list[datetime]:
    if window.range_ms is None:
        return sorted({each.time for each in members})
    length = timedelta(milliseconds=window.range_ms)
    times = {each.time for each in members} | {each.time + length + _TICK for each in members}
    if window.slide_ms is None:
        return sorted(times)
    # The window moves at multiples, and only where it holds something else than before.
    slide = timedelta(milliseconds=window.slide_ms)
    moves = {EPOCH - (EPOCH - time) // slide * slide for time in times}
    return sorted(
        at for at in moves if _content(window, members, at) != _content(window, members, at - _TICK)
    )


def _content(window: MovingWindow, members: Sequence[_Member], at: datetime) -> list[_Member]:
    """What the window holds at an instant."""
    if window.slide_ms is not None:
        slide = timedelta(milliseconds=window.slide_ms)
        at = EPOCH + (at - EPOCH) // slide * slide
    past = [each for each in members if each.time <= at]
    if window.range_ms is not None:
        return [e for e in past if e.time >= at - timedelta(milliseconds=window.range_ms)]
    if window.rows is None:
        return past
    partitions = {each.partition for each in past}
    newest = [
        [each for each in past if each.partition == name][-window.rows :] for name in partitions
    ]
    return sorted((each for part in newest for each in part), key=lambda each: each.number)


def _top(
    node: Node,
    rules: Rules,
    contents: Sequence[Sequence[_Member]],
    reaches: Sequence[Label],
) -> list[_Row]:
    """The rows of a whole relation. Those of a semi join are one for each subject and label."""
    groups: dict[_Key, list[_Row]] = {}
    found = []
    for row in _relation(node, rules, contents, reaches):
        if row.witnesses and row.group is None:
            groups.setdefault((row.values, _label(row), row.subject), []).append(row)
        else:
            found.append(row)
    return found + [
        _Row(key[0], _members_of(rows), key, _absent_of(rows)) for key, rows in groups.items()
    ]


def _members_of(rows: Sequence[_Row]) -> tuple[_Member, ...]:
    return tuple(member for row in rows for member in row.members)


def _absent_of(rows: Sequence[_Row]) -> Label:
    return united(row.absent for row in rows)


def _relation(
    node: Node,
    rules: Rules,
    contents: Sequence[Sequence[_Member]],
    reaches: Sequence[Label],
) -> list[_Row]:
    """The rows of a relation whose windows hold these members."""
    match node:
        case Moving():
            return [_Row(each.tuple.values, (each,)) for each in contents[0]]
        case MovingJoin():
            return _joined(node, rules, contents, reaches)
        case Union(several):
            rows = []
            for below in several:
                count = len(movings_of(below))
                rows += _relation(below, rules, contents[:count], reaches[:count])
                contents, reaches = contents[count:], reaches[count:]
            return rows
        case Filter(below):
            rows = _relation(below, rules, contents, reaches)
            return [row for row in rows if rules.passes(node, Tuple(row.values, Label()))]
        case Project(below):
            rows = _relation(below, rules, contents, reaches)
            return [
                replace(row, values=rules.made(node, Tuple(row.values, Label())).values)
                for row in rows
            ]
        case Ranked(below):
            return _ranked(node, rules, _relation(below, rules, contents, reaches))
        case Aggregate(below):
            groups: dict[_Key, list[_Row]] = {}
            for row in _relation(below, rules, contents, reaches):
                keys = rules.keys(node, Tuple(row.values, Label()))
                # DISTINCT is by value and label.
                label = None if node.aggregations else _label(row)
                groups.setdefault((keys, label, ()), []).append(row)
            return [_group(node, rules, key, rows) for key, rows in groups.items()]
        case _:
            raise AssertionError("no node of a relation")


def _group(node: Aggregate, rules: Rules, key: _Key, rows: Sequence[_Row]) -> _Row:
    # A row counts once, however many witnesses it has.
    once = {row.subject: Tuple(row.values, Label()) for row in rows}
    values = rules.row(node, key[0], [*once.values()])
    return _Row(values, _members_of(rows), key, _absent_of(rows))


def _ranked(node: Ranked, rules: Rules, rows: Sequence[_Row]) -> list[_Row]:
    def value(row: _Row, name: str) -> Value:
        return rules.value(node.input, name, Tuple(row.values, Label()))

    partitions: dict[tuple[Value, ...], list[_Row]] = {}
    for row in rows:
        key = tuple(value(row, each.name) for each in node.partition)
        partitions.setdefault(key, []).append(row)
    found = []
    for key, several in partitions.items():
        # The last key first: sorting keeps the order of what is equal.
        ordered = sorted(several, key=_places)
        for by in reversed(node.order):
            name = by.attribute.name
            ordered.sort(key=lambda row: _comparable(value(row, name)), reverse=by.descending)
        for place, row in enumerate(ordered[: node.limit]):
            others = [
                ordered[place - each.offset] if 0 <= place - each.offset < len(ordered) else None
                for each in node.neighbours
            ]
            values = (
                *row.values,
                *([] if node.number is None else [place + 1]),
                *(
                    None if other is None else value(other, each.attribute.name)
                    for other, each in zip(others, node.neighbours, strict=True)
                ),
            )
            first = ordered[: place + 1] if node.by_place else [row]
            from_ = [*first, *(o for o in others if o is not None and o not in first)]
            group: _Key = (
                (key, None, row.members) if not node.by_place else ((*key, place), None, ())
            )
            found.append(_Row(values, _members_of(from_), group, _absent_of(from_)))
    return found


def _comparable(value: Value) -> tuple[bool, Value]:
    return (value is not None, 0 if value is None else value)


def _places(row: _Row) -> list[tuple[int, datetime, int]]:
    return sorted((each.side, each.time, each.number) for each in row.members)


def _joined(
    node: MovingJoin,
    rules: Rules,
    contents: Sequence[Sequence[_Member]],
    reaches: Sequence[Label],
) -> list[_Row]:
    count = len(movings_of(node.left))
    left, right = (
        _relation(node.left, rules, contents[:count], reaches[:count]),
        _relation(node.right, rules, contents[count:], reaches[count:]),
    )
    found: list[_Row] = []
    partners: set[_Row] = set()
    for mine, other in product(left, right):
        pair = rules.pair(node, Tuple(mine.values, Label()), Tuple(other.values, Label()))
        if pair is None:
            continue
        partners |= {mine, other}
        semi = node.kind is JoinKind.SEMI
        found.append(
            _Row(
                mine.values if semi else pair.values,
                (*mine.members, *other.members),
                absent=united([mine.absent, other.absent]),
                witnesses=(*mine.witnesses, *(other.members if semi else other.witnesses)),
            )
        )
    if node.kind is JoinKind.ANTI:
        found = []
    # A row without a partner tells of the absence of all that the other side could hold.
    if node.kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI):
        nothing = () if node.kind is JoinKind.ANTI else (None,) * rules.width(node.right)
        for row in (each for each in left if each not in partners):
            absent = united([row.absent, *reaches[count:]])
            found.append(replace(row, values=(*row.values, *nothing), absent=absent))
    if node.kind in (JoinKind.RIGHT, JoinKind.FULL):
        for row in (each for each in right if each not in partners):
            absent = united([row.absent, *reaches[:count]])
            values = (*(None,) * rules.width(node.left), *row.values)
            found.append(replace(row, values=values, absent=absent))
    return found


def _step(
    node: ToStream,
    instant: datetime,
    members: Sequence[Sequence[_Member]],
    contents: Sequence[Sequence[Sequence[_Member]]],
    relations: Sequence[list[_Row]],
) -> list[Tuple]:
    """What an instant gives: `contents` and `relations` are those just before it, and now."""
    old, new = relations
    before, now = ([*chain(*each)] for each in contents)
    windows = [moving.window for moving in movings_of(node)]
    # One that newer ones push out at once has come too. With SLIDE, a tuple comes at the next move.
    came = [
        each
        for each in chain(*members)
        if (each.time == instant and windows[each.side].slide_ms is None)
        or (each in now and each not in before)
    ]
    left = [each for each in before if each not in now]
    if node.change is Change.RSTREAM:
        label = united(each.tuple.label for each in (*now, *came, *left))
        return [Tuple((instant, *row.values), united([label, row.absent])) for row in new]
    # Rows of the same members are not touched by this instant.
    untouched = {_derived(row) for row in old} & {_derived(row) for row in new}
    gone = [row for row in old if _derived(row) not in untouched]
    there = [row for row in new if _derived(row) not in untouched]
    by_rows = [window.rows is not None for window in windows]

    def around(members: Iterable[_Member]) -> list[Label | None]:
        """The labels of all that decides who is in the windows of rows of these members."""
        names = {(each.side, each.partition) for each in members if by_rows[each.side]}
        return [each.tuple.label for each in now if (each.side, each.partition) in names]

    def of(rows: Iterable[_Row]) -> list[_Member]:
        return [each for row in rows for each in row.members]

    def added(row: _Row) -> Label:
        own = [each.tuple.label for each in row.members] + [row.absent]
        if row.group is None:
            # It is there because one of its tuples came, and the other one had stayed.
            return united([*own, *around(each for each in row.members if each.time < instant)])
        return united([*own, *around(of([row, *(r for r in gone if r.group == row.group)]))])

    def taken(row: _Row) -> Label:
        # A group's old row goes because of what its new row has, or has not.
        new_rows = [r for r in there if row.group is not None and r.group == row.group]
        own = [each.tuple.label for r in (row, *new_rows) for each in r.members]
        own += [each.absent for each in (row, *new_rows)]
        return united([*own, *around(of([row, *new_rows]))])

    gives = [(row.values, added(row)) for row in there], [(row.values, taken(row)) for row in gone]
    mine, others = gives if node.change is Change.ISTREAM else gives[::-1]
    return _uncancelled(instant, mine, others)


def _derived(row: _Row) -> tuple[object, ...]:
    """From what a row is derived. Without a partner it is another row than with one."""
    return row.group, row.members, row.absent


def _uncancelled(
    instant: datetime,
    mine: Sequence[tuple[tuple[Value, ...], Label]],
    others: Sequence[tuple[tuple[Value, ...], Label]],
) -> list[Tuple]:
    found = []
    for values in dict.fromkeys(values for values, _ in mine):
        labels = [label for each, label in mine if each == values]
        against = [label for each, label in others if each == values]
        kept = labels[len(against) :]
        if against:
            kept = [united([*labels, *against])] * len(kept)
        found += [Tuple((instant, *values), label) for label in kept]
    return found

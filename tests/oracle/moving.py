"""Moving windows, each instant computed from scratch, straight from catalog/SPEC.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain

from catalog.expression import AttributeRef
from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Change,
    Filter,
    Moving,
    MovingWindow,
    Node,
    Project,
    ToStream,
)
from tests.oracle.labels import united
from tests.oracle.relations import Member, RelationRow, Rules, movings_of, rows_of
from tests.oracle.schemas import schema_of
from tests.oracle.values import EPOCH, Tuple, Value

_TICK = timedelta(microseconds=1)


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
            relations = [rows_of(node.input, rules, held, reaches) for held in (before, now)]
            found += _step(node, instant, members, (before, now), relations)
    return found


def _members(side: int, moving: Moving, given: Sequence[Tuple], rules: Rules) -> list[Member]:
    timed = [(time, each) for each in given if (time := rules.time(moving.input, each)) is not None]
    return [
        Member(side, number, time, rules.partition(moving, each), each)
        for number, (time, each) in enumerate(sorted(timed, key=lambda pair: pair[0]))
    ]


def _instants(window: MovingWindow, members: Sequence[Member]) -> list[datetime]:
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


def _content(window: MovingWindow, members: Sequence[Member], at: datetime) -> list[Member]:
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


def _step(
    node: ToStream,
    instant: datetime,
    members: Sequence[Sequence[Member]],
    contents: Sequence[Sequence[Sequence[Member]]],
    relations: Sequence[list[RelationRow]],
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

    def around(members: Iterable[Member]) -> list[Label | None]:
        """The labels of all that decides who is in the windows of rows of these members."""
        names = {(each.side, each.partition) for each in members if by_rows[each.side]}
        return [each.tuple.label for each in now if (each.side, each.partition) in names]

    def of(rows: Iterable[RelationRow]) -> list[Member]:
        return [each for row in rows for each in row.members]

    def added(row: RelationRow) -> Label:
        own = [each.tuple.label for each in row.members] + [row.absent]
        if row.group is None:
            # It is there because one of its tuples came, and the other one had stayed.
            return united([*own, *around(each for each in row.members if each.time < instant)])
        return united([*own, *around(of([row, *(r for r in gone if r.group == row.group)]))])

    def taken(row: RelationRow) -> Label:
        # A group's old row goes because of what its new row has, or has not.
        new_rows = [r for r in there if row.group is not None and r.group == row.group]
        own = [each.tuple.label for r in (row, *new_rows) for each in r.members]
        own += [each.absent for each in (row, *new_rows)]
        return united([*own, *around(of([row, *new_rows]))])

    if node.change is Change.UPSERT:
        upserts = [Tuple((instant, False, *row.values), added(row)) for row in there]
        kept = {_of_one_key(row) for row in there}
        keys = _keys(node.input)
        for row in (each for each in gone if _of_one_key(each) not in kept):
            known = (v if key else None for v, key in zip(row.values, keys, strict=True))
            upserts.append(Tuple((instant, True, *known), taken(row)))
        return upserts
    gives = [(row.values, added(row)) for row in there], [(row.values, taken(row)) for row in gone]
    mine, others = gives if node.change is Change.ISTREAM else gives[::-1]
    return _uncancelled(instant, mine, others)


def _of_one_key(row: RelationRow) -> object:
    """What the row has in common with the one that replaces it."""
    return row.members[0].partition if row.group is None else row.group


def _keys(relation: Node) -> list[bool]:
    """For each value of a row whether it is a key."""
    match relation:
        case Filter(below):
            return _keys(below)
        case Project(below, columns):
            known = dict(zip(schema_of(below).names, _keys(below), strict=True))
            refs = (column.expression for column in columns)
            return [isinstance(ref, AttributeRef) and known[ref.name] for ref in refs]
        case Aggregate(_, keys, aggregations):
            return [True] * len(keys) + [False] * len(aggregations)
        case Moving(below, window):
            return [AttributeRef(name) in window.partition for name in schema_of(below).names]
        case _:
            raise AssertionError("no relation with a key")


def _derived(row: RelationRow) -> tuple[object, ...]:
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

"""Moving windows, each instant computed from scratch, straight from catalog/SPEC.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from catalog.expression import AttributeRef
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
)
from tests.oracle.labels import united
from tests.oracle.nested import is_loose, nodes_of
from tests.oracle.relations import (
    Id,
    Member,
    Relation,
    RelationRow,
    Rules,
    label_of,
    movings_of,
    rows_of,
    texts,
)
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
        _counted(moving.window, _members(side, moving, tuples, rules))
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
            found += _step(node, instant, members, (before, now), (relations[0], relations[1]))
    return found


def _members(side: int, moving: Moving, given: Sequence[Tuple], rules: Rules) -> list[Member]:
    def placed(pair: tuple[datetime, Tuple]) -> tuple[datetime, str]:
        # Results of one window are in the order of their keys.
        time, each = pair
        return time, texts(each.values[2 : 2 + keys])

    below = moving.input
    while isinstance(below, Filter):
        below = below.input
    keys = len(below.keys) if isinstance(below, Aggregate) else 0
    timed = [(time, each) for each in given if (time := rules.time(moving.input, each)) is not None]
    return [
        Member(side, number, time, time, rules.partition(moving, each), each)
        for number, (time, each) in enumerate(sorted(timed, key=placed))
    ]


def _counted(window: MovingWindow, members: Sequence[Member]) -> list[Member]:
    """The tuples of a window of tuples, as they come into it.

    A tuple comes at the move that takes it in, which is the time of another tuple. Where the window
    moves depends on all tuples of the partition before, so it has the labels of all of them.
    """
    if window.slide_rows is None:
        return [*members]
    assert window.rows is not None
    found = []
    for name in {each.partition for each in members}:
        part = [each for each in members if each.partition == name]
        moves = range(window.rows, len(part) + 1, window.slide_rows)
        for place, each in enumerate(part):
            later = [n for n in moves if n > place]
            if later:
                comes = part[later[0] - 1].time
                # Of several moves at one instant the last one counts.
                last = max(n for n in moves if part[n - 1].time == comes)
                label = united(e.tuple.label for e in part[:last])
                own = replace(each.tuple, label=label)
                found.append(replace(each, comes=comes, tuple=own))
    return sorted(found, key=lambda each: each.number)


def _instants(window: MovingWindow, members: Sequence[Member]) -> list[datetime]:
    if window.range_ms is None:
        return sorted({each.comes for each in members})
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
    past = [each for each in members if each.comes <= at]
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
    relations: tuple[Relation, Relation],
) -> list[Tuple]:
    """What an instant gives: `contents` and `relations` are those just before it, and now."""
    old, new = (each.rows for each in relations)
    before, now = ([*chain(*each)] for each in contents)
    windows = [moving.window for moving in movings_of(node)]
    # One that newer ones push out at once has come too. With SLIDE, a tuple comes at the next move.
    came = [
        each
        for each in chain(*members)
        if (each.comes == instant and windows[each.side].slide_ms is None)
        or (each in now and each not in before)
    ]
    left = [each for each in before if each not in now]
    everywhere = [_everywhere(node.input, each) for each in relations]
    if node.change is Change.RSTREAM:
        label = united([*(each.tuple.label for each in (*now, *came, *left)), everywhere[1]])
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

    def deciding(row: RelationRow, direct: Iterable[Member]) -> list[Label | None]:
        """The labels of all that decides about a row: in windows of rows, and in groups below.

        What is there in the place of a row below decides too, wherever it is now.
        """
        members, labels = [*direct], list[Label | None]()
        for one, other in _in_place(row.ids, relations):
            members += [each for r in (one, other) if r is not None for each in r.members]
            if other is not None and (one is None or _derived(one) != _derived(other)):
                labels.append(label_of(other))
        return [*around(members), *labels]

    def added(row: RelationRow) -> Label:
        # It is there because one of its tuples came, and the other one had stayed.
        stayed = [each for each in row.direct if each.comes < instant]
        return united([label_of(row), *deciding(row, stayed), everywhere[1]])

    def taken(row: RelationRow) -> Label:
        # A group's old row goes because of what its new row has, or has not.
        return united([label_of(row), *deciding(row, row.direct), *everywhere])

    if node.change is Change.UPSERT:
        upserts = [Tuple((instant, False, *row.values), added(row)) for row in there]
        names = _key_names(node.input)
        keys = [name in names for name in schema_of(node.input).names]

        def key(row: RelationRow) -> list[Value]:
            return [v if own else None for v, own in zip(row.values, keys, strict=True)]

        kept = [key(row) for row in there]
        for row in (each for each in gone if key(each) not in kept):
            upserts.append(Tuple((instant, True, *key(row)), taken(row)))
        return upserts
    gives = [(row.values, added(row)) for row in there], [(row.values, taken(row)) for row in gone]
    mine, others = gives if node.change is Change.ISTREAM else gives[::-1]
    return _uncancelled(instant, mine, others)


def _in_place(
    ids: Iterable[Id], relations: tuple[Relation, Relation]
) -> list[tuple[RelationRow | None, RelationRow | None]]:
    """The rows with these ids, before and now, and those of which they are derived."""
    before, now = relations
    waiting, found = [*ids], dict[Id, tuple[RelationRow | None, RelationRow | None]]()
    while waiting:
        own = waiting.pop()
        if own not in found:
            found[own] = (before.groups.get(own), now.groups.get(own))
            waiting += [each for row in found[own] if row is not None for each in row.ids]
    return [*found.values()]


def _everywhere(root: Node, relation: Relation) -> Label:
    """What each row carries, because some row depends on rows that are not among its own."""
    below = {
        (at, id(node))
        for high, at in nodes_of(root)
        if isinstance(high, Aggregate | Ranked) and is_loose(high)
        for node, at in nodes_of(high.input, at)
    }
    return united(label_of(row) for own, row in relation.groups.items() if own[:2] in below)


def _key_names(relation: Node) -> set[str]:
    """The names of the key in the rows of a relation, of several equal ones the first."""
    return {min(part) for part in _key(relation)}


def _key(node: Node) -> list[set[str]]:
    """The parts of the key, each with all attributes that have its value."""
    match node:
        case Filter(below):
            return _key(below)
        case Project(below, columns):
            return [
                {c.name for c in columns if c.expression in {AttributeRef(n) for n in part}}
                for part in _key(below)
            ]
        case Aggregate(_, keys):
            return [{each.name} for each in keys]
        case Moving(_, window):
            return [{each.name} for each in window.partition]
        case Ranked(below, partition, limit=limit, number=number):
            own = [{each.name} for each in partition]
            if limit == 1:
                return own
            return _key(below) if number is None else [*own, {number}]
        case MovingJoin():
            return _key_of_pairs(node)
        case _:
            raise AssertionError("no relation with a key")


def _key_of_pairs(node: MovingJoin) -> list[set[str]]:
    """The key of both sides, or of one if each of its rows finds one partner at most."""
    mine = _key(node.left)
    if node.kind is JoinKind.ANTI:
        return mine
    others = _key(node.right)
    if node.kind in (JoinKind.INNER, JoinKind.LEFT):
        others = [p | {a.name for a, b in node.equal if b.name in p} for p in others]
        if all(any(a.name in part for a, _ in node.equal) for part in others):
            return _with_left(node, mine)
    mine = _with_left(node, mine)
    if node.kind in (JoinKind.INNER, JoinKind.RIGHT) and all(
        any(b.name in part for _, b in node.equal) for part in mine
    ):
        return others
    return mine + others


def _with_left(node: MovingJoin, mine: list[set[str]]) -> list[set[str]]:
    if node.kind not in (JoinKind.INNER, JoinKind.RIGHT):
        return mine
    return [p | {b.name for a, b in node.equal if a.name in p} for p in mine]


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

"""The rows of changing relations at one instant, from scratch, straight from catalog/SPEC.md.

Groups, and rows in an order, may be below others. Each of their rows has an id, by which the row
before an instant and the row after it are the same one, changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product

from catalog.label import Label
from catalog.plan import (
    Aggregate,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    Node,
    Project,
    Ranked,
    Source,
    ToStream,
    Union,
)
from tests.oracle.labels import united
from tests.oracle.schemas import schema_of
from tests.oracle.values import Tuple, Value, microseconds

# The key of a group. If these tell groups apart: the label of its rows, and from what they are
# derived (without the witnesses of a semi join).
Key = tuple[tuple[Value, ...], Label | None, tuple[object, ...]]
# Of a row of groups: the first window of its node, the node, and the key of the row.
Id = tuple[int, int, Key]


@dataclass(frozen=True)
class Member:
    """A tuple below a window: the window's number, the tuple's number in the order of time.

    `time` is its event time. A window of tuples takes it in at the instant `comes`. Of all other
    windows this is its event time.
    """

    side: int
    number: int
    time: datetime
    comes: datetime
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
class RelationRow:
    """A row of the relation at an instant: its values, and the members from which it is derived.

    `group` is the key of its group, or None if it is the row of no group. `absent` is what the row
    tells by absence. `witnesses` are the members that only decide. `direct` are those that are not
    in a group, `ids` are those of all groups that the row is derived from, at every level. Rows
    that are equal in an order are in that of their `places`.
    """

    values: tuple[Value, ...]
    members: tuple[Member, ...]
    group: Key | None = None
    absent: Label = field(default_factory=Label)
    witnesses: tuple[Member, ...] = ()
    direct: tuple[Member, ...] = ()
    ids: frozenset[Id] = frozenset()
    places: tuple[tuple[object, ...], ...] = ()

    @property
    def subject(self) -> tuple[Member, ...]:
        """The members without the witnesses. Rows of one subject are one row in an aggregate."""
        return tuple(each for each in self.members if each not in self.witnesses)


def label_of(row: RelationRow) -> Label:
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


@dataclass
class Relation:
    """The rows of a whole relation, and the rows of all groups in it by their ids."""

    rules: Rules
    rows: list[RelationRow] = field(default_factory=list)
    groups: dict[Id, RelationRow] = field(default_factory=dict)

    def number(self, at: int, node: Node, rows: list[RelationRow]) -> list[RelationRow]:
        """The rows of groups of one node with their ids."""
        found = []
        for row in rows:
            assert row.group is not None
            own = (at, id(node), row.group)
            found.append(replace(row, ids=row.ids | {own}))
            self.groups[own] = found[-1]
        return found


def rows_of(
    node: Node,
    rules: Rules,
    contents: Sequence[Sequence[Member]],
    reaches: Sequence[Label],
) -> Relation:
    """A whole relation. The rows of a semi join are one for each subject and label."""
    relation = Relation(rules)
    groups: dict[Key, list[RelationRow]] = {}
    for row in _relation(node, relation, contents, reaches, 0):
        if row.witnesses and row.group is None:
            groups.setdefault((row.values, label_of(row), row.subject), []).append(row)
        else:
            relation.rows.append(row)
    made = [_of_rows(rows, key[0], key) for key, rows in groups.items()]
    relation.rows += relation.number(0, node, made)
    return relation


def _of_rows(rows: Sequence[RelationRow], values: tuple[Value, ...], key: Key) -> RelationRow:
    """A row that is derived from others."""
    ids = frozenset(each for row in rows for each in row.ids)
    return RelationRow(values, _members_of(rows), key, _absent_of(rows), ids=ids)


def _members_of(rows: Sequence[RelationRow]) -> tuple[Member, ...]:
    return tuple(member for row in rows for member in row.members)


def _absent_of(rows: Sequence[RelationRow]) -> Label:
    return united(row.absent for row in rows)


def _relation(
    node: Node,
    relation: Relation,
    contents: Sequence[Sequence[Member]],
    reaches: Sequence[Label],
    at: int,
) -> list[RelationRow]:
    """The rows of a relation whose windows, the first of which is `at`, hold these members."""
    rules = relation.rules
    match node:
        case Moving(below):
            # A deletion is no row of the relation. It takes the place of the row that it replaces.
            deleted = schema_of(below).names.index("deleted") if _is_upserts(below) else None
            return [
                RelationRow(
                    *(each.tuple.values, (each,)),
                    direct=(each,),
                    places=((at, each.time, each.number),),
                )
                for each in contents[0]
                if not each.tuple.hidden
                and (deleted is None or each.tuple.values[deleted] is False)
            ]
        case MovingJoin():
            return _joined(node, relation, contents, reaches, at)
        case Union(several):
            rows = []
            for below in several:
                count = len(movings_of(below))
                rows += _relation(below, relation, contents[:count], reaches[:count], at)
                contents, reaches, at = contents[count:], reaches[count:], at + count
            return rows
        case Filter(below):
            rows = _relation(below, relation, contents, reaches, at)
            return [row for row in rows if rules.passes(node, Tuple(row.values, Label()))]
        case Project(below):
            rows = _relation(below, relation, contents, reaches, at)
            return [
                replace(row, values=rules.made(node, Tuple(row.values, Label())).values)
                for row in rows
            ]
        case Ranked(below):
            rows = _relation(below, relation, contents, reaches, at)
            return relation.number(at, node, _ranked(node, rules, rows, at))
        case Aggregate(below):
            groups: dict[Key, list[RelationRow]] = {}
            for row in _relation(below, relation, contents, reaches, at):
                keys = rules.keys(node, Tuple(row.values, Label()))
                # DISTINCT is by value and label.
                label = None if node.aggregations else label_of(row)
                groups.setdefault((keys, label, ()), []).append(row)
            made = [_group(node, rules, key, rows, at) for key, rows in groups.items()]
            return relation.number(at, node, made)
        case _:
            raise AssertionError("no node of a relation")


def _is_upserts(node: Node) -> bool:
    return isinstance(node, Source) and bool(node.relation.keys)


def _group(
    node: Aggregate, rules: Rules, key: Key, rows: Sequence[RelationRow], at: int
) -> RelationRow:
    # A row counts once, however many witnesses it has.
    ordered = sorted(rows, key=lambda row: _places(row, row.subject))
    once = {(row.subject, row.places): Tuple(row.values, Label()) for row in ordered}
    values = rules.row(node, key[0], [*once.values()])
    return replace(_of_rows(rows, values, key), places=((at, texts(key[0])),))


def texts(values: Sequence[Value]) -> str:
    """The texts of several values as one."""
    return "\x1f".join(map(_text, values))


def _text(value: Value) -> str:
    match value:
        case None:
            return "\x1e"
        case bool():
            return "true" if value else "false"
        case datetime():
            return str(microseconds(value))
        case float():
            return repr(value + 0.0)
        case _:
            return str(value)


def _ranked(node: Ranked, rules: Rules, rows: Sequence[RelationRow], at: int) -> list[RelationRow]:
    def value(row: RelationRow, name: str) -> Value:
        return rules.value(node.input, name, Tuple(row.values, Label()))

    partitions: dict[tuple[Value, ...], list[RelationRow]] = {}
    for row in rows:
        key = tuple(value(row, each.name) for each in node.partition)
        partitions.setdefault(key, []).append(row)
    found = []
    for key, several in partitions.items():
        # The last key first: sorting keeps the order of what is equal.
        ordered = sorted(several, key=lambda row: _places(row, row.members))
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
            # Several rows below may have the same members, as two places of one order have.
            own: Key = (key, None, (row.group, *row.members))
            group = ((*key, place), None, ()) if node.by_place else own
            places = ((at, f"{texts(key)}\x1d{place:05}"),) if node.by_place else row.places
            found.append(replace(_of_rows(from_, values, group), places=places))
    return found


def _comparable(value: Value) -> tuple[bool, Value]:
    return (value is not None, 0 if value is None else value)


def _places(row: RelationRow, members: Sequence[Member]) -> list[tuple[object, ...]]:
    """What orders rows that are equal otherwise: their tuples, or the keys of their groups."""
    if row.ids:
        return [*row.places]
    tuples = sorted((each.side, each.time, each.number) for each in members)
    return [*tuples]


def _joined(
    node: MovingJoin,
    relation: Relation,
    contents: Sequence[Sequence[Member]],
    reaches: Sequence[Label],
    at: int,
) -> list[RelationRow]:
    count, rules = len(movings_of(node.left)), relation.rules
    left, right = (
        _relation(node.left, relation, contents[:count], reaches[:count], at),
        _relation(node.right, relation, contents[count:], reaches[count:], at + count),
    )
    found: list[RelationRow] = []
    partners: set[RelationRow] = set()
    for mine, other in product(left, right):
        pair = rules.pair(node, Tuple(mine.values, Label()), Tuple(other.values, Label()))
        if pair is None:
            continue
        partners |= {mine, other}
        semi = node.kind is JoinKind.SEMI
        found.append(
            RelationRow(
                mine.values if semi else pair.values,
                (*mine.members, *other.members),
                absent=united([mine.absent, other.absent]),
                witnesses=(*mine.witnesses, *(other.members if semi else other.witnesses)),
                direct=(*mine.direct, *other.direct),
                ids=mine.ids | other.ids,
                places=mine.places if semi else (*mine.places, *other.places),
            )
        )
    if node.kind is JoinKind.ANTI:
        found = []
    # A row without a partner reveals the absence of all that the other side could hold.
    if node.kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI):
        nothing = () if node.kind is JoinKind.ANTI else (None,) * rules.width(node.right)
        for row in (each for each in left if each not in partners):
            absent = united([row.absent, *reaches[count:]])
            values = (*row.values, *nothing)
            found.append(replace(row, values=values, absent=absent, group=None))
    if node.kind in (JoinKind.RIGHT, JoinKind.FULL):
        for row in (each for each in right if each not in partners):
            absent = united([row.absent, *reaches[:count]])
            values = (*(None,) * rules.width(node.left), *row.values)
            found.append(replace(row, values=values, absent=absent, group=None))
    return found

"""Upserts: results that replace the earlier result of their key, and deletions that take it back.

The key of a result is that of the relation (`keys_of`): the values of its group's keys, or, of a
window that holds one tuple for each key, the values of its partition, or those of both sides of a
join. Its version is the instant that changed the row. An instant changes a row once. So both follow
from tuples whose labels the result carries, and a subscriber keeps the result with the highest
version of each key.

A query reads such an output as a relation: the window `[PARTITION BY keys ROWS 1]` of its records,
which holds the newest row of each key. A deletion takes the row away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef
from catalog.plan import (
    DELETED,
    Aggregate,
    Change,
    Column,
    Filter,
    JoinKind,
    Moving,
    MovingJoin,
    MovingWindow,
    Node,
    Plan,
    Project,
    Ranked,
    Source,
    ToStream,
    inputs,
    walk,
)
from catalog.schema import Attribute, Schema, Type

_WHAT = (
    "UPSERT goes over groups: write GROUP BY with keys, and an aggregate such as count(*); or over "
    "the newest tuple of each key: trades [PARTITION BY symbol ROWS 1]; or over a join of such "
    "relations. UNION, DISTINCT, FULL JOIN, IN and EXISTS have no key"
)

_ONE_ROW = (
    "this relation has one row, so its upserts have no key: add GROUP BY with keys, or take the "
    "changes: ISTREAM(SELECT ... FROM trades [UNBOUNDED])"
)
_CHANGES = "take the changes: ISTREAM(SELECT ... FROM trades [UNBOUNDED] ...)"


def newest_of_each(keys: Iterable[str]) -> MovingWindow:
    """The window that holds the newest tuple of each key."""
    return MovingWindow(rows=1, partition=tuple(map(AttributeRef, keys)))


def require_read_by_key(node: Node, below: Node) -> None:
    """Raise InvalidInput if a node reads the upserts of an output other than by their keys.

    They replace each other. So a single one of them says nothing of the relation.
    """
    if not (isinstance(below, Source) and below.relation.keys):
        return
    window = newest_of_each(below.relation.keys)
    if not (isinstance(node, Moving) and node.window == window):
        raise refusal_of_single_upserts(below)


def refusal_of_single_upserts(source: Source) -> InvalidInput:
    """The error for a query that reads single upserts."""
    name, keys = source.relation.name, ", ".join(source.relation.keys)
    return InvalidInput(
        f"the output {name} gives upserts, which replace each other, so a query reads it as a "
        f"relation: write in SQL FROM {name}, which means {name} [PARTITION BY {keys} ROWS 1], and "
        "no other window"
    )


def require_whole(root: Node) -> None:
    """Raise InvalidInput if upserts are not the whole query.

    A deletion has no values but the key, so a condition or an expression over it has no meaning.
    """
    for node in walk(root):
        if isinstance(node, ToStream) and node.change is Change.UPSERT and node is not root:
            raise InvalidInput(
                "upserts are a whole query, without HAVING and without a query around it; take the "
                "changes as single results: ISTREAM(SELECT ... FROM trades [UNBOUNDED] ...)"
            )


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a key: the attributes that have its value, each of which will do."""

    names: frozenset[str]
    position: Position | None
    # What SELECT must name.
    what: str


# The key of a relation: no two rows have the same values in all parts. Without a part there is one
# row at most. None if the rows have no key.
_Key = tuple[_Part, ...] | None


def keys_of(relation: Node) -> tuple[str, ...]:
    """The names of the key in the rows of a relation. Raises InvalidInput if they have none.

    These are the keys of groups, the partition of a window of one tuple, or of rows in an order.
    The rows of a join have the keys of both sides. A side of which a row finds one partner at most,
    because the join compares its whole key, adds nothing.
    """
    key = _key(relation)
    if not key:
        raise InvalidInput(_WHAT if key is None else _ONE_ROW)
    return tuple(dict.fromkeys(min(part.names) for part in key))


def _key(node: Node) -> _Key:
    match node:
        case Filter(below):
            return _key(below)
        case Project(below, columns):
            key = _key(below)
            return None if key is None else tuple(_renamed(part, columns) for part in key)
        case Aggregate(_, keys, aggregations) if aggregations:
            return _parts(((k.name, k.expression.position) for k in keys), "everything of GROUP BY")
        case Moving(window=MovingWindow(rows=1, partition=partition)):
            return _parts(((key.name, key.position) for key in partition), "the key")
        case Ranked(below, partition):
            own = _parts(((key.name, key.position) for key in partition), "all of PARTITION BY")
            if node.limit == 1:
                return own
            if node.number is None:
                return _key(below)
            return (*own, _Part(frozenset({node.number}), None, "the row number"))
        case MovingJoin():
            return _of_join(node)
        case _:
            return None


def _parts(keys: Iterable[tuple[str, Position | None]], what: str) -> tuple[_Part, ...]:
    return tuple(_Part(frozenset({name}), position, what) for name, position in keys)


def _of_join(node: MovingJoin) -> _Key:
    left, right = _key(node.left), _key(node.right)
    if node.kind is JoinKind.ANTI:
        return left
    # Of FULL, a row of each side may be alone with a key that is NULL.
    if left is None or right is None or node.kind in (JoinKind.SEMI, JoinKind.FULL):
        return None
    mine = {other.name: own.name for own, other in node.equal}
    others = {own: other for other, own in mine.items()}
    # A row that is in no pair has NULL for the other side, which stands for no value of its own.
    if not node.kind.keeps_right:
        right = tuple(_with_equals(part, mine) for part in right)
    if not node.kind.keeps_left:
        left = tuple(_with_equals(part, others) for part in left)
    if not node.kind.keeps_right and all(part.names & {*mine.values()} for part in right):
        return left
    if not node.kind.keeps_left and all(part.names & {*others.values()} for part in left):
        return right
    return (*left, *right)


def _with_equals(part: _Part, equal: Mapping[str, str]) -> _Part:
    names = {equal[name] for name in part.names if name in equal}
    return replace(part, names=part.names | names)


def _renamed(part: _Part, columns: Sequence[Column]) -> _Part:
    """The part by the names that a Project gives."""
    names = frozenset(
        column.name
        for column in columns
        if isinstance(column.expression, AttributeRef) and column.expression.name in part.names
    )
    if not names:
        raise InvalidInput(
            f"the results of upserts have a key, so SELECT names {part.what}; add it, or "
            f"{_CHANGES}",
            part.position,
        )
    return replace(part, names=names)


def upsert_keys(plan: Plan) -> tuple[str, ...]:
    """The names of the keys if the plan gives upserts, otherwise nothing."""
    root = plan.root
    if isinstance(root, ToStream) and root.change is Change.UPSERT:
        return keys_of(root.input)
    return ()


def upsert_schema(node: ToStream, relation: Schema) -> Schema:
    """The attributes of upserts behind `instant`. A deletion has the keys alone."""
    keys = keys_of(node.input)
    if DELETED in relation.names:
        raise InvalidInput(
            f"{DELETED!r} is the name that says whether a group is gone; rename yours with AS"
        )
    deleted = Attribute(DELETED, Type.BOOLEAN, required=True)
    rows = (
        each if each.name in keys else replace(each, required=False) for each in relation.attributes
    )
    return Schema((deleted, *rows))


def usually_upserts(relation: Node) -> bool:
    """Whether the changes of a relation are upserts if nothing else is said.

    This is so for all that has a key, if no tuple ever leaves its windows but by an upsert. It is
    not so for rows in an order, except for the first row of each partition.
    """
    try:
        keys_of(relation)
    except InvalidInput:
        return False
    if _are_ordered(relation):
        return False
    return all(_stays(each) for each in walk(relation) if isinstance(each, Moving))


def _are_ordered(relation: Node) -> bool:
    """Whether the rows, or those that a join makes them of, have several places in an order."""
    if isinstance(relation, Filter | Project | MovingJoin):
        return any(map(_are_ordered, inputs(relation)))
    if not isinstance(relation, Ranked):
        return False
    return relation.limit != 1 or not relation.partition


def _stays(moving: Moving) -> bool:
    below = moving.input
    reads_upserts = isinstance(below, Source) and bool(below.relation.keys)
    return reads_upserts or moving.window == MovingWindow()

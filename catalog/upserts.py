"""Upserts: results that replace the earlier result of their key, and deletions that take it back.

The key of a result is the values of its group's keys, or, of a window that holds one tuple for each
key, the values of its partition. Its version is the instant that changed the group. An instant
changes a group once. So both follow from tuples whose labels the result carries, and a subscriber
keeps the result with the highest version of each key.

A query reads such an output as a relation: the window `[PARTITION BY keys ROWS 1]` of its records,
which holds the newest row of each key. A deletion takes the row away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from catalog.errors import InvalidInput, Position
from catalog.expression import AttributeRef
from catalog.plan import (
    DELETED,
    Aggregate,
    Change,
    Filter,
    Moving,
    MovingWindow,
    Node,
    Plan,
    Project,
    Source,
    ToStream,
    inputs,
    walk,
)
from catalog.schema import Attribute, Schema, Type

_WHAT = (
    "UPSERT goes over groups: write GROUP BY with keys, and an aggregate such as count(*); or over "
    "the newest tuple of each key: trades [PARTITION BY symbol ROWS 1]"
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


def keys_of(relation: Node) -> tuple[str, ...]:
    """The names of the key in the rows of a relation. Raises InvalidInput.

    These are the keys of groups, or the partition of a window of one tuple.
    """
    below: Node = relation
    steps: list[Filter | Project] = []
    while isinstance(below, Filter | Project):
        steps.append(below)
        below = below.input
    match below:
        case Aggregate() if below.keys and below.aggregations:
            names, what = [key.name for key in below.keys], "everything of GROUP BY"
            places = [key.expression.position for key in below.keys]
        case Moving(window=MovingWindow(rows=1, partition=partition)) if partition:
            names, what = [key.name for key in partition], "the key"
            places = [key.position for key in partition]
        case _:
            raise InvalidInput(_WHAT)
    for step in reversed(steps):
        if isinstance(step, Project):
            names = _renamed(names, step, what, places)
    return tuple(names)


def _renamed(
    names: Sequence[str], project: Project, what: str, places: Sequence[Position | None]
) -> list[str]:
    shown = {
        column.expression.name: column.name
        for column in project.columns
        if isinstance(column.expression, AttributeRef)
    }
    for name, place in zip(names, places, strict=True):
        if name not in shown:
            raise InvalidInput(
                f"the results of upserts have a key, so SELECT names {what}; add it, or {_CHANGES}",
                place,
            )
    return [shown[name] for name in names]


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

    These are groups with keys over one window that no tuple leaves, and all that has a key over one
    output that gives upserts itself.
    """
    try:
        keys_of(relation)
    except InvalidInput:
        return False
    windows = [each for each in walk(relation) if isinstance(each, Moving)]
    if len(windows) != 1 or any(len(inputs(each)) > 1 for each in walk(relation)):
        return False
    below = windows[0].input
    reads_upserts = isinstance(below, Source) and bool(below.relation.keys)
    return reads_upserts or windows[0].window == MovingWindow()

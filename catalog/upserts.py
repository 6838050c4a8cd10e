"""Upserts: results that replace the earlier result of their group, and deletions that take it back.

The key of a result is the values of its group's keys. Its version is the instant that changed the
group. An instant changes a group once. So both follow from tuples whose labels the result carries,
and a subscriber keeps the result with the highest version of each key.
"""

from __future__ import annotations

from dataclasses import replace

from catalog.errors import InvalidInput
from catalog.expression import AttributeRef
from catalog.plan import (
    DELETED,
    Aggregate,
    Change,
    Moving,
    MovingWindow,
    Node,
    Plan,
    Project,
    ToStream,
    inputs,
    walk,
)
from catalog.schema import Attribute, Schema, Type

_WHAT = "UPSERT goes over groups: write GROUP BY with keys, and an aggregate such as count(*)"


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
    """The names of the group's keys in the rows of a relation. Raises InvalidInput."""
    columns = None
    if isinstance(relation, Project):
        columns, relation = relation.columns, relation.input
    if not isinstance(relation, Aggregate) or not (relation.keys and relation.aggregations):
        raise InvalidInput(_WHAT)
    keys = [key.name for key in relation.keys]
    if columns is None:
        return tuple(keys)
    shown = {
        column.expression.name: column.name
        for column in columns
        if isinstance(column.expression, AttributeRef)
    }
    missing = [key for key in relation.keys if key.name not in shown]
    if missing:
        raise InvalidInput(
            "the results of upserts have a key, so SELECT names everything of GROUP BY; add it, or "
            "take the changes: ISTREAM(SELECT ... FROM trades [UNBOUNDED] ...)",
            missing[0].expression.position,
        )
    return tuple(shown[name] for name in keys)


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


def is_unbounded_group(relation: Node) -> bool:
    """Whether a relation is groups with keys over one window that no tuple leaves."""
    below = relation.input if isinstance(relation, Project) else relation
    if not isinstance(below, Aggregate) or not (below.keys and below.aggregations):
        return False
    windows = [each for each in walk(below) if isinstance(each, Moving)]
    single = len(windows) == 1 and all(len(inputs(each)) < 2 for each in walk(below))
    return single and windows[0].window == MovingWindow()

"""The relation of which a query gives the changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from catalog.checked_plan import CheckedNode
from catalog.expression import AttributeRef, Expression, attributes_of
from catalog.moving_check import is_of_windows
from catalog.plan import DELETED, INSTANT, Filter, Project, ToStream, Union
from secadmin.languages.building import Built, build

OF_CHANGES = frozenset({INSTANT, DELETED})
"""The attributes that only changes have."""


def relation_of(built: Built) -> Built | None:
    """The relation of which a query gives the changes, with its steps. None if it gives others."""
    found = _relation(built.checked)
    # The steps are those of the query, so they are as many.
    return None if found is None else replace(found, parts=built.parts)


def _relation(checked: CheckedNode) -> Built | None:
    node = checked.node
    if isinstance(node, ToStream):
        # What windows of time gave is a stream: a relation holds it for an instant only.
        return None if is_of_windows(checked) else Built(checked.inputs[0], 0)
    if not isinstance(node, Filter | Project | Union):
        return None
    below = tuple(each for each in map(_relation, checked.inputs) if each is not None)
    if len(below) < len(checked.inputs):
        return None
    names = {*below[0].schema.names}
    match node:
        case Filter(_, condition):
            if not _reads([condition], names):
                return None
            return build(replace(node, input=below[0].node), below, condition.position)
        case Project(_, columns):
            # The time of a change is no attribute of the relation.
            own = tuple(c for c in columns if not _is_of_changes(c.expression, names))
            if not own or not _reads([c.expression for c in own], names):
                return None
            return build(Project(below[0].node, own), below, own[0].expression.position)
        case Union():
            return build(Union(tuple(each.node for each in below)), below, None)


def _is_of_changes(expression: Expression, names: set[str]) -> bool:
    return isinstance(expression, AttributeRef) and expression.name in OF_CHANGES - names


def _reads(expressions: Iterable[Expression], names: set[str]) -> bool:
    return all(ref.name in names for each in expressions for ref in attributes_of(each))

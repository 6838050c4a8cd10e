"""A query's output as a relation that other queries can read."""

from __future__ import annotations

from catalog.checked_plan import CheckedPlan
from catalog.plan import source_nodes
from catalog.reach import is_public
from catalog.relation import Relation, RelationKind


def output_relation(object_id: int, name: str, checked: CheckedPlan) -> Relation:
    """The relation that the results of a plan make up."""
    read = source_nodes(checked.plan)
    classes = {id_ for source in read for id_ in source.relation.conflict_classes}
    return Relation(
        object_id=object_id,
        name=name,
        kind=RelationKind.OUTPUT,
        schema=checked.schema,
        event_time=checked.event_time,
        lateness_ms=checked.delay_ms,
        public=is_public(checked.plan),
        conflict_classes=tuple(sorted(classes)),
    )

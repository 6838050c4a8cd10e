"""A query's output as a relation that other queries can read."""

from __future__ import annotations

from catalog.checked_plan import CheckedPlan
from catalog.plan import source_nodes
from catalog.reach import is_public
from catalog.relation import Relation, RelationKind
from catalog.time_source import TimeSource
from catalog.upserts import upsert_keys


def output_relation(object_id: int, name: str, checked: CheckedPlan) -> Relation:
    """The relation that the results of a plan make up.

    Ticks move its time if ticks move that of all that the plan reads.
    """
    read = source_nodes(checked.plan)
    by_ticks = all(source.relation.by_ticks for source in read)
    classes = {id_ for source in read for id_ in source.relation.conflict_classes}
    return Relation(
        object_id=object_id,
        name=name,
        kind=RelationKind.OUTPUT,
        schema=checked.schema,
        event_time=checked.event_time,
        lateness_ms=checked.delay_ms,
        public=is_public(checked.plan),
        time=TimeSource.BROKER if by_ticks else TimeSource.DATA,
        conflict_classes=tuple(sorted(classes)),
        keys=upsert_keys(checked.plan),
    )

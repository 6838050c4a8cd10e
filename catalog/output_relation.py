"""A query's output as a relation that other queries can read."""

from __future__ import annotations

from catalog.plan import Plan
from catalog.plan_check import check_plan, event_time, is_public, lateness_ms, reach
from catalog.relation import Relation, RelationKind


def output_relation(object_id: int, name: str, plan: Plan) -> Relation:
    """The relation that the results of `plan` make up. Raises InvalidInput for a wrong plan."""
    return Relation(
        object_id=object_id,
        name=name,
        kind=RelationKind.OUTPUT,
        schema=check_plan(plan),
        event_time=event_time(plan),
        lateness_ms=lateness_ms(plan),
        reach=reach(plan),
        public=is_public(plan),
    )

"""A query's output as a relation that other queries can read."""

from __future__ import annotations

from catalog.plan import Aggregate, Join, Plan, Source, walk
from catalog.plan_check import check_plan, event_time, is_public, reach
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


def lateness_ms(plan: Plan) -> int:
    """How far a result may lag behind the newest one: as far as the latest of its sources.

    An update also lags by a window: a tuple is in windows that end up to a window's size apart. A
    pair goes by its left side, and one right tuple ends the wait of left ones that are up to the
    join's interval apart.
    """
    late = max(node.relation.lateness_ms for node in walk(plan) if isinstance(node, Source))
    return late + max((_spread_ms(node) for node in walk(plan)), default=0)


def _spread_ms(node: Plan) -> int:
    """How far apart the results can be that one tuple gives."""
    match node:
        case Aggregate(updates=True):
            return node.window.size_ms
        case Join():
            return node.upper_ms - node.lower_ms
        case _:
            return 0

"""The rate of a plan: for how many tuples a second its sources count.

A stream counts for the rate that its owner has declared. No rate is measured: what is refused for a
measured rate would tell a subscriber how many tuples come that it may not see.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.limits import Limits
from catalog.models import OutputRow, StreamRow
from catalog.plan import Plan, source_nodes, sources
from catalog.relation import RelationKind
from catalog.stored_form import from_stored


def rate_of(session: Session, plan: Plan, limits: Limits) -> int:
    """The rates of all that the plan reads together: what it reads twice counts twice.

    An output counts for the rate of its own plan. There is no recursion, because there may be long
    chains of outputs.
    """
    known: dict[int, int] = {}
    plans: dict[int, Plan] = {}
    waiting = list(sources(plan))
    while waiting:
        number, kind = waiting[-1].object_id, waiting[-1].kind
        if number in known:
            waiting.pop()
        elif kind is RelationKind.STREAM:
            known[number] = _declared(session, number) or limits.stream_rate
        else:
            if number not in plans:
                plans[number] = _plan_of(session, number)
            below = plans[number]
            missing = [each for each in sources(below) if each.object_id not in known]
            waiting += missing
            if not missing:
                known[number] = _sum(below, known)
    return _sum(plan, known)


def _sum(plan: Plan, rates: Mapping[int, int]) -> int:
    return sum(rates[each.relation.object_id] for each in source_nodes(plan))


def _declared(session: Session, stream_id: int) -> int | None:
    return session.scalar(select(StreamRow.rate).where(StreamRow.object_id == stream_id))


def _plan_of(session: Session, output_id: int) -> Plan:
    return from_stored(Plan, session.get_one(OutputRow, output_id).plan)

"""Stores the outputs of a query with their plans: when it is added, and when it is merged anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, orm

from catalog.admission import runs_in, slots_of
from catalog.canonical import sharing_key
from catalog.checked_plan import CheckedPlan
from catalog.models import Object, OutputInput, OutputRow, OutputView
from catalog.moves import whole_from_ms
from catalog.output_relation import output_relation
from catalog.placement import Placement
from catalog.plan import Plan, sources
from catalog.plan_memory import shared_memory_ms
from catalog.stored_form import to_stored
from catalog.view_windows import from_whole_windows
from secadmin.control import declared
from secadmin.control.platform import Platform
from secadmin.control.shared_executions import Computed, Wanted, assign_new, compute, role_of_space
from secadmin.control.visible_relations import VisibleRelations

DAY_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Beginning:
    """What all outputs of a query have in common when they begin.

    That is what the query reads, where the fan-out is, and the `offsets` that the lab topics
    had at the time `since`.
    """

    relations: VisibleRelations
    placement: Placement
    offsets: Mapping[str, Mapping[str, int]]
    since: datetime


def store_outputs(
    platform: Platform,
    session: orm.Session,
    query_id: int,
    outputs: Mapping[Object, CheckedPlan],
    begin: Beginning,
) -> None:
    """Store what the outputs are computed by from now on: executions that begin there.

    What an output had before is replaced. Raises Conflict if no engine has room.
    """
    relations, placement, offsets = begin.relations, begin.placement, begin.offsets
    role = role_of_space(session, relations.as_roles)
    space = platform.spaces.own(role)
    homes = platform.spaces.homes(role, placement)
    runs = runs_in(homes, placement, platform.limits)
    computed: list[Computed] = []
    for output, checked in outputs.items():
        read = {relation.topic: relation for relation in sources(checked.plan)}
        seen_from = declared.seen_from(session, read.values(), offsets, begin.since)
        whole = {i: at for i, at in seen_from.items() if i in relations.in_windows}
        plan = from_whole_windows(declared.with_whole_windows(checked.plan, seen_from), whole)
        stored = to_stored(plan)
        begins = {topic: dict(offsets[topic]) for topic in read}
        key = sharing_key(checked, relations.level, placement, space)
        whole_ms = _whole_ms(session, checked, plan, begin.since) if key else None
        # State that depends on when the query was added is shared with nobody.
        key = "" if whole_ms is None and checked.keeps_state else key
        slots = slots_of(checked.plan, offsets, runs)
        computed.append(compute(session, Wanted(key, stored, begins, slots, whole_ms)))
        row = session.get(OutputRow, output.id) or _new_row(output, query_id, begin)
        row.relation = to_stored(output_relation(output.id, output.name, checked))
        row.plan, row.starting_offsets = stored, begins
        row.execution_id = computed[-1].execution
        row.after_ms, row.moves_to, row.turn_ms, row.turns = None, None, None, False
        session.add(row)
        for table in (OutputInput, OutputView):
            session.execute(delete(table).where(table.output_id == output.id))
        for relation in read.values():
            read_id = relation.object_id
            session.add(OutputInput(output_id=output.id, relation_id=read_id))
            if read_id in relations.viewed:
                seen = to_stored(relations.viewed[read_id].view)
                session.add(OutputView(output_id=output.id, stream_id=read_id, view=seen))
        session.flush()
    assign_new(platform, session, computed, homes)


def _whole_ms(
    session: orm.Session, checked: CheckedPlan, seen: Plan, since: datetime
) -> int | None:
    """The event time behind which its results depend on no tuple of before that time.

    None for a query without state, and for one that looks at when it begins.
    """
    memory_ms = shared_memory_ms(checked) if seen == checked.plan else None
    if memory_ms is None:
        return None
    return whole_from_ms(session, checked.plan, memory_ms, since)


def _new_row(output: Object, query_id: int, begin: Beginning) -> OutputRow:
    level = begin.relations.level
    return OutputRow(
        object_id=output.id,
        query_id=query_id,
        level=None if level is None else level.to_wire(),
        retention_ms=DAY_MS,
        placement=begin.placement.value,
    )

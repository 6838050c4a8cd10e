"""Level engines: each runs the isolated classes of one level, and nothing else (001 §2).

They are the paper's replicated query processors. The level of a class is its clearance. In such an
engine the class has an execution of its own. The engine belongs to the level as long as a class of
the level is assigned to it, also a closed one whose run may not have ended. So no engine ever runs
two levels. A class for which no engine is free waits: nothing runs for it.

Call what writes inside `Catalog.change` or `Catalog.bookkeeping`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from catalog.admission import slots_of, taken_slots
from catalog.assignments import assign
from catalog.engines import LEVELS
from catalog.limits import Limits
from catalog.models import (
    Assignment,
    Backfill,
    DeliveryClass,
    ExecutionRow,
    Object,
    OutputRow,
    QueryRow,
)
from catalog.placement import Placement
from catalog.plan import Plan
from catalog.spaces import Spaces
from catalog.store import bump_generation
from catalog.stored_form import from_stored

# Their runs have ended, and their topics stay.
_ENDED = select(Backfill.class_id).where(Backfill.ended_at.is_not(None))


def waiting_classes(session: Session, spaces: Spaces) -> Sequence[tuple[DeliveryClass, OutputRow]]:
    """The open classes that wait for an engine of their level, each with its output."""
    session.flush()
    rows = (
        select(DeliveryClass, OutputRow)
        .join(OutputRow, OutputRow.object_id == DeliveryClass.output_id)
        .join(Object, Object.id == DeliveryClass.output_id)
        .where(OutputRow.placement == Placement.APART, DeliveryClass.closed_at.is_(None))
        .where(Object.removed_at.is_(None), DeliveryClass.id.not_in(_ENDED))
        .order_by(DeliveryClass.id)
    )
    found = [(row, output) for row, output in session.execute(rows)]
    homes = _homes(session) if found else {}

    def waits(row: DeliveryClass, output: OutputRow) -> bool:
        if row.execution_id is None:
            return homes.get(output.execution_id) == LEVELS
        home = homes.get(row.execution_id)
        return home not in spaces.of_levels if spaces.levels else home == LEVELS

    return [each for each in found if waits(*each)]


def give_engines(
    session: Session, spaces: Spaces, limits: Limits, waiting: Sequence[DeliveryClass]
) -> Sequence[DeliveryClass]:
    """Give each of these classes an engine of its level, as far as there are any.

    Returns the classes that wait on. If no engine is for levels any more, they get usual ones.
    """
    left, changed = [], False
    for row in waiting:
        output = session.get_one(OutputRow, row.output_id)
        slots = slots_of(from_stored(Plan, output.plan), output.starting_offsets)
        engine = _engine_for(session, spaces, limits, row, slots)
        if engine is None:
            changed |= _let_wait(session, row)
            left.append(row)
            continue
        if row.execution_id is None:
            made = ExecutionRow(key="", plan=output.plan, starting_offsets={}, slots=slots)
            session.add(made)
            session.flush()
            row.execution_id = made.id
        assign(session, {row.execution_id: slots}, [engine], limits)
        changed = True
    session.flush()
    if changed:
        bump_generation(session)
    return left


def free_engines(session: Session, spaces: Spaces) -> Sequence[str]:
    """The level engines that belong to no level."""
    levels, strange = _levels_in(session), _engines_of_others(session)
    return [each for each in spaces.of_levels if not levels[each] and each not in strange]


def _engine_for(
    session: Session, spaces: Spaces, limits: Limits, row: DeliveryClass, slots: int
) -> str | None:
    """An engine that has room and is of this level, or of none yet; None if there is none."""
    engines = spaces.of_levels or spaces.homes()
    taken = taken_slots(session, engines)
    with_room = [each for each in engines if taken[each] + slots <= limits.slots]
    if not spaces.levels:
        return min(with_room, key=lambda each: taken[each], default=None)
    levels, free = _levels_in(session), free_engines(session, spaces)
    # An engine that the level has already comes first.
    fitting = [*(each for each in with_room if levels[each] == {row.clearance}), *free]
    return next((each for each in fitting if each in with_room), None)


def _let_wait(session: Session, row: DeliveryClass) -> bool:
    """Let the class leave an engine that is for its level no more. Says whether it is in one."""
    assigned = None if row.execution_id is None else session.get(Assignment, row.execution_id)
    if assigned is None or assigned.home == LEVELS:
        return False
    assigned.home = LEVELS
    return True


def _levels_in(session: Session) -> defaultdict[str, set[str]]:
    """Engine -> the levels whose classes are assigned to it, or may still run there."""
    rows = select(DeliveryClass.clearance, Assignment.home, Assignment.engine)
    rows = rows.join(Assignment, Assignment.execution_id == DeliveryClass.execution_id)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for level, *engines in session.execute(rows.where(DeliveryClass.removed_at.is_(None))):
        for engine in engines:
            found[engine].add(level)
    return found


def _engines_of_others(session: Session) -> frozenset[str]:
    """The engines where something else than a class of a level runs, or is assigned to.

    That is so when the settings have made an engine one for levels, until what runs there stops.
    """
    its_own = OutputRow.execution_id == Assignment.execution_id
    rows = (
        select(Assignment.home, Assignment.engine)
        .join(OutputRow, or_(its_own, OutputRow.moves_to == Assignment.execution_id))
        .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
        .join(Object, Object.id == OutputRow.object_id)
        .where(QueryRow.running, Object.removed_at.is_(None))
    )
    return frozenset(engine for row in session.execute(rows) for engine in row)


def _homes(session: Session) -> Mapping[int, str]:
    rows = session.execute(select(Assignment.execution_id, Assignment.home))
    return {row.execution_id: row.home for row in rows}

"""Moves executions after their engine has died, and moves them back (`catalog.probation`).

Each engine does this for its own executions, when it begins and at each beat, because then it knows
what runs in it. Call all functions inside `Catalog.bookkeeping`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.orm import Session, aliased

from catalog.admission import taken_slots
from catalog.assignments import hand_over, newest_group, reports_on
from catalog.balance import balanced
from catalog.engines import INGEST, LEVELS, PROBATION
from catalog.limits import Limits
from catalog.models import (
    Assignment,
    DeliveryClass,
    ExecutionRow,
    Heartbeat,
    Object,
    OutputRow,
    QueryRow,
    RunStatus,
    TopicFault,
)
from catalog.probation import (
    LONG_LIFE_BEATS,
    PARKED,
    Suspect,
    after_death,
    is_parked,
    next_group,
    proven_after,
    suspects,
)
from catalog.pulse import heartbeat_of
from catalog.store import bump_generation


def note_death(session: Session, engine: str) -> None:
    """Note that the engine's last process has died, and find out which executions are suspected.

    They move only when the next process begins. Until then the dead one's Spark may still run them.
    """
    if engine == PROBATION:
        _blame(session)
    elif engine != INGEST:
        heart = heartbeat_of(session, engine)
        _suspect(session, heart)
        heart.deaths += 1
    session.flush()
    bump_generation(session)


def begin(session: Session, engine: str) -> None:
    """Note that the engine's process begins, and that nothing of its last one runs any more."""
    heart = heartbeat_of(session, engine)
    heart.began, heart.ended = heart.beats, False
    for row in _rows(session, engine):
        row.tried, row.tried_beat = False, None
        hand_over(session, row)
    session.flush()
    bump_generation(session)


def keep(session: Session, engine: str) -> None:
    """Continue the moves and trials of the engine. Call it at each beat."""
    heart = heartbeat_of(session, engine)
    rows = _rows(session, engine)
    moved = [row for row in rows if hand_over(session, row)]
    changed = bool(moved)
    if engine == PROBATION:
        changed |= _keep_trying(session, heart.beats)
    elif heart.deaths and heart.beats - heart.began >= LONG_LIFE_BEATS:
        heart.deaths = 0
        session.execute(update(Assignment).where(Assignment.home == engine).values(trials=0))
    if changed:
        session.flush()
        bump_generation(session)


def end(session: Session, engine: str) -> None:
    """Note that the engine has ended normally, so nothing runs in it any more."""
    heartbeat_of(session, engine).ended = True
    session.flush()


def awaits_trial(session: Session) -> bool:
    """Whether an execution waits to run in `probation`, or runs there now.

    It may still have to be handed over. Until then the engine can start its Spark.
    """
    return bool(_on_trial(session))


def trial_starts(session: Session) -> bool:
    """Whether a trial is due, and an execution of the group that is tried does not run yet."""
    waiting = _on_trial(session)
    tried = [row for row in waiting if row.tried] or waiting
    return any(row.engine != PROBATION or not _runs(session, row) for row in tried)


def _on_trial(session: Session) -> list[Assignment]:
    on_trial = _wanted_rows(session, or_(Assignment.engine == PROBATION, Assignment.on_trial))
    return [row for row in on_trial if not row.parked_because]


def _runs(session: Session, row: Assignment) -> bool:
    running = select(RunStatus.name).where(RunStatus.state == "running")
    return session.scalar(running.where(reports_on(row.execution_id)).limit(1)) is not None


def has_superfluous(session: Session, engines: Collection[str]) -> bool:
    """Whether the catalog has engines other than `engines`, `ingest` and `probation`."""
    return bool(_superfluous(session, engines))


def give_up(
    session: Session,
    engines: Collection[str],
    gone: Collection[str],
    limits: Limits,
    homes: Collection[str] | None = None,
) -> None:
    """Find new homes for the executions of engines that the deployment does not have any more.

    `engines` are its query engines, and `homes` those of them that no role has for itself (None:
    all). `gone` are engines that have surely ended. An execution for which there is no room waits.
    """
    for heart in _superfluous(session, engines):
        if heart.ended or heart.engine in gone:
            _move_all(session, heart.engine, engines if homes is None else homes, limits)


def _superfluous(session: Session, engines: Collection[str]) -> list[Heartbeat]:
    query = select(Heartbeat).where(Heartbeat.engine.not_in((*engines, INGEST, PROBATION)))
    return list(session.scalars(query))


def _move_all(session: Session, old: str, engines: Collection[str], limits: Limits) -> None:
    there = select(Assignment).where(Assignment.home == old)
    rows = {row.execution_id: row for row in session.scalars(there)}
    # An engine of a level is given by other rules. What runs there waits for another one.
    classes = select(DeliveryClass.execution_id).where(DeliveryClass.execution_id.in_(rows))
    levels = set(session.scalars(classes))
    query = select(ExecutionRow.id, ExecutionRow.slots).where(ExecutionRow.id.in_(rows))
    wanted = {row.execution_id for row in _wanted_rows(session, Assignment.home == old)}
    # A stopped execution takes no room until it is started.
    found_rows = session.execute(query)
    slots = {
        row.id: row.slots if row.id in wanted else 0 for row in found_rows if row.id not in levels
    }
    found = balanced(slots, taken_slots(session, engines), limits.slots)
    if found is None:
        return
    waiting = dict.fromkeys(rows.keys() & levels, LEVELS)
    for execution_id, home in (found | waiting).items():
        row = rows[execution_id]
        row.home = home
        if row.engine == old:
            own = update(RunStatus).where(reports_on(execution_id))
            session.execute(own.values(state="stopped", message="", topics=[]))
            hand_over(session, row)
    session.execute(delete(TopicFault).where(TopicFault.engine == old))
    session.execute(delete(Heartbeat).where(Heartbeat.engine == old))
    session.flush()
    bump_generation(session)


def _suspect(session: Session, heart: Heartbeat) -> None:
    there = _wanted_rows(session, Assignment.engine == heart.engine)
    rows = {r.execution_id: r for r in there if not r.parked_because and not r.on_trial}
    changed = {execution_id: row.changed_beat for execution_id, row in rows.items()}
    group = newest_group(session) + 1
    for execution_id in suspects(changed, heart.beats, heart.deaths):
        rows[execution_id].on_trial, rows[execution_id].trial_group = True, group


def _blame(session: Session) -> None:
    rows = {row.execution_id: row for row in _rows(session, PROBATION) if row.tried}
    for each in after_death([_suspect_of(row) for row in rows.values()], newest_group(session)):
        row = rows[each.execution]
        row.deaths, row.trial_group = each.deaths, each.group
        row.tried, row.tried_beat = False, None
        if is_parked(row.deaths):
            row.parked_because, row.on_trial = PARKED, False


def _keep_trying(session: Session, beats: int) -> bool:
    """Move a proven group home, or start the next trial. Returns whether it did either."""
    wanted = _wanted_rows(session, Assignment.engine == PROBATION)
    tried = [row for row in _rows(session, PROBATION) if row.tried]
    if not tried:
        return _try_next([row for row in wanted if row.on_trial and not row.parked_because], beats)
    # What was stopped or removed moves home after it has ended.
    left = [row for row in tried if row.on_trial and row not in wanted]
    for row in left:
        row.on_trial = False
    here = [row for row in tried if row.on_trial]
    proven = bool(here) and all(_is_proven(row, here, beats) for row in here)
    for row in here if proven else ():
        row.on_trial, row.deaths, row.trials = False, 0, row.trials + 1
    return bool(left) or proven


def _is_proven(row: Assignment, group: Sequence[Assignment], beats: int) -> bool:
    since = row.tried_beat if row.tried_beat is not None else beats
    return beats - since >= proven_after(max(each.trials for each in group))


def _try_next(rows: Sequence[Assignment], beats: int) -> bool:
    chosen = next_group(map(_suspect_of, rows))
    for row in rows:
        if row.execution_id in chosen:
            row.tried, row.tried_beat = True, beats
    return bool(chosen)


def _suspect_of(row: Assignment) -> Suspect:
    return Suspect(row.execution_id, row.trial_group, row.deaths, row.trials)


def _rows(session: Session, engine: str) -> list[Assignment]:
    return list(session.scalars(select(Assignment).where(Assignment.engine == engine)))


def _wanted_rows(session: Session, which: ColumnElement[bool]) -> list[Assignment]:
    """The assignments that `which` selects, of executions that are wanted."""
    query = aliased(Object)
    of_outputs = select(Assignment).join(
        OutputRow, OutputRow.execution_id == Assignment.execution_id
    )
    # In a level engine a class has an execution of its own.
    of_classes = (
        select(Assignment)
        .join(DeliveryClass, DeliveryClass.execution_id == Assignment.execution_id)
        .join(OutputRow, OutputRow.object_id == DeliveryClass.output_id)
        .where(DeliveryClass.closed_at.is_(None))
    )
    found: dict[Assignment, None] = {}
    for each in (of_outputs, of_classes):
        wanted = (
            each.join(QueryRow, QueryRow.object_id == OutputRow.query_id)
            .join(query, query.id == OutputRow.query_id)
            .where(which, QueryRow.running, query.removed_at.is_(None))
            .distinct()
        )
        found |= dict.fromkeys(session.scalars(wanted))
    return list(found)

"""Moves: an output leaves its own execution for an older one that has come to the same state.

A query that keeps state begins with an execution of its own. Later nothing counts any more in its
results that an older execution of an equal query saw and this one did not (`whole_ms`). Then its
output moves, at an event time that is still to come, the *turn*:

1. *Begun*: the older execution is to compute the output behind the turn. Its own one goes on.
2. *Turned*: the older one does so by now, and has sent no result of behind the turn before. So its
   own execution is to compute it up to the turn only.
3. *Completed*: its own execution has delivered all results up to the turn. The output has the older
   one alone. The last output of an execution ends it.

So each result comes from one of both. A move that is too late for its turn is given up, as long as
its own execution still delivers all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from catalog.executions import MOST_SHARING, sharing
from catalog.models import Assignment, ExecutionRow, OutputRow, RunStatus, StreamRow
from catalog.output_parts import OutputPart, wanted_parts
from catalog.plan import Plan, sources
from catalog.run_counts import ANEW, LATE, LOST, NO_ROOM, PATTERN_FULL
from catalog.run_names import query_run_name
from catalog.runs import QueryRun, fingerprint
from catalog.stored_form import from_stored
from catalog.wanted import wanted_runs

CLOCKS_MS = 60_000
"""How far the clocks of the broker and of the service may be apart."""
PATIENCE_MS = 120_000
"""How long the older execution may take until it computes the output too."""
_STEADY = timedelta(seconds=30)
"""What a run has counted is known when it has run for so long."""
_SPOILED = (LATE, NO_ROOM, PATTERN_FULL, LOST, ANEW)
"""What a run counts if its state lacks tuples."""


def whole_from_ms(session: Session, plan: Plan, memory_ms: int, now: datetime) -> int:
    """The event time behind which no tuple counts from before an execution that begins now.

    `memory_ms` is the plan's (`catalog.plan_memory`).
    """
    return latest_ms(session, plan, now) + memory_ms


def latest_ms(session: Session, plan: Plan, now: datetime) -> int:
    """The latest event time that a tuple which the broker has taken by now can have."""
    ahead = [session.get_one(StreamRow, each.object_id).max_ahead_ms for each in sources(plan)]
    return round(now.replace(tzinfo=UTC).timestamp() * 1_000) + CLOCKS_MS + max(ahead, default=0)


@dataclass(frozen=True, slots=True)
class Beginning:
    """To which execution an output moves, and at which event time."""

    older: int
    turn_ms: int


@dataclass(frozen=True, slots=True)
class Moves:
    """The next step of each output that has one, by the outputs' ids."""

    begun: Mapping[int, Beginning]
    given_up: frozenset[int]
    turned: frozenset[int]
    completed: frozenset[int]

    def __bool__(self) -> bool:
        return bool(self.begun or self.given_up or self.turned or self.completed)


def next_moves(session: Session, now: datetime) -> Moves:
    """Look for the next steps."""
    # Each output that moves is there twice: once for each of its executions.
    moving = {part.output.object_id: part.output for part in wanted_parts(session) if part.moves}
    begun = [each for each in moving.values() if not each.turns]
    late = frozenset(each.object_id for each in begun if _is_late(session, each, now))
    waiting = [each for each in begun if each.object_id not in late]
    applied = _applied(session) if waiting else frozenset()
    return Moves(
        begun={id_: to for alike in _alike(session) for id_, to in _begin(session, alike, now)},
        given_up=late,
        turned=frozenset(
            each.object_id
            for each in waiting
            if each.moves_to in applied
            and _is_sound(session, session.get_one(ExecutionRow, each.moves_to), now)
        ),
        completed=frozenset(
            each.object_id
            for each in moving.values()
            if each.turns and _has_delivered(session, each)
        ),
    )


def carry_out(session: Session, moves: Moves) -> None:
    """Write these steps. Call it inside the change in which they were looked for."""
    for output, to in moves.begun.items():
        row = session.get_one(OutputRow, output)
        row.moves_to, row.turn_ms = to.older, to.turn_ms
    for output in moves.given_up:
        row = session.get_one(OutputRow, output)
        row.moves_to = row.turn_ms = None
    for output in moves.turned:
        session.get_one(OutputRow, output).turns = True
    for output in moves.completed:
        row = session.get_one(OutputRow, output)
        if row.moves_to is not None:
            row.execution_id, row.after_ms = row.moves_to, row.turn_ms
            row.moves_to, row.turn_ms, row.turns = None, None, False
    session.flush()


def _begin(
    session: Session, alike: Sequence[OutputPart], now: datetime
) -> Iterator[tuple[int, Beginning]]:
    """Which of these outputs, in the order of their executions, can begin to move now."""
    plan = from_stored(Plan, alike[0].execution.plan)
    turn_ms = latest_ms(session, plan, now) + PATIENCE_MS
    # How many outputs each execution has that stays.
    staying: dict[int, int] = {}
    for part in alike:
        own = part.execution
        if own.id in staying or not _is_sound(session, own, now) or (own.whole_ms or 0) > turn_ms:
            continue
        older = next((each for each, count in staying.items() if count < MOST_SHARING), None)
        if older is None:
            staying[own.id] = len(sharing(session, own.id))
        else:
            staying[older] += 1
            yield part.output.object_id, Beginning(older, turn_ms)


def _is_late(session: Session, output: OutputRow, now: datetime) -> bool:
    """Whether the older execution may by now send a result of behind the turn to others only."""
    return latest_ms(session, from_stored(Plan, output.plan), now) > (output.turn_ms or 0)


def _has_delivered(session: Session, output: OutputRow) -> bool:
    """Whether the output's own execution has delivered all of its results up to the turn."""
    status, turn_ms = _status(session, output.execution_id), output.turn_ms
    delivered_ms = None if status is None else status.delivered_ms
    return turn_ms is not None and delivered_ms is not None and delivered_ms >= turn_ms


def _alike(session: Session) -> Sequence[Sequence[OutputPart]]:
    """The wanted outputs with state that others may share and that do not move, key by key.

    Those of one key have at least two executions.
    """
    found: dict[str, list[OutputPart]] = defaultdict(list)
    for part in wanted_parts(session):
        if part.execution.whole_ms is not None and part.execution.key and not part.moves:
            found[part.execution.key].append(part)
    return [parts for parts in found.values() if len({each.execution.id for each in parts}) > 1]


def _is_sound(session: Session, execution: ExecutionRow, now: datetime) -> bool:
    """Whether the execution runs, and its state has had room for all tuples since it began."""
    assigned = session.get(Assignment, execution.id, populate_existing=True)
    status = _status(session, execution.id)
    if status is None or status.state != "running" or now - status.since < _STEADY:
        return False
    if assigned is not None and (assigned.parked_because or assigned.on_trial):
        return False
    return _is_whole(session, execution)


def _is_whole(session: Session, execution: ExecutionRow) -> bool:
    """Whether neither it nor an execution whose state it continues has left out a tuple."""
    of: int | None = execution.id
    while of is not None:
        status = _status(session, of)
        if status is not None and any(status.counts.get(kind) for kind in _SPOILED):
            return False
        of = session.get_one(ExecutionRow, of).copy_of
    return True


def _status(session: Session, execution_id: int) -> RunStatus | None:
    return session.get(RunStatus, query_run_name(execution_id), populate_existing=True)


def _applied(session: Session) -> frozenset[int]:
    """The executions whose runs compute all outputs that are wanted of them."""
    by_name = {query_run_name(part.execution.id): part.execution for part in wanted_parts(session)}
    found = set()
    for run in wanted_runs(session):
        if isinstance(run, QueryRun) and run.name in by_name:
            execution = by_name[run.name].id
            status = _status(session, execution)
            said = None if status is None else (status.state, status.fingerprint)
            if said == ("running", fingerprint(run)):
                found.add(execution)
    return frozenset(found)

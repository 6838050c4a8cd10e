"""Checks that an engine has room for a query or a stream, before it is added or started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Mapping, Sized

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from catalog.balance import balanced
from catalog.checked_plan import CheckedPlan, StateKind
from catalog.engines import FIRST, LEVELS
from catalog.errors import Conflict, InvalidInput
from catalog.limits import Limits
from catalog.models import (
    Assignment,
    DeliveryClass,
    ExecutionRow,
    Object,
    OutputRow,
    QueryRow,
    SenderRow,
    StreamRow,
)
from catalog.placement import Placement
from catalog.plan import Plan, source_nodes
from catalog.sender_state import SenderState


def require_admissible(checked: CheckedPlan, limits: Limits) -> None:
    """Raise InvalidInput for a plan that is too large by itself, with a message what would fit."""
    sources = len(source_nodes(checked.plan))
    if sources > limits.sources:
        raise InvalidInput(
            f"the query reads streams and outputs {sources} times, and may {limits.sources} "
            "times, one that is read twice counted twice; make a part of it a query of its own "
            "and read its output"
        )
    copies = checked.copies
    if copies > limits.window_copies:
        raise InvalidInput(
            f"a tuple would be in {copies} windows at once, and may be in {limits.window_copies} "
            "of a query: use a longer slide or a shorter window"
        )


HELD = 15
"""A moving window or a pattern holds whole tuples. It counts for as many windows of a tuple."""


def view_classes(checked: CheckedPlan, limits: Limits, rate: int) -> int:
    """How many classes an output may have whose classes have views of their own.

    Each tuple is in all windows of each class that sees it, so the work for a tuple and the state
    grow with classes times windows. The work in a second also grows with the `rate` of the plan
    (`catalog.rates`). Who declares too low a rate gains nothing, for both are limited.
    """
    held = (StateKind.MOVING, StateKind.MATCHES, StateKind.PAIRS)
    copies = checked.copies + HELD * sum(each.state in held for each in checked.root.walk())
    copies = max(1, copies)
    by_rate = limits.view_rate // (copies * rate)
    return max(1, min(limits.classes, limits.view_copies // copies, by_rate))


def slots_of(plan: Plan, partitions: Mapping[str, Sized], runs: int = 1) -> int:
    """The number of tasks that the sources of a plan take in so many runs.

    `partitions` has the partitions of each topic that the plan reads, by the topic's name.
    """
    return runs * sum(len(partitions[each.relation.topic]) for each in source_nodes(plan))


def runs_of(placement: Placement, limits: Limits) -> int:
    """How many runs an execution may have: one, or one for each class that runs apart."""
    return limits.isolated_classes if placement is Placement.APART else 1


def runs_in(engines: Collection[str], placement: Placement, limits: Limits) -> int:
    """How many runs of an execution run in one of these engines: none that waits elsewhere."""
    return 0 if LEVELS in engines else runs_of(placement, limits)


def engines_for(
    session: Session, slots: Mapping[int, int], engines: Collection[str], limits: Limits
) -> Mapping[int, str]:
    """Find an engine with room for each execution.

    `slots` has the number of tasks that each execution takes, by its id. Raises Conflict if they
    do not all fit beside the executions that run.
    """
    taken = taken_slots(session, engines, besides=slots)
    found = balanced(slots, taken, limits.slots)
    if found is None:
        tasks = sum(slots.values())
        asked = f"the query takes {tasks} tasks, one for each partition of each of its sources"
        remedy = "stop another query first, or read fewer partitions"
        raise _full("the engine", asked, min(taken.values()), limits, remedy)
    return found


def taken_slots(
    session: Session, engines: Collection[str], besides: Container[int] = ()
) -> dict[str, int]:
    """The number of tasks that running executions take in each query engine, without `besides`."""
    its_own = OutputRow.execution_id == ExecutionRow.id
    columns = select(ExecutionRow.id, ExecutionRow.slots, Assignment.home)
    of_outputs = columns.join(OutputRow, or_(its_own, OutputRow.moves_to == ExecutionRow.id))
    # In a level engine a class has an execution of its own.
    of_classes = (
        columns.join(DeliveryClass, DeliveryClass.execution_id == ExecutionRow.id)
        .join(OutputRow, OutputRow.object_id == DeliveryClass.output_id)
        .where(DeliveryClass.closed_at.is_(None))
    )
    taken = dict.fromkeys(engines, 0)
    for found in (of_outputs, of_classes):
        running = (
            found.join(QueryRow, QueryRow.object_id == OutputRow.query_id)
            .join(Object, Object.id == OutputRow.object_id)
            .join(Assignment, Assignment.execution_id == ExecutionRow.id, isouter=True)
            .where(QueryRow.running, Object.removed_at.is_(None))
            .where(func.coalesce(Assignment.parked_because, "") == "")
            # Several outputs may share an execution.
            .distinct()
        )
        for row in session.execute(running):
            home = row.home or FIRST
            if home in taken and row.id not in besides:
                taken[home] += row.slots
    return taken


def require_ingest_slots(session: Session, wanted: int, limits: Limits) -> None:
    """Raise Conflict if ingest has no room for a stream with `wanted` partitions."""
    taken = ingesting(session)
    if taken + wanted > limits.slots:
        asked = f"the stream takes {wanted} tasks, one for each of its partitions"
        remedy = "remove a stream first, or ask for fewer partitions"
        raise _full("ingest", asked, taken, limits, remedy)


def require_senders(
    session: Session, streams: Collection[int], before: int, limits: Limits
) -> None:
    """Raise Conflict if a change gave these streams more senders than there is room for.

    Call it after the new rows are written. `before` is the result of `ingesting` before the change.
    """
    counts = (
        select(Object.name, func.count())
        .join(SenderRow, SenderRow.stream_id == Object.id)
        .where(SenderRow.state == SenderState.ACTIVE, ~SenderRow.readmits, Object.id.in_(streams))
        .group_by(Object.id, Object.name)
        .having(func.count() > limits.senders)
        .order_by(Object.name)
    )
    for name, count in session.execute(counts):
        raise Conflict(
            f"the stream {name} would have {count} senders, and may have {limits.senders}: let "
            "fewer users SEND there, or add a stream with --senders shared, where all users write "
            "one topic"
        )
    more = ingesting(session) - before
    if more > 0 and before + more > limits.slots:
        asked = f"the new senders take {more} tasks, one for each partition of the stream"
        remedy = "remove a stream first, let fewer users SEND, or add one with --senders shared"
        raise _full("ingest", asked, before, limits, remedy)


def ingesting(session: Session) -> int:
    """The number of tasks that ingest takes.

    Each partition of a sender's topic takes one. A stream without senders counts as one sender.
    """
    return sum(ingesting_by_group(session).values())


def ingesting_by_group(session: Session) -> Counter[int]:
    """The number of tasks that each ingest group takes."""
    counted = (SenderRow.stream_id == StreamRow.object_id, SenderRow.state != SenderState.GONE)
    of_each = (
        select(StreamRow.ingest_group, StreamRow.partitions, func.count(SenderRow.id))
        .join(Object, Object.id == StreamRow.object_id)
        .outerjoin(SenderRow, and_(*counted))
        .where(Object.removed_at.is_(None))
        .group_by(StreamRow.object_id, StreamRow.ingest_group, StreamRow.partitions)
    )
    found: Counter[int] = Counter()
    for group, partitions, senders in session.execute(of_each):
        found[group] += partitions * max(1, senders)
    return found


def _full(engine: str, asked: str, taken: int, limits: Limits, remedy: str) -> Conflict:
    """The refusal where an engine of which so many slots are taken has too little room."""
    free = max(0, limits.slots - taken)
    return Conflict(f"{engine} is full: {asked}, and {free} of {limits.slots} are free; {remedy}")

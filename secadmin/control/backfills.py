"""Backfills: a subscriber asks for what came before its subscription (`catalog.backfills`).

The results are those of the same plan over what is kept of its sources. Nothing else decides what
the access gets of them than for new results: its rights now, and from then on each change of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import orm, select

from catalog.access_kind import AccessKind
from catalog.admission import slots_of
from catalog.analysis import analyse
from catalog.assignments import assign
from catalog.audit import PLATFORM
from catalog.backfills import (
    BackfillState,
    Offsets,
    backfills_of,
    end,
    held_executions,
    state_of,
    unended_backfills,
)
from catalog.clock import epoch_ms
from catalog.delivery_classes import only_appends, shares_results
from catalog.errors import Conflict, Denied, InvalidInput, NotFound
from catalog.limits import Limits
from catalog.models import (
    Access,
    Backfill,
    DeliveryClass,
    ExecutionRow,
    Object,
    OutputRow,
    QueryRow,
    RunStatus,
    StreamRow,
)
from catalog.moves import CLOCKS_MS, whole_from_ms
from catalog.placement import Placement
from catalog.plan import Plan, sources
from catalog.plan_memory import memory_ms as memory_ms_of
from catalog.plan_memory import shared_memory_ms
from catalog.query_roles import chosen_roles
from catalog.reach import counted_streams
from catalog.relation import RelationKind
from catalog.role_views import RoleViews
from catalog.run_names import query_run_name
from catalog.store import bump_generation
from catalog.stored_form import from_stored
from catalog.wanted import fed_classes
from secadmin.control.accesses import BackfillView
from secadmin.control.open_classes import require_room_for_classes
from secadmin.control.platform import Platform
from secadmin.control.room import require_room_to_run
from secadmin.control.shared_executions import role_of_space
from secadmin.control.work import Caller, Reading, Work, reading, working

LONGEST = timedelta(hours=1)
"""A backfill that has not delivered all so long after its end was due is given up."""
_TICKS = timedelta(seconds=30)
"""After this time the ticks that prove an instant are in the log, also of a quiet stream."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The subscription of a backfill, its output, and the execution whose plan is run again."""

    access: Access
    object: Object
    output: OutputRow
    execution: ExecutionRow

    @property
    def plan(self) -> Plan:
        """The plan that gives the subscription its new results."""
        return from_stored(Plan, self.execution.plan)

    @property
    def topics(self) -> list[str]:
        """The lab topics that it reads."""
        return sorted({each.topic for each in sources(self.plan)})


def begin(
    platform: Platform, caller: Caller, principal: str, since: datetime | None
) -> BackfillView:
    """Begin to give a subscription of the caller results of what came `since` then.

    None is as far back as a backfill may begin. Raises NotFound for what is no subscription of the
    caller, Denied where the subscription shows nothing or shows a stream in aggregates alone,
    InvalidInput for a time that is to come or too long ago, and Conflict while it is not fed, while
    another backfill of it runs, for an output that can have none, and where the user, the output or
    the engines have no room.
    """
    target = f"access {principal}"
    with reading(platform, caller, "prepare backfill", target) as view:
        wanted = _found(view, principal)
        _require_possible(platform, view, wanted)
        topics, first = wanted.topics, _first_of_outputs(wanted)
        before = _read_before(view.session, wanted)
    since = _allowed(since, platform.clock(), before or timedelta(0), platform.limits)
    found = platform.kafka.offsets_at(topics, since - (before or timedelta(0)))
    begins = {topic: _later(of, first.get(topic, {})) for topic, of in found.items()}
    ends = platform.kafka.end_offsets(topics)
    with working(platform, caller, "backfill", target) as work:
        wanted = _found(work, principal)
        _require_possible(platform, work, wanted)
        if wanted.topics != topics or _first_of_outputs(wanted) != first:
            raise Conflict("the query has changed meanwhile; try again")
        made = _store(platform, work, wanted, begins)
        row = Backfill(
            class_id=made.id,
            access_id=wanted.access.id,
            since=since,
            after_ms=None if before is None else epoch_ms(since),
            ends_at=_ends_at(work.session, wanted, work.change.now),
        )
        if row.ends_at <= work.change.now:
            row.ends = {topic: dict(of) for topic, of in ends.items()}
        work.session.add(row)
        require_room_for_classes(work, platform.limits, platform.spaces)
        work.detail.update(output=wanted.object.name, topic=made.topic, since=since.isoformat())
        work.change.bump_generation()
        return BackfillView.of(row, made)


def _allowed(since: datetime | None, now: datetime, before: timedelta, limits: Limits) -> datetime:
    """The time at which a backfill begins that is asked for then, and reads so much before it.

    The limit is a time: a number of records would reveal those that the subscriber may not see.
    """
    first = now - timedelta(hours=limits.backfill_hours) + before
    if first >= now:
        raise Conflict(
            f"results depend on what came {before} before them, and a backfill reads what came "
            f"in the last {limits.backfill_hours} hours"
        )
    if since is None:
        return first
    if since > now:
        raise InvalidInput("a backfill begins in the past; give an earlier time")
    if since < first:
        raise InvalidInput(
            f"a backfill of it begins at {first:%Y-%m-%dT%H:%M:%SZ} at the earliest: it reads what "
            f"came in the last {limits.backfill_hours} hours"
        )
    return since


def _read_before(session: orm.Session, wanted: _Wanted) -> timedelta | None:
    """How long before its first results the tuples came on which these may depend.

    So each result is whole, wherever a backfill begins. Otherwise a window would be there or not,
    depending on whether something hidden came behind the beginning. None if it is of no account:
    without state, or if nothing is hidden from the views of the subscriber.
    """
    checked = analyse(wanted.plan)
    memory_ms = shared_memory_ms(checked)
    if memory_ms is None:
        return None
    ahead_ms = max(
        session.get_one(StreamRow, each.object_id).max_ahead_ms for each in sources(wanted.plan)
    )
    return timedelta(milliseconds=memory_ms + ahead_ms + CLOCKS_MS)


def _store(platform: Platform, work: Work, wanted: _Wanted, begins: Offsets) -> DeliveryClass:
    """Open the class, with an execution that begins there. Raises as `begin`."""
    session, plan = work.session, wanted.plan
    require_room_to_run(platform.user_limits, session, work.subject.user_id, [plan])
    execution = ExecutionRow(
        key="",
        plan=wanted.execution.plan,
        starting_offsets={topic: dict(of) for topic, of in begins.items()},
        slots=slots_of(plan, begins),
    )
    session.add(execution)
    session.flush()
    role = role_of_space(session, chosen_roles(session.get_one(QueryRow, wanted.output.query_id)))
    homes = platform.spaces.homes(role, Placement(wanted.output.placement))
    assign(session, {execution.id: execution.slots}, homes, platform.limits)
    made = work.settlement.backfill(wanted.access)
    made.execution_id = execution.id
    session.flush()
    return made


def _found(view: Reading, principal: str) -> _Wanted:
    own = (Access.principal == principal, Access.user_id == view.subject.user_id)
    live = (Access.kind == AccessKind.OUTPUT, Access.ended_at.is_(None))
    access = view.session.scalar(select(Access).where(*own, *live))
    if access is None:
        raise NotFound(f"no subscription {principal!r}")
    obj = view.session.get_one(Object, access.object_id)
    output = view.session.get_one(OutputRow, obj.id)
    execution = view.session.get_one(ExecutionRow, output.execution_id)
    return _Wanted(access, obj, output, execution)


def _require_possible(platform: Platform, view: Reading, wanted: _Wanted) -> None:
    session, name = view.session, wanted.object.name
    if not only_appends(session, wanted.output.object_id):
        raise Conflict(
            f"results of {name} replace others, so older ones cannot come behind newer ones; who "
            "subscribes to upserts gets the rows that stand"
        )
    if counted_streams(wanted.plan) or RoleViews(session).shows_aggregates(wanted.object.id):
        # Two backfills that begin at different times differ in few tuples, and so reveal them.
        raise Denied(
            f"{name} shows a stream in aggregates alone, and by the choice of where a backfill "
            "begins single tuples could be computed; it has results from the subscription on"
        )
    checked = analyse(wanted.plan)
    endless = checked.keeps_state and shared_memory_ms(checked) is None
    if endless and shares_results(session, wanted.output.object_id):
        raise Conflict(
            f"results of {name} have no event time, or may depend on what came long before them, "
            "also on what you may not see; such a query has backfills only with SEMANTICS VIEW, "
            "ISOLATED or EXACT"
        )
    new = {row.class_id or 0 for row in wanted.access.topics if row.fed_at is None}
    if new and new != fed_classes(session, new, platform.pulse.living(session)):
        raise Conflict("the subscription is not fed yet; ask again when `fed` is true")
    others = backfills_of(session, [wanted.access.id])
    if any(state_of(row) is BackfillState.RUNNING for row, _ in others):
        raise Conflict("a backfill of the subscription runs; `secadmin accesses` shows its state")


def _first_of_outputs(wanted: _Wanted) -> Mapping[str, Mapping[str, int]]:
    """Where the query began to read other outputs. What is older may be of an old policy's plan."""
    first = wanted.output.starting_offsets
    read = {each.topic for each in sources(wanted.plan) if each.kind is RelationKind.OUTPUT}
    return {topic: first[topic] for topic in read if topic in first}


def _later(offsets: Mapping[str, int], first: Mapping[str, int]) -> dict[str, int]:
    return {p: max(offset, first.get(p, 0)) for p, offset in offsets.items()}


def _ends_at(session: orm.Session, wanted: _Wanted, now: datetime) -> datetime:
    """When all is in the log that the subscription's first results may lack.

    They may lack tuples that came before its class, or before its query. It is now for a query that
    keeps no state, and where there is no such time: results depend on such tuples for ever (windows
    of tuples), or on those of other outputs.
    """
    plan, strong = wanted.plan, wanted.output.placement == Placement.SINK
    checked = analyse(plan)
    of_streams = all(each.kind is RelationKind.STREAM for each in sources(plan))
    memory_ms = memory_ms_of(checked.root) if checked.keeps_state and of_streams else None
    if memory_ms is None:
        return now
    whole_ms = wanted.execution.whole_ms if strong else None
    if whole_ms is None:
        whole_ms = whole_from_ms(session, plan, memory_ms, now)
    proven_ms = whole_ms + max(each.lateness_ms for each in sources(plan))
    proven = datetime.fromtimestamp(proven_ms / 1_000, UTC).replace(tzinfo=None)
    return max(now, proven + _TICKS)


def look_after(platform: Platform) -> None:
    """Look up where backfills end, and end those that have delivered all or cannot go on."""
    now = platform.clock()
    with platform.catalog.read() as session:
        steps = _steps(session, now)
        free = [row.id for row in held_executions(session) if _has_stopped(session, row)]
    if steps.due:
        _note_ends(platform, steps.due)
    if steps.complete or steps.given_up:
        with platform.catalog.change(PLATFORM) as change:
            again = _steps(change.session, change.now)
            for ids, complete in ((again.complete, True), (again.given_up, False)):
                for class_id in ids:
                    end(change.session.get_one(Backfill, class_id), change.now, complete=complete)
            detail = {"complete": len(again.complete), "incomplete": len(again.given_up)}
            change.audit("end backfills", "accesses", detail=detail)
            change.bump_generation()
    if free:
        with platform.catalog.bookkeeping() as session:
            for class_id in free:
                session.get_one(DeliveryClass, class_id).execution_id = None


@dataclass(frozen=True, slots=True)
class _Steps:
    """The classes of backfills whose ends are to be looked up (`due`), and of those that end."""

    due: Sequence[int]
    complete: Sequence[int]
    given_up: Sequence[int]


def _steps(session: orm.Session, now: datetime) -> _Steps:
    due, complete, given_up = [], [], []
    for row, of_class in unended_backfills(session):
        removed = session.get_one(Object, of_class.output_id).removed_at is not None
        if of_class.closed_at is not None or removed or row.ends_at + LONGEST < now:
            given_up.append(row.class_id)
        elif row.ends is None:
            if row.ends_at <= now:
                due.append(row.class_id)
        elif (status := _status(session, of_class)) is not None and status.through:
            complete.append(row.class_id)
    return _Steps(due, complete, given_up)


def _note_ends(platform: Platform, class_ids: Sequence[int]) -> None:
    with platform.catalog.read() as session:
        rows = [session.get_one(DeliveryClass, each) for each in class_ids]
        executions = [row.execution_id for row in rows if row.execution_id is not None]
        found = select(ExecutionRow).where(ExecutionRow.id.in_(executions))
        read = {row.id: list(row.starting_offsets) for row in session.scalars(found)}
        topics = {row.id: read.get(row.execution_id or 0, []) for row in rows}
    ends = platform.kafka.end_offsets(sorted({t for of in topics.values() for t in of}))
    with platform.catalog.bookkeeping() as session:
        for class_id, of in topics.items():
            row = session.get_one(Backfill, class_id)
            row.ends = {topic: dict(ends[topic]) for topic in of}
        bump_generation(session)


def _status(session: orm.Session, of_class: DeliveryClass) -> RunStatus | None:
    if of_class.execution_id is None:
        return None
    name = query_run_name(of_class.execution_id, of_class.id)
    return session.get(RunStatus, name, populate_existing=True)


def _has_stopped(session: orm.Session, of_class: DeliveryClass) -> bool:
    status = _status(session, of_class)
    return status is None or status.state == "stopped"

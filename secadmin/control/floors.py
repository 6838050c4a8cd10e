"""The floors of senders rise with what their users may read (`catalog.floors`; 001 §3).

Each step waits until the one before is applied. So there is no moment at which a user has read what
ingest does not add to what the user sends.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, and_, exists, or_, orm, select, update

from catalog.audit import PLATFORM
from catalog.engines import INGEST
from catalog.errors import NotFound
from catalog.executions import executions_of
from catalog.floors import floor_of_user, floors_of_users, let_carry, not_applied, read_floor
from catalog.label import Label
from catalog.models import FloorCategory, Object, RunStatus, SenderRow, StreamRow, User
from catalog.permission import ObjectKind, Permission
from catalog.reaches import Reaches
from catalog.relation import Relation
from catalog.run_names import execution_of, ingest_run_name
from catalog.runs import QueryRun, fingerprint
from catalog.sender_state import SenderState
from catalog.store import Change
from catalog.stored_form import from_stored
from catalog.wanted import is_applied, is_in_step, wanted_runs
from secadmin.control.category_words import category_words
from secadmin.control.platform import Platform
from secadmin.control.query_rights import computed_from
from secadmin.control.settlement import Settlement, of_objects, of_user, of_users
from secadmin.control.work import Caller, Reading, reading, working

_ENDED = ("stopped", "failed")
_UNREADABLE = "a floor that cannot be read, so nothing that the user sends is ingested"


@dataclass(frozen=True, slots=True)
class Floor:
    """The floor of a sender, in words. It is `applied` if ingest adds all of it.

    An administrator may have `lowered` it: then nothing is added.
    """

    user: str
    floor: tuple[str, ...]
    applied: bool
    lowered: bool


def show_floors(platform: Platform, caller: Caller, stream: str) -> list[Floor]:
    """The floors of the stream's senders. Needs CHANGE SYSTEM: they tell what users may read."""
    with reading(platform, caller, "show floors", f"stream {stream}") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        obj = view.find(ObjectKind.STREAM, stream)
        own = (
            select(SenderRow, User.name)
            .join(User, User.id == SenderRow.user_id)
            .where(SenderRow.stream_id == obj.id, SenderRow.state == SenderState.ACTIVE)
            .where(SenderRow.stamped.is_not(None))
        )
        return [
            Floor(
                name,
                _words(view, read_floor(row.floor)),
                row.stamped == row.floor and read_floor(row.floor) is not None,
                row.lowered,
            )
            for row, name in view.session.execute(own.order_by(User.name))
        ]


def _words(view: Reading, floor: Label | None) -> tuple[str, ...]:
    if floor is None:
        return (_UNREADABLE,)
    return tuple(category_words(view, bit)[0] for bit in floor.categories())


def lower_floor(platform: Platform, caller: Caller, stream: str, user: str) -> None:
    """Add nothing any more to what the user sends to the stream: it is declassified.

    Needs CHANGE SYSTEM, and the audit log has it. A user that loses SEND and gets it again has a
    floor again. Raises NotFound for a user that has none there.
    """
    with working(platform, caller, "declassify sender", f"stream {stream}: {user}") as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        obj, holder = work.find(ObjectKind.STREAM, stream), work.user(user)
        row = work.session.scalar(
            select(SenderRow).where(
                SenderRow.stream_id == obj.id,
                SenderRow.user_id == holder.id,
                SenderRow.state == SenderState.ACTIVE,
                SenderRow.stamped.is_not(None),
            )
        )
        if row is None:
            raise NotFound(f"{user!r} has no floor in {stream!r}")
        work.detail["was"] = row.floor
        row.lowered = True
        work.session.flush()
        work.settlement.settle(of_user(holder))
        work.change.bump_generation()


def begin_floors(session: orm.Session, rows: Collection[SenderRow]) -> None:
    """Give new senders of floored streams their floors: what they can read from now on is in them.

    If all that read a stream know its floor, ingest adds it at once. Otherwise the floor waits for
    `raise_floors`, and ingest does not read the topic before.
    """
    session.flush()
    for row in rows:
        if row.user_id is not None and session.get_one(StreamRow, row.stream_id).floored:
            wanted = floor_of_user(session, row.user_id)
            if wanted is None:
                continue
            row.floor = wanted.to_wire()
            if _lacking(session, row.stream_id, wanted).bits == 0:
                row.stamped = row.floor
    session.flush()


def raise_floors(platform: Platform) -> None:
    """Do the next step for each floor that is to rise, where the step before is applied."""
    with platform.catalog.read() as session:
        if session.scalar(select(SenderRow.id).where(_rising()).limit(1)) is None:
            return
        ingest_lives = INGEST in platform.pulse.living(session)
        if not _Steps(session, ingest_lives).find():
            return
    with platform.catalog.change(PLATFORM) as change:
        steps = _Steps(change.session, ingest_lives)
        steps.find()
        settlement = Settlement(change, change.now)
        _do(change, settlement, steps)
        detail = {"rising": len(steps.floors), "applied": len(steps.stamped)}
        change.audit("raise floors", "senders", detail=detail)
    platform.alignment.align(settlement.topics)


def _rising() -> ColumnElement[bool]:
    """The senders whose floor may rise, or waits."""
    live = select(Object.id).where(Object.removed_at.is_(None))
    floored = exists().where(StreamRow.object_id == SenderRow.stream_id, StreamRow.floored)
    waits = and_(SenderRow.stamped.is_(None), SenderRow.state == SenderState.DRAINING)
    return and_(
        SenderRow.user_id.is_not(None),
        SenderRow.lowered.is_(False),
        SenderRow.stream_id.in_(live),
        or_(SenderRow.state == SenderState.ACTIVE, waits),
        floored,
    )


@dataclass
class _Steps:
    """What can be done now: streams whose readers know the new categories, categories that come
    into streams, floors that rise, and senders whose floor is added to all that they send.
    """

    session: orm.Session
    ingest_lives: bool
    known: set[int] = field(default_factory=set)
    carried: dict[int, Label] = field(default_factory=dict)
    floors: dict[int, Label] = field(default_factory=dict)
    stamped: set[int] = field(default_factory=set)
    # The reach of each stream, and the part of it that a run which reads the stream may not know.
    _streams: dict[int, tuple[Label, Label]] = field(default_factory=dict)

    def find(self) -> bool:
        """Look for steps. Returns whether there is one."""
        rows = self.session.scalars(select(SenderRow).where(_rising()).order_by(SenderRow.id)).all()
        reaches = Reaches(self.session)
        for stream in sorted({row.stream_id for row in rows}):
            unknown = not_applied(self.session, stream)
            self._streams[stream] = _reach_of(reaches, self.session, stream), unknown
            if unknown.bits and _readers_know(self.session, stream):
                self.known.add(stream)
        users = {row.user_id for row in rows if row.user_id is not None}
        wanted = floors_of_users(self.session, users)
        for row in rows:
            floor = None if row.user_id is None else wanted[row.user_id]
            if floor is not None:
                self._of_sender(row, floor)
        return bool(self.known or self.carried or self.floors or self.stamped)

    def _of_sender(self, row: SenderRow, wanted: Label) -> None:
        reach, unknown = self._streams[row.stream_id]
        if new := wanted.bits & ~reach.bits:
            before = self.carried.get(row.stream_id, Label())
            self.carried[row.stream_id] = before | Label(new)
        elif wanted.bits & unknown.bits and row.stream_id not in self.known:
            return
        elif row.stamped is None or row.floor != wanted.to_wire():
            self.floors[row.id] = wanted
        elif row.stamped != row.floor and self._is_added(row.stream_id):
            self.stamped.add(row.id)

    def _is_added(self, stream: int) -> bool:
        group = self.session.get_one(StreamRow, stream).ingest_group
        return self.ingest_lives and is_applied(self.session, ingest_run_name(group))


def _do(change: Change, settlement: Settlement, steps: _Steps) -> None:
    session = change.session
    for stream in steps.known:
        own = update(FloorCategory).where(FloorCategory.stream_id == stream)
        session.execute(own.values(applied=True))
    concerned: set[int] = set()
    for stream, new in steps.carried.items():
        let_carry(session, stream, new)
        concerned |= computed_from(session, stream)
    for sender, floor in steps.floors.items():
        row = session.get_one(SenderRow, sender)
        row.floor = floor.to_wire()
        # Nothing of a sender whose floor waits was ingested, so its first one is added to all.
        row.stamped = row.floor if row.stamped is None else row.stamped
    users = set()
    for sender in steps.stamped:
        row = session.get_one(SenderRow, sender)
        row.stamped = row.floor
        users.add(row.user_id)
    session.flush()
    if concerned:
        settlement.settle(of_objects(*sorted(concerned)))
    if users:
        settlement.settle(of_users(sorted(user for user in users if user is not None)))
    change.bump_generation()


def _reach_of(reaches: Reaches, session: orm.Session, stream: int) -> Label:
    row = session.get_one(StreamRow, stream)
    return reaches.of(from_stored(Relation, row.relation))


def _lacking(session: orm.Session, stream: int, wanted: Label) -> Label:
    """The part of a floor that a run which reads the stream may not know of its tuples."""
    known = _reach_of(Reaches(session), session, stream).bits & ~not_applied(session, stream).bits
    return Label(wanted.bits & ~known)


def _readers_know(session: orm.Session, stream: int) -> bool:
    """Whether each run that reads the stream, or what comes from it, has its newest reach.

    A run that has ended takes what is wanted when it starts again.
    """
    if not is_in_step(session):
        return False
    executions = executions_of(session, computed_from(session, stream) - {stream})
    wanted = {
        run.name: fingerprint(run) for run in wanted_runs(session) if isinstance(run, QueryRun)
    }
    running = session.scalars(select(RunStatus).where(RunStatus.state.not_in(_ENDED)))
    return all(
        status.fingerprint == wanted.get(status.name)
        for status in running
        if execution_of(status.name) in executions
    )

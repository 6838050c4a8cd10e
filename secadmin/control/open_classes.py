"""The open classes of an output: those without a subscription are closed, and none has too many.

Each open class costs its run a record for each result that it takes, and Kafka a topic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, exists, func, orm, select, update

from catalog.admission import view_classes
from catalog.analysis import analyse
from catalog.audit import PLATFORM
from catalog.errors import Conflict, PlatformError
from catalog.level_engines import free_engines, give_engines, waiting_classes
from catalog.limits import Limits
from catalog.models import (
    Access,
    AccessTopic,
    DeliveryClass,
    Object,
    OutputRow,
    Refill,
    Withdrawal,
)
from catalog.placement import Placement
from catalog.plan import Plan
from catalog.rates import rate_of
from catalog.spaces import Spaces
from catalog.stored_form import from_stored
from catalog.wanted import is_in_step, used_topics
from secadmin.control.alignment import TOPIC_PATIENCE
from secadmin.control.platform import Platform
from secadmin.control.work import Work

DELETED_A_TICK = 50
_EVER = datetime.min  # noqa: DTZ901 - the catalog's times have no zone
_OPEN = DeliveryClass.closed_at.is_(None)
_CLOSED = and_(DeliveryClass.closed_at.is_not(None), DeliveryClass.removed_at.is_(None))


@dataclass(frozen=True, slots=True)
class IdleClass:
    """An open class without a subscription, when it lost its last one, and its weight.

    With semantics `exact` a class weighs as much as it has roles, because each of them costs as
    much as a class.
    """

    id: int
    since: datetime
    weight: int = 1


def to_close(idle: Sequence[IdleClass], opened: int, most: int, until: datetime) -> frozenset[int]:
    """Which idle classes of an output are closed: those that are idle since `until` or longer.

    Its open classes weigh `opened`. At most so much stays open, as far as idle ones can be closed:
    those that are idle for longest go first.
    """
    closed: set[int] = set()
    for each in sorted(idle, key=lambda each: (each.since, each.id)):
        if each.since > until and opened <= most:
            break
        closed.add(each.id)
        opened -= each.weight
    return frozenset(closed)


def require_room_for_classes(work: Work, limits: Limits, spaces: Spaces) -> None:
    """Raise Conflict where a call that gives opened more classes than an output may have.

    Engines that `spaces` has for levels are given to isolated classes here, and it raises Conflict
    if none is left.

    It also raises Conflict if the caller's own subscriptions would hold too many of them. So nobody
    fills an output alone. Call it last, when all subscriptions are settled. Idle classes make room
    first. A call that takes rights away does not call it: it is never refused, and opens one class
    at most for each subscription that it takes something from.
    """
    session = work.session
    session.flush()
    for output_id in sorted(work.settlement.opened_classes_of):
        most = most_classes(session, output_id, limits)
        # None is closed for its age here: the upkeep does that.
        closed = _close(session, most, _EVER, work.change.now, {output_id})
        if closed:
            work.change.bump_generation()
        if _weigh_open(session, {output_id}).get(output_id, 0) > most:
            raise _full(_named(work, output_id), most)
        own = _held_by(session, output_id, work.subject.user_id)
        if own > limits.classes_a_user:
            raise Conflict(
                f"your subscriptions would hold {own} delivery classes of {_named(work, output_id)}"
                f", and may hold {limits.classes_a_user}; end one of them, or subscribe with the "
                "roles of another one"
            )
        closing = and_(DeliveryClass.output_id == output_id, _CLOSED)
        leaving = session.scalar(select(func.count()).where(closing)) or 0
        if leaving > most:
            raise Conflict(
                f"too many old topics of {_named(work, output_id)} are still being removed; "
                "try again in some seconds"
            )
    _require_engines_of_levels(work, limits, spaces)


def _require_engines_of_levels(work: Work, limits: Limits, spaces: Spaces) -> None:
    opened = work.settlement.opened_classes_of
    if not opened or not spaces.levels:
        return
    # One whose topic is there waited before this call.
    new = [row for row, _ in waiting_classes(work.session, spaces) if row.opened_at is None]
    own = [row for row in new if row.output_id in opened]
    for row in give_engines(work.session, spaces, limits, own):
        raise Conflict(
            f"no engine is free for the level of another delivery class of "
            f"{_named(work, row.output_id)}: each level that reads what is isolated has an engine "
            f"of its own, and there are {spaces.levels}; end the subscriptions of another level, "
            "or let an administrator raise level_engines"
        )


def give_level_engines(platform: Platform) -> None:
    """Give level engines to isolated classes that wait.

    While none is free, classes without a subscription are closed. So theirs will be free soon.
    """
    spaces = platform.spaces
    with platform.catalog.read() as session:
        waits = waiting_classes(session, spaces)
        full = spaces.levels and not free_engines(session, spaces)
        idle = full and _due(session, 0, _EVER, _isolated(session))
    if waits:
        with platform.catalog.bookkeeping() as session:
            waiting = [row for row, _ in waiting_classes(session, spaces)]
            give_engines(session, spaces, platform.limits, waiting)
    if idle:
        with platform.catalog.change(PLATFORM) as change:
            closed = _close(change.session, 0, _EVER, change.now, _isolated(change.session))
            change.audit("close idle classes", "classes", detail={"classes": len(closed)})
            change.bump_generation()


def _isolated(session: orm.Session) -> frozenset[int]:
    own = select(OutputRow.object_id).where(OutputRow.placement == Placement.APART)
    return frozenset(session.scalars(own))


def most_classes(session: orm.Session, output_id: int, limits: Limits) -> int:
    """How much the open classes of an output may weigh.

    They cost more if each has a view of its own, and more the more tuples its streams are declared
    to bring.
    """
    row = session.get(OutputRow, output_id)
    if row is None:
        return limits.classes
    plan = from_stored(Plan, row.plan)
    if Placement(row.placement).has_common_results(plan):
        return limits.classes
    most = view_classes(analyse(plan), limits, rate_of(session, plan, limits))
    return min(most, limits.isolated_classes) if row.placement == Placement.APART else most


def _full(output: str, most: int) -> Conflict:
    """The refusal. It says nothing of other people's classes but that there is no room."""
    return Conflict(
        f"{output} has no room for another delivery class; it may have {most}: one for each set of "
        "rights that its subscribers have, and one for each set by which the rights of a "
        "subscription have grown, and as many with semantics exact as such a set has roles; give "
        "subscribers the same roles, or end subscriptions, or make those anew whose rights have "
        "grown"
    )


def _named(work: Work, output_id: int) -> str:
    """The output's name for the caller, who may not know that it exists."""
    output = work.session.get_one(Object, output_id)
    return f"the output {output.name!r}" if work.may_view(output) else "an output"


def _held_by(session: orm.Session, output_id: int, user_id: int) -> int:
    """How many open classes of the output the user's own subscriptions hold."""
    held = (
        select(func.count(DeliveryClass.id.distinct()))
        .join(AccessTopic, AccessTopic.class_id == DeliveryClass.id)
        .join(Access, Access.id == AccessTopic.access_id)
        .where(_OPEN, DeliveryClass.output_id == output_id, Access.user_id == user_id)
    )
    return session.scalar(held) or 0


def close_idle(platform: Platform) -> None:
    """Close the classes that have had no subscription for a while, and those beyond the limit.

    A subscription that comes at the same time gets the open class, which then is not idle, or a new
    one: only one transaction changes the catalog at a time.
    """
    most = platform.limits.classes
    with platform.catalog.read() as session:
        if not _due(session, most, platform.clock() - platform.idle_class):
            return
    with platform.catalog.change(PLATFORM) as change:
        until = change.now - platform.idle_class
        closed = _close(change.session, most, until, change.now)
        change.audit("close idle classes", "classes", detail={"classes": len(closed)})
        if closed:
            change.bump_generation()


def delete_closed(platform: Platform) -> None:
    """Delete the topics of closed classes that no run uses, once all is taken and fenced there.

    Some at a time. Raises the first failure when all were tried.
    """
    with platform.catalog.read() as session:
        topics = select(DeliveryClass.topic).where(_CLOSED).order_by(DeliveryClass.id)
        closed = list(session.scalars(topics))
        # In one snapshot: what a run uses is told before its engine is in step.
        if not closed or not is_in_step(session):
            return
        pending = select(Withdrawal.topic).where(Withdrawal.done_at.is_(None))
        needed = used_topics(session).union(session.scalars(pending))
        needed |= frozenset(session.scalars(select(Refill.source)))
    failures: list[PlatformError] = []
    for topic in [topic for topic in closed if topic not in needed][:DELETED_A_TICK]:
        try:
            _delete(platform, topic)
        except PlatformError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def _delete(platform: Platform, topic: str) -> None:
    with platform.alignment.lock([topic], TOPIC_PATIENCE):
        platform.kafka.delete_topics([topic])
        with platform.catalog.bookkeeping() as session:
            deleted = update(DeliveryClass).where(DeliveryClass.topic == topic, _CLOSED)
            session.execute(deleted.values(removed_at=platform.clock()))


def _close(
    session: orm.Session,
    most: int,
    until: datetime,
    now: datetime,
    outputs: Collection[int] | None = None,
) -> frozenset[int]:
    due = _due(session, most, until, outputs)
    rows = session.scalars(select(DeliveryClass).where(DeliveryClass.id.in_(due)))
    for row in rows if due else ():
        row.closed_at = now
    session.flush()
    return due


def _due(
    session: orm.Session, most: int, until: datetime, outputs: Collection[int] | None = None
) -> frozenset[int]:
    """The ids of the idle classes to close, of these outputs or of all."""
    taken = select(func.max(Withdrawal.decided_at)).where(Withdrawal.topic == DeliveryClass.topic)
    # Each class begins with a subscription, and all that one loses is withdrawn from it.
    held = exists().where(AccessTopic.class_id == DeliveryClass.id)
    # Its run still writes what a smaller class is being refilled with.
    read = exists().where(Refill.source == DeliveryClass.topic)
    unheld = select(DeliveryClass, taken.scalar_subquery())
    idle: defaultdict[int, list[IdleClass]] = defaultdict(list)
    for row, since in session.execute(unheld.where(_OPEN, ~held, ~read)):
        if outputs is None or row.output_id in outputs:
            idle[row.output_id].append(IdleClass(row.id, since or _EVER, _weight(row.ways)))
    opened = _weigh_open(session, idle.keys())
    due = (to_close(found, opened[of], most, until) for of, found in idle.items())
    return frozenset().union(*due)


def _weigh_open(session: orm.Session, outputs: Collection[int]) -> dict[int, int]:
    """How much the classes of each of the outputs weigh that are not closed."""
    rows = select(DeliveryClass.output_id, DeliveryClass.ways)
    found: dict[int, int] = defaultdict(int)
    for output_id, ways in session.execute(rows.where(_OPEN, DeliveryClass.output_id.in_(outputs))):
        found[output_id] += _weight(ways)
    return found


def _weight(ways: Sequence[str] | None) -> int:
    return max(1, len(ways or ()))

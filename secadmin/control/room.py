"""Checks that a user is within its limits (`catalog.user_limits`, `catalog.category_shares`)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import bindparam, func, orm, select

from catalog.categories import next_category
from catalog.category_shares import require_share
from catalog.errors import Conflict
from catalog.models import (
    Access,
    Backfill,
    DeliveryClass,
    ExecutionRow,
    Object,
    OutputRow,
    QueryRow,
)
from catalog.namespace import Namespace
from catalog.permission import Permission
from catalog.plan import Plan, source_nodes
from catalog.stored_form import from_stored
from catalog.user_limits import UserLimits
from secadmin.control.work import Reading

_PLANS_OF_BACKFILLS = (
    select(ExecutionRow.plan)
    .join(DeliveryClass, DeliveryClass.execution_id == ExecutionRow.id)
    .join(Backfill, Backfill.class_id == DeliveryClass.id)
    .join(Access, Access.id == Backfill.access_id)
    .where(Access.user_id == bindparam("user"), Backfill.ended_at.is_(None))
)


def require_room_to_run(
    limits: UserLimits, session: orm.Session, owner_id: int | None, plans: Iterable[Plan]
) -> None:
    """Raise Conflict if one more running query with these plans exceeds its owner's limits.

    A backfill counts as a running query of its subscriber. Call it before the query counts as
    running.
    """
    running = (
        select(QueryRow.object_id)
        .join(Object, Object.id == QueryRow.object_id)
        .where(Object.owner_id == owner_id, Object.removed_at.is_(None), QueryRow.running)
    )
    ids = list(session.scalars(running))
    backfills = list(session.scalars(_PLANS_OF_BACKFILLS, {"user": owner_id}))
    held = len(ids) + len(backfills)
    _require("running queries", held, 1, limits.running_queries, "stop one first")
    theirs = select(OutputRow.plan).where(OutputRow.query_id.in_(ids))
    plans_now = [*session.scalars(theirs), *backfills]
    reads = sum(reads_of(from_stored(Plan, data)) for data in plans_now)
    wanted = sum(map(reads_of, plans))
    _require("reads of running queries", reads, wanted, limits.reads, "stop a query first")


def require_room_for_access(limits: UserLimits, session: orm.Session, user_id: int) -> None:
    """Raise Conflict if the user already has as many live accesses as its limit allows."""
    live = select(func.count()).where(Access.user_id == user_id, Access.ended_at.is_(None))
    held = session.scalar(live) or 0
    _require("accesses", held, 1, limits.accesses, "end one first")


def require_room_for_topics(limits: UserLimits, view: Reading, wanted: int) -> None:
    """Raise Conflict if the caller may not own so many more streams and outputs."""
    if view.holds_system(Permission.CHANGE_SYSTEM):
        return
    own = select(func.count()).where(
        Object.owner_id == view.subject.user_id,
        Object.namespace == Namespace.RELATION,
        Object.gone_at.is_(None),
    )
    held = view.session.scalar(own) or 0
    remedy = "remove one first, and wait until its topics are deleted"
    _require("streams and outputs", held, wanted, limits.streams_and_outputs, remedy)


def require_room_for_categories(view: Reading, owner_id: int | None, wanted: int) -> None:
    """Raise Conflict if an object of this owner may not take so many new categories.

    The owner's share does not bound a caller that holds CHANGE SYSTEM.
    """
    next_category(view.session, wanted)
    if owner_id is not None and not view.holds_system(Permission.CHANGE_SYSTEM):
        require_share(view.session, owner_id, wanted)


def reads_of(plan: Plan) -> int:
    """The number of places in the plan that read a stream or an output."""
    return len(source_nodes(plan))


def _require(what: str, held: int, wanted: int, most: int, remedy: str) -> None:
    if held + wanted > most:
        raise Conflict(
            f"the limit of {what} of a user is {most}: there are {held}, this needs {wanted} more, "
            f"and {max(0, most - held)} would fit; {remedy}"
        )

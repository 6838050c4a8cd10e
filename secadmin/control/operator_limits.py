"""The limits of roles on the operators of queries: setting and showing them (004 §5.4)."""

from __future__ import annotations

from sqlalchemy import select

from catalog.errors import Denied
from catalog.models import Object, OperatorLimitsRow, OutputRow, QueryRow
from catalog.operator_limits import OperatorLimits, require_allowed
from catalog.permission import Permission
from catalog.plan import Plan
from catalog.stored_form import from_stored
from secadmin.control.allowed_operators import BEYOND, limits_of_query, read_limits, written
from secadmin.control.platform import Platform
from secadmin.control.queries import stop_for
from secadmin.control.work import Caller, Work, reading, working


def set_limits(platform: Platform, caller: Caller, name: str, limits: OperatorLimits) -> list[int]:
    """Set what the role allows in queries, in place of what it allowed.

    Needs CHANGE SYSTEM. Queries that the roles of their owners do not allow any more are stopped.
    Gives the ids of their executions.
    """
    with working(platform, caller, "set operator limits", f"role {name}") as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        role = work.role(name)
        before = work.session.get(OperatorLimitsRow, role.id)
        work.detail["before"] = None if before is None else written(read_limits(before))
        work.detail["limits"] = written(limits)
        work.session.merge(OperatorLimitsRow(role_id=role.id, **written(limits)))
        work.session.flush()
        return stop_beyond_limits(work)


def remove_limits(platform: Platform, caller: Caller, name: str) -> None:
    """Let the role allow everything. Needs CHANGE SYSTEM."""
    with working(platform, caller, "remove operator limits", f"role {name}") as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        before = work.session.get(OperatorLimitsRow, work.role(name).id)
        if before is not None:
            work.detail["before"] = written(read_limits(before))
            work.session.delete(before)


def show_limits(platform: Platform, caller: Caller, name: str) -> OperatorLimits | None:
    """What the role allows in queries, or None if it has no limits. Needs CHANGE SYSTEM."""
    with reading(platform, caller, "show operator limits", f"role {name}") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        row = view.session.get(OperatorLimitsRow, view.role(name).id)
        return None if row is None else read_limits(row)


def stop_beyond_limits(work: Work) -> list[int]:
    """Stop the running queries that the roles of their owners do not allow any more.

    Call it after a change of limits, or one by which a user may lose a role that allows more.
    Gives the ids of the executions that stopped.
    """
    if work.session.scalar(select(OperatorLimitsRow.role_id).limit(1)) is None:
        return []
    running = (
        select(QueryRow)
        .join(Object, Object.id == QueryRow.object_id)
        .where(QueryRow.running, Object.removed_at.is_(None))
        .order_by(QueryRow.object_id)
    )
    rows = work.session.scalars(running).all()
    beyond = [query for query in rows if _beyond(work, query)]
    return stop_for(work, beyond, BEYOND) if beyond else []


def _beyond(work: Work, query: QueryRow) -> bool:
    roles = limits_of_query(work.session, query.object_id)
    own = select(OutputRow.plan).where(OutputRow.query_id == query.object_id)
    try:
        for data in work.session.scalars(own):
            require_allowed(from_stored(Plan, data), roles)
    except Denied:
        return True
    return False

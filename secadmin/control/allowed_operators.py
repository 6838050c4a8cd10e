"""Whether the roles of a query's author allow its operators (004 §5.4).

The roles that hold ADD QUERY count: a query may be added by each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import orm, select

from catalog.errors import Conflict, Denied
from catalog.models import Grant, Object, OperatorLimitsRow, Role
from catalog.namespace import Namespace
from catalog.operator_limits import (
    Operator,
    OperatorLimits,
    RoleLimits,
    require_allowed,
    uses_of,
)
from catalog.permission import Permission
from catalog.plan import Plan
from catalog.query_roles import kept_roles
from secadmin.control.work import Reading

BEYOND = "stopped, because its owner's roles do not allow its operators any more"


def written(limits: OperatorLimits) -> dict[str, Any]:
    """The limits as the catalog, the API and the audit log have them."""
    operators = None if limits.operators is None else sorted(limits.operators)
    return {
        "operators": operators,
        "window_ms": limits.window_ms,
        "slide_ms": limits.slide_ms,
        "windows": limits.windows,
        "window_rows": limits.window_rows,
    }


def read_limits(row: OperatorLimitsRow) -> OperatorLimits:
    """The limits that a row of the catalog has."""
    operators = None if row.operators is None else frozenset(map(Operator, row.operators))
    return OperatorLimits(operators, row.window_ms, row.slide_ms, row.windows, row.window_rows)


def limits_of(session: orm.Session, roles: Collection[int]) -> RoleLimits:
    """The limits of each of these roles that holds ADD QUERY. Juniors are not added."""
    holding = (
        select(Role.name, OperatorLimitsRow)
        .join(Grant, Grant.role_id == Role.id)
        .join(Object, Object.id == Grant.object_id)
        .outerjoin(OperatorLimitsRow, OperatorLimitsRow.role_id == Role.id)
        .where(
            Role.id.in_(roles),
            Grant.permission == Permission.ADD_QUERY,
            Object.namespace == Namespace.SYSTEM,
        )
    )
    return {
        name: None if row is None else read_limits(row) for name, row in session.execute(holding)
    }


def require_operators(view: Reading, plans: Iterable[Plan]) -> None:
    """Raise Denied if no active role of the caller allows an operator. The audit log has the rest.

    `plans` are those that the caller wrote, before its policies change them.
    """
    asked = list(plans)
    roles = limits_of(view.session, view.subject.role_ids)
    for plan in asked:
        require_allowed(plan, roles)
    if any(limits is not None for limits in roles.values()):
        view.detail["operators"] = sorted({use.operator for plan in asked for use in uses_of(plan)})
        view.detail["allowed by"] = sorted(roles)


def limits_of_query(session: orm.Session, query_id: int) -> RoleLimits:
    """The limits of the roles with which a query was added, as far as its owner still has them."""
    return limits_of(session, kept_roles(session, query_id))


def require_still_allowed(view: Reading, query: Object, plans: Iterable[Plan]) -> None:
    """Raise Denied if the roles of the query's owner do not allow its operators any more.

    Only the owner sees its roles.
    """
    roles = limits_of_query(view.session, query.id)
    try:
        for plan in plans:
            require_allowed(plan, roles)
    except Denied:
        if query.owner_id == view.subject.user_id:
            raise
        raise Conflict("its owner's roles do not allow its operators any more") from None

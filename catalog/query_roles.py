"""The roles of a query: those of its owner, and those that it names: AS role[, role] (000 §4.1)."""

from __future__ import annotations

from sqlalchemy import orm, select

from catalog.models import Membership, Object, QueryRole, QueryRow
from catalog.roles import juniors_of


def kept_roles(session: orm.Session, query_id: int) -> frozenset[int]:
    """The roles with which a query was added, as far as its owner still has them, with juniors."""
    kept = (
        select(QueryRole.role_id)
        .join(Object, Object.id == QueryRole.query_id)
        .join(
            Membership,
            (Membership.role_id == QueryRole.role_id) & (Membership.user_id == Object.owner_id),
        )
        .where(QueryRole.query_id == query_id)
    )
    return frozenset[int]().union(*juniors_of(session, session.scalars(kept)).values())


def chosen_roles(query: QueryRow) -> frozenset[int] | None:
    """The roles that the query names, or None if all roles of a user count.

    A role that was removed is not among them. So if none is left, no role counts.
    """
    return frozenset(role.id for role in query.as_roles) if query.narrowed else None


def counting_roles(session: orm.Session, query: QueryRow) -> frozenset[int] | None:
    """The roles that count for the results of the query: those that it names, and their juniors.

    None if all roles of a user count.
    """
    chosen = chosen_roles(query)
    if chosen is None:
        return None
    return frozenset().union(*juniors_of(session, chosen).values())

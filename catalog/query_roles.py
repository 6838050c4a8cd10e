"""The roles for which a query runs, if it names some: AS role[, role] (000 §4.1)."""

from __future__ import annotations

from sqlalchemy import orm

from catalog.models import QueryRow
from catalog.roles import juniors_of


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

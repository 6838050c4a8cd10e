"""The role hierarchy: a senior role holds all that its juniors hold (004 §2, RBAC96)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from catalog.errors import Conflict
from catalog.models import Role, Seniority


@dataclass(frozen=True, slots=True)
class Closure:
    """For each role, the role itself and all roles that it reaches, with the names of all."""

    members: Mapping[int, frozenset[int]]
    names: Mapping[int, str]


def _closure_by(
    start: Select[int], near: InstrumentedAttribute[int], far: InstrumentedAttribute[int]
) -> Select[int, int, str]:
    """Rows of a role that `start` selects, a role that it reaches (also itself), and its name."""
    roots = start.subquery().c[0]
    reached = select(roots.label("root"), roots.label("member")).cte("reached", recursive=True)
    edge = aliased(Seniority)
    step = select(reached.c.root, getattr(edge, far.key)).join(
        edge, getattr(edge, near.key) == reached.c.member
    )
    # Use UNION, not UNION ALL, so that it ends even if the graph ever has a cycle.
    reached = reached.union(step)
    members = select(reached.c.root, reached.c.member, Role.name)
    return members.join(Role, Role.id == reached.c.member)


def juniors_from(start: Select[int]) -> Select[int, int, str]:
    """The statement for a `Closure` of the roles whose ids `start` selects and all their juniors.

    Build a statement once, because building it takes longer than running it.
    """
    return _closure_by(start, Seniority.senior_id, Seniority.junior_id)


_WANTED = select(Role.id).where(Role.id.in_(bindparam("wanted")))
_JUNIORS = juniors_from(_WANTED)
_SENIORS = _closure_by(_WANTED, Seniority.junior_id, Seniority.senior_id)


def juniors_of(session: Session, role_ids: Iterable[int]) -> Mapping[int, frozenset[int]]:
    """For each of the roles: itself and all its juniors, transitively. One query.

    A role that does not exist is left out.
    """
    return _closure(session, role_ids, _JUNIORS).members


def juniors_with_names(session: Session, role_ids: Iterable[int]) -> Closure:
    """As `juniors_of`, with the names of all these roles."""
    return _closure(session, role_ids, _JUNIORS)


def seniors_of(session: Session, role_ids: Iterable[int]) -> Mapping[int, frozenset[int]]:
    """For each role, itself and all its seniors. A change of its grants affects all of these."""
    return _closure(session, role_ids, _SENIORS).members


def _closure(session: Session, role_ids: Iterable[int], closure: Select[int, int, str]) -> Closure:
    wanted = sorted(set(role_ids))
    return read_closure(session, closure, wanted=wanted) if wanted else Closure({}, {})


def read_closure(session: Session, closure: Select[int, int, str], **asked: object) -> Closure:
    """Run such a statement with the values of its parameters."""
    found: dict[int, set[int]] = {}
    names: dict[int, str] = {}
    for root, member, name in session.execute(closure, asked):
        found.setdefault(root, set()).add(member)
        names[member] = name
    return Closure({root: frozenset(members) for root, members in found.items()}, names)


def add_junior(session: Session, senior: Role, junior: Role) -> bool:
    """Put `junior` below `senior`. Returns False if it already is there.

    Call it inside `Catalog.change`, where no second change can disturb the check. Raises Conflict
    if the hierarchy would get a cycle.
    """
    if senior.id in juniors_of(session, [junior.id]).get(junior.id, frozenset({junior.id})):
        raise Conflict(
            f"role {junior.name!r} cannot be junior to {senior.name!r}: it is the same or above"
        )
    if session.get(Seniority, (senior.id, junior.id)) is not None:
        return False
    session.add(Seniority(senior_id=senior.id, junior_id=junior.id))
    session.flush()
    return True


def remove_junior(session: Session, senior: Role, junior: Role) -> bool:
    """Take `junior` from below `senior`. Returns False if it was not there."""
    edge = session.get(Seniority, (senior.id, junior.id))
    if edge is None:
        return False
    session.delete(edge)
    session.flush()
    return True

"""The rights with which a query was added: the roles that were active, and what they see."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import orm, select

from catalog.categories import role_clauses
from catalog.clearance import Clearance
from catalog.conflict_class import level_of, read_level
from catalog.conflict_classes import conflict_classes
from catalog.errors import Conflict, Denied
from catalog.label import Label
from catalog.models import Object, OutputInput, OutputView, QueryRow
from catalog.permission import ObjectKind
from catalog.plan import Plan, source_nodes
from catalog.query_roles import chosen_roles
from catalog.role_view import RoleView
from catalog.role_views import WHOLE, RoleViews
from catalog.roles import juniors_of
from catalog.stored_form import from_stored
from secadmin.control.work import Reading

CHANGED = "what its roles see of a stream has changed; remove the query and add it again"


def roles_to_see_as(view: Reading, names: Collection[str]) -> frozenset[int] | None:
    """The ids of the roles that the caller chose, or None if it chose none.

    Raises Denied if one of them is not active. A junior of an active role is active.
    """
    if not names:
        return None
    active = {name: role for role, name in view.subject.role_names.items()}
    for name in names:
        if name not in active:
            known = ", ".join(sorted(active)) or "none"
            raise Denied(f"you have not activated a role {name!r}; active roles: {known}")
    return frozenset(active[name] for name in names)


def roles_of(session: orm.Session, query: QueryRow) -> frozenset[int]:
    """The roles with which the query was added, and all juniors that they have now."""
    own = [role.id for role in query.roles]
    return frozenset().union(*juniors_of(session, own).values())


def level_of_query(view: Reading, text: str | None, plans: Iterable[Plan]) -> Label | None:
    """The level at which a query runs, as a label, from its text. None if it names none.

    It has a part for each conflict class of what the query reads. Raises InvalidInput, and Denied
    if the caller's own level does not dominate it (001 §3).
    """
    if text is None:
        return None
    ids = {
        class_id
        for plan in plans
        for source in source_nodes(plan)
        for class_id in source.relation.conflict_classes
    }
    classes = tuple(conflict_classes(view.session, ids).values())
    level = read_level(text, classes)
    held = role_clauses(view.session).cleared(Clearance(view.subject.level.bits))
    if not held.covers(level):
        own = level_of(view.subject.level, classes)
        raise Denied(f"your level is {own}, and a query runs at this level or below")
    view.detail["level"] = level_of(level, classes)
    return level


def views_have_changed(session: orm.Session, query: QueryRow, output_ids: Iterable[int]) -> bool:
    """Whether the query's roles see another part of its streams now than it reads."""
    views, roles, chosen = RoleViews(session), roles_of(session, query), chosen_roles(query)
    for output in output_ids:
        reads = select(Object).join(OutputInput, OutputInput.relation_id == Object.id)
        stored = select(OutputView).where(OutputView.output_id == output)
        read = {row.stream_id: from_stored(RoleView, row.view) for row in session.scalars(stored)}
        for relation in session.scalars(reads.where(OutputInput.output_id == output)):
            if relation.kind != ObjectKind.STREAM:
                if not views.cover_output(roles, relation.id, chosen):
                    return True
                continue
            try:
                now = views.of(roles, relation, chosen)
            except Denied:
                return True
            if now != read.get(relation.id, WHOLE):
                return True
    return False


def computed_from(session: orm.Session, relation_id: int) -> frozenset[int]:
    """The ids of the relation and of all outputs that are computed from it."""
    found = new = frozenset({relation_id})
    while new:
        above = select(OutputInput.output_id).where(OutputInput.relation_id.in_(new))
        new = frozenset(session.scalars(above)) - found
        found |= new
    return found


def require_same_views(session: orm.Session, query: QueryRow, output_ids: Iterable[int]) -> None:
    """Raise Conflict if policies have changed what the query may read since it was added."""
    if views_have_changed(session, query, output_ids):
        raise Conflict(CHANGED)

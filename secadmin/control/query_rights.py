"""The rights with which a query was added: the roles that were active, and what they see."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum

from sqlalchemy import Select, bindparam, orm, select

from catalog.categories import role_clauses
from catalog.clearance import Clearance
from catalog.conflict_class import level_of, read_level
from catalog.conflict_classes import conflict_classes
from catalog.errors import Denied
from catalog.label import Label, combine
from catalog.models import Object, OutputInput, OutputRow, OutputView, QueryRole, QueryRow
from catalog.permission import ObjectKind
from catalog.plan import Plan, source_nodes
from catalog.query_roles import chosen_roles, kept_roles
from catalog.role_view import RoleView
from catalog.role_views import WHOLE, RoleViews
from catalog.stored_form import from_stored
from catalog.view_merging import covers
from secadmin.control.work import Reading


def _computed() -> Select[int]:
    """The ids of an object `relation` and of all outputs that are computed from it."""
    start = select(Object.id).where(Object.id == bindparam("relation"))
    found = start.cte("computed", recursive=True)
    above = select(OutputInput.output_id).join(found, OutputInput.relation_id == found.c.id)
    return select(found.union(above).c.id)


# Statements are built once, because building one takes longer than running it.
_COMPUTED = _computed()
_QUERIES = (
    select(QueryRow)
    .join(Object, Object.id == QueryRow.object_id)
    .join(OutputRow, OutputRow.query_id == QueryRow.object_id)
    .join(OutputInput, OutputInput.output_id == OutputRow.object_id)
    .join(QueryRole, QueryRole.query_id == QueryRow.object_id)
    .where(
        OutputInput.relation_id.in_(_COMPUTED),
        QueryRole.role_id.in_(bindparam("roles")),
        Object.removed_at.is_(None),
    )
    .order_by(QueryRow.object_id)
    .distinct()
)
_RUNNING = (
    select(OutputRow.object_id)
    .join(QueryRow, QueryRow.object_id == OutputRow.query_id)
    .where(OutputRow.object_id.in_(bindparam("outputs")), QueryRow.running)
    .order_by(OutputRow.object_id)
)


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


def level_of_query(view: Reading, text: str | None, plans: Iterable[Plan]) -> Label | None:
    """The level at which a query runs, as a label, from its text. None if it has none.

    A query that names none in a session at a level runs at this level. A level has a part for each
    conflict class of what the query reads. Raises InvalidInput, and Denied if the level of the
    caller's session does not dominate it (001 §3).
    """
    subject = view.subject
    if text is None and subject.session_level is None:
        return None
    ids = {
        class_id
        for plan in plans
        for source in source_nodes(plan)
        for class_id in source.relation.conflict_classes
    }
    classes = tuple(conflict_classes(view.session, ids).values())
    if text is None:
        level = Label(subject.level.bits & combine(each.categories for each in classes).bits)
        view.detail["level"] = level_of(level, classes)
        return level if classes else None
    level = read_level(text, classes)
    held = role_clauses(view.session).cleared(Clearance(subject.level.bits))
    if not held.covers(level):
        own = level_of(subject.level, classes)
        raise Denied(f"your level is {own}, and a query runs at this level or below")
    view.detail["level"] = level_of(level, classes)
    return level


class ViewChange(Enum):
    """How what a query's roles see of its streams differs from what the query reads.

    WIDER: they see all of it, and more.
    """

    NONE = "none"
    WIDER = "wider"
    OTHER = "other"


def change_of_views(session: orm.Session, query: QueryRow, output_ids: Iterable[int]) -> ViewChange:
    """How what the query's roles see now differs from what its outputs read.

    A role that its owner has lost does not count.
    """
    views, chosen = RoleViews(session), chosen_roles(query)
    roles, found = kept_roles(session, query.object_id), ViewChange.NONE
    for output in output_ids:
        reads = select(Object).join(OutputInput, OutputInput.relation_id == Object.id)
        stored = select(OutputView).where(OutputView.output_id == output)
        read = {row.stream_id: from_stored(RoleView, row.view) for row in session.scalars(stored)}
        for relation in session.scalars(reads.where(OutputInput.output_id == output)):
            if relation.kind != ObjectKind.STREAM:
                if not views.cover_output(roles, relation.id, chosen):
                    return ViewChange.OTHER
                continue
            try:
                now, before = views.of(roles, relation, chosen), read.get(relation.id, WHOLE)
            except Denied:
                return ViewChange.OTHER
            if not covers(now, before):
                return ViewChange.OTHER
            if now != before:
                found = ViewChange.WIDER
    return found


def computed_from(session: orm.Session, relation_id: int) -> frozenset[int]:
    """The ids of the relation and of all outputs that are computed from it."""
    return frozenset(session.scalars(_COMPUTED, {"relation": relation_id}))


def queries_over(
    session: orm.Session, relation_id: int, roles: Collection[int]
) -> Sequence[QueryRow]:
    """The live queries over the relation that were added with one of the roles.

    Those over outputs that are computed from the relation belong to them.
    """
    asked = {"relation": relation_id, "roles": list(roles)}
    return session.scalars(_QUERIES, asked).all()


def running_of(session: orm.Session, outputs: Collection[int]) -> list[int]:
    """Those of the outputs whose queries are to run, by id."""
    return list(session.scalars(_RUNNING, {"outputs": list(outputs)}))

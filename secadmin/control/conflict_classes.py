"""Conflict classes: companies that compete with each other (001 §3, definition 1)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select

from catalog.conflict_class import ConflictClass
from catalog.conflict_classes import add_class as new_class
from catalog.conflict_classes import add_company, conflict_classes
from catalog.errors import Conflict
from catalog.floors import remember_readable
from catalog.models import Object, StreamRow, UserLevel
from catalog.names import check_object_name
from catalog.namespace import Namespace
from catalog.permission import ObjectKind, Permission
from catalog.relation import Relation
from catalog.stored_form import from_stored
from secadmin.control.platform import Platform
from secadmin.control.query_rights import computed_from
from secadmin.control.room import require_room_for_categories
from secadmin.control.settlement import of_objects, of_users
from secadmin.control.work import Caller, Reading, Work, reading, working


def add_class(platform: Platform, caller: Caller, name: str, companies: Sequence[str]) -> None:
    """Add a conflict class with its companies. Needs ADD CONFLICT CLASS.

    Its categories belong to the caller's share (`catalog.category_shares`).

    Raises InvalidInput, Conflict.
    """
    check_object_name(name)
    with working(platform, caller, "add conflict class", f"conflict class {name}") as work:
        work.require_system(Permission.ADD_CONFLICT_CLASS)
        work.require_free(Namespace.CONFLICT_CLASS, name)
        # One more is that of T.
        require_room_for_categories(work, work.subject.user_id, len(companies) + 1)
        obj = Object(
            kind=ObjectKind.CONFLICT_CLASS,
            namespace=Namespace.CONFLICT_CLASS,
            name=name,
            owner_id=work.subject.user_id,
            created_at=platform.clock(),
        )
        work.session.add(obj)
        work.session.flush()
        known = new_class(work.session, obj)
        for company in companies:
            known = add_company(work.session, known, company)
        work.detail["companies"] = list(companies)


def show_class(platform: Platform, caller: Caller, name: str) -> Sequence[str]:
    """The companies of a conflict class that the caller may view."""
    with reading(platform, caller, "show conflict class", f"conflict class {name}") as view:
        return list(_known(view, view.find(ObjectKind.CONFLICT_CLASS, name)).companies)


def add_company_to(platform: Platform, caller: Caller, name: str, company: str) -> None:
    """Add a company to a conflict class. Needs CHANGE PERM on it.

    Who has T in the class sees the new company too. Ingest takes its tuples within seconds. Raises
    InvalidInput, Conflict.
    """
    with working(platform, caller, "add company", f"conflict class {name}") as work:
        obj = work.find(ObjectKind.CONFLICT_CLASS, name)
        work.require(Permission.CHANGE_PERM, obj)
        require_room_for_categories(work, obj.owner_id, 1)
        add_company(work.session, _known(work, obj), company)
        work.detail["company"] = company
        _settle(work, obj)
        work.change.bump_generation()


def remove_class(platform: Platform, caller: Caller, name: str) -> None:
    """Remove a conflict class that no stream uses any more. Needs CHANGE PERM on it.

    Nobody holds its companies from then on: what users read by their levels in it has ended when
    the call has returned.
    """
    with working(platform, caller, "remove conflict class", f"conflict class {name}") as work:
        remember_readable(work.session)
        obj = work.find(ObjectKind.CONFLICT_CLASS, name)
        work.require(Permission.CHANGE_PERM, obj)
        if _streams_with(work, obj):
            raise Conflict(f"streams still have companies of {name!r}; remove them first")
        _take_levels(work, obj)
        obj.removed_at = obj.gone_at = platform.clock()


def _take_levels(work: Work, obj: Object) -> None:
    """Take the levels that users have in a class.

    Floors may have brought its companies into streams without a rule for them.
    """
    held = UserLevel.class_id == obj.id
    users = work.session.scalars(select(UserLevel.user_id).where(held)).all()
    work.session.execute(delete(UserLevel).where(held))
    if users:
        work.settlement.settle(of_users(users))
        work.change.bump_generation()


def find_class(view: Reading, name: str) -> ConflictClass:
    """The conflict class of that name. Raises NotFound if the caller may not view it."""
    return _known(view, view.find(ObjectKind.CONFLICT_CLASS, name))


def _known(view: Reading, obj: Object) -> ConflictClass:
    return conflict_classes(view.session, [obj.id])[obj.id]


def _settle(work: Work, obj: Object) -> None:
    """Settle the accesses to the streams with this class, and to all that comes from them.

    A new company closes the quarantine to whoever does not hold it.
    """
    concerned: set[int] = set()
    for stream in _streams_with(work, obj):
        concerned |= computed_from(work.session, stream)
    if concerned:
        work.settlement.settle(of_objects(*concerned))


def _streams_with(work: Work, obj: Object) -> list[int]:
    live = (
        select(StreamRow)
        .join(Object, Object.id == StreamRow.object_id)
        .where(StreamRow.level_rule.is_not(None), Object.removed_at.is_(None))
        .order_by(StreamRow.object_id)
    )
    return [
        row.object_id
        for row in work.session.scalars(live)
        if obj.id in from_stored(Relation, row.relation).conflict_classes
    ]

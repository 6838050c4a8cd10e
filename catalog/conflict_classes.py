"""Keeps conflict classes and their companies, and reads the levels of users (001 §3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import bindparam, orm, select

from catalog.categories import next_category
from catalog.category_kind import CategoryKind
from catalog.conflict_class import MAX_COMPANIES, ConflictClass, check_company_name
from catalog.errors import Conflict
from catalog.label import PUBLIC, Label
from catalog.models import (
    CategoryRow,
    ClauseRole,
    Company,
    ConflictClassRow,
    Object,
    UserLevel,
)

# Built once, because building it takes longer than running it.
_LEVELS = select(UserLevel).where(UserLevel.user_id.in_(bindparam("users")))


def add_class(session: orm.Session, obj: Object) -> ConflictClass:
    """Make the conflict class of a new object, with the category of T, and without companies."""
    bit = _allocate(session, CategoryKind.TRUSTED, obj.id)
    session.add(ConflictClassRow(object_id=obj.id, name=obj.name, trusted_bit=bit))
    session.add(ClauseRole(clause_bit=bit, role_bit=bit))
    session.flush()
    return ConflictClass(obj.id, obj.name, bit, {})


def add_company(session: orm.Session, known: ConflictClass, name: str) -> ConflictClass:
    """Add a company to a conflict class, and give the class as it is then.

    Who has T in the class has the new company too. Raises InvalidInput, Conflict.
    """
    check_company_name(name)
    if name in known.companies:
        raise Conflict(f"the conflict class {known.name} has the company {name!r} already")
    if len(known.companies) >= MAX_COMPANIES:
        raise Conflict(f"a conflict class has at most {MAX_COMPANIES} companies")
    bit = _allocate(session, CategoryKind.COMPANY, known.id)
    session.add(Company(bit=bit, class_id=known.id, name=name))
    session.add_all(
        ClauseRole(clause_bit=bit, role_bit=given_by) for given_by in (bit, known.trusted)
    )
    session.flush()
    return ConflictClass(known.id, known.name, known.trusted, {**known.companies, name: bit})


def _allocate(session: orm.Session, kind: CategoryKind, class_id: int) -> int:
    bit = next_category(session)
    session.add(CategoryRow(bit=bit, kind=kind, stream_id=class_id))
    session.flush()
    return bit


def conflict_classes(
    session: orm.Session, ids: Iterable[int] | None = None
) -> Mapping[int, ConflictClass]:
    """These conflict classes by their ids, or all of them, in the order of a level.

    A removed one is among them, because tuples may carry its companies.
    """
    query = select(ConflictClassRow).order_by(ConflictClassRow.object_id)
    companies = select(Company.class_id, Company.name, Company.bit).order_by(Company.bit)
    if ids is not None:
        wanted = sorted(set(ids))
        query = query.where(ConflictClassRow.object_id.in_(wanted))
        companies = companies.where(Company.class_id.in_(wanted))
    found: dict[int, dict[str, int]] = {}
    for row in session.execute(companies):
        found.setdefault(row.class_id, {})[row.name] = row.bit
    return {
        row.object_id: ConflictClass(
            row.object_id, row.name, row.trusted_bit, found.get(row.object_id, {})
        )
        for row in session.scalars(query)
    }


def company_categories(session: orm.Session) -> Label:
    """The categories of all companies, and those of T."""
    kinds = (CategoryKind.COMPANY, CategoryKind.TRUSTED)
    return Label.of(*session.scalars(select(CategoryRow.bit).where(CategoryRow.kind.in_(kinds))))


def levels_of(session: orm.Session, users: Iterable[int]) -> Mapping[int, Label]:
    """The level of each of these users, as a label. A user without one is left out.

    Where a user has not chosen its company yet, it has none.
    """
    rows = session.scalars(_LEVELS, {"users": sorted(set(users))}).all()
    classes = conflict_classes(session, (row.class_id for row in rows)) if rows else {}
    found: dict[int, Label] = {}
    for row in rows:
        part = None if row.part is None else classes[row.class_id].label_of(row.part)
        found[row.user_id] = found.get(row.user_id, PUBLIC) | (part or PUBLIC)
    return found

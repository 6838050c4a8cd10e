"""Categories in words: what a category of a label means, and what gives it to a user."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import aliased

from catalog.category_kind import CategoryKind
from catalog.models import CategoryRow, ClauseRole, Company, ConflictClassRow, Object, Role
from catalog.permission import Permission
from secadmin.control.work import Reading

_HIDDEN = "a stream that you may not view"


def category_words(view: Reading, bit: int) -> tuple[str, str]:
    """What the category means, and what gives it to a user."""
    row = view.session.get(CategoryRow, bit)
    match row.kind if row is not None else None:
        case CategoryKind.SOURCE:
            stream = _stream(view, row)
            return f"tuples of {stream}", f"{Permission.READ_TUPLE} on {stream}"
        case CategoryKind.AGGREGATED:
            stream = _stream(view, row)
            right = f"{Permission.READ_AGGREGATE} on {stream}, without SEND there"
            return f"the declared aggregate of {stream}", right
        case CategoryKind.ROLE_CLAUSE:
            roles = ", ".join(_roles(view, bit)) or "none that there is"
            return f"a condition of role expressions of {_stream(view, row)}", f"a role: {roles}"
        case CategoryKind.ROLE:
            # It is in floors alone.
            role = view.session.get(Role, row.role_id) if row is not None else None
            name = "that was removed" if role is None else role.name
            return f"what members of the role {name} may have read", f"the role {name}"
        case CategoryKind.COMPANY:
            company, of = _company(view, bit)
            return f"the company {company} of {of}", f"the level {company} or T in {of}"
        case CategoryKind.TRUSTED:
            of = _class(view, bit)
            return f"several companies of {of}", f"the level T in {of}"
        case _:
            return "a category that is in no label", "nothing"


def _stream(view: Reading, row: CategoryRow | None) -> str:
    stream = None if row is None else view.session.get(Object, row.stream_id)
    if stream is None or not view.may_view(stream):
        return _HIDDEN
    return f"stream {stream.name}"


def _roles(view: Reading, clause: int) -> list[str]:
    category = aliased(CategoryRow)
    named = (
        select(Role.name)
        .join(category, category.role_id == Role.id)
        .join(ClauseRole, ClauseRole.role_bit == category.bit)
        .where(ClauseRole.clause_bit == clause)
    )
    return sorted(view.session.scalars(named))


def _company(view: Reading, bit: int) -> tuple[str, str]:
    company = view.session.get_one(Company, bit)
    return company.name, view.session.get_one(ConflictClassRow, company.class_id).name


def _class(view: Reading, bit: int) -> str:
    own = select(ConflictClassRow.name).where(ConflictClassRow.trusted_bit == bit)
    return view.session.scalars(own).one()

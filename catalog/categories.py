"""Allocates categories, and reads which categories tuples carry and which roles give them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.category_kind import CategoryKind
from catalog.errors import Conflict
from catalog.label import MAX_CATEGORIES, PUBLIC, Label, combine
from catalog.models import CategoryRow, ClauseRole, FloorCategory
from catalog.role_clauses import NO_CLAUSES, RoleClauses

_CARRIED = (CategoryKind.SOURCE, CategoryKind.ROLE_CLAUSE)


def registered_categories(session: Session) -> int:
    """The first bit that no category ever had: all that there ever were have lower ones."""
    highest = session.scalar(select(func.max(CategoryRow.bit)))
    return 0 if highest is None else highest + 1


def next_category(session: Session, wanted: int = 1) -> int:
    """The first of so many bits that no category ever had.

    Raises Conflict if a label could not have all of them. Nothing that takes rights away needs a
    new category, so it never fails for that.
    """
    first = registered_categories(session)
    if first + wanted > MAX_CATEGORIES:
        raise Conflict(
            f"the platform has {MAX_CATEGORIES} categories, which are never free again: {first} "
            f"were given, and this needs {wanted} more; use the streams, companies and conditions "
            "that there are, or another deployment"
        )
    return first


def source_categories(session: Session) -> Mapping[int, Label]:
    """The category that each stream gives to all of its tuples, by the stream's id.

    A stream whose category no label can have is left out, as one without a category.
    """
    found = _by_stream(session, (CategoryKind.SOURCE,))
    return {id_: label for id_, label in found.items() if label.bits.bit_length() <= MAX_CATEGORIES}


def carried_categories(session: Session) -> Mapping[int, Label]:
    """The categories that ingest can give to a tuple of each stream, by the stream's id.

    Companies are not among them: these belong to conflict classes.
    """
    found = dict(_by_stream(session, _CARRIED))
    for stream, label in _floor_categories(session).items():
        found[stream] = found.get(stream, PUBLIC) | label
    return found


def role_clauses(session: Session) -> RoleClauses:
    """All clauses, with the categories of their roles."""
    found: dict[int, Label] = {}
    for row in session.execute(select(ClauseRole.clause_bit, ClauseRole.role_bit)):
        found[row.clause_bit] = found.get(row.clause_bit, PUBLIC) | Label.of(row.role_bit)
    return RoleClauses(found) if found else NO_CLAUSES


def _floor_categories(session: Session) -> Mapping[int, Label]:
    """The categories that the floors of senders bring into each stream (`catalog.floors`)."""
    found: dict[int, list[int]] = {}
    for row in session.execute(select(FloorCategory.stream_id, FloorCategory.bit)):
        found.setdefault(row.stream_id, []).append(row.bit)
    return {stream: Label.of(*bits) for stream, bits in found.items()}


def _by_stream(session: Session, kinds: tuple[CategoryKind, ...]) -> Mapping[int, Label]:
    query = select(CategoryRow.stream_id, CategoryRow.bit).where(
        CategoryRow.kind.in_(kinds), CategoryRow.stream_id.is_not(None)
    )
    found: dict[int, list[int]] = {}
    for row in session.execute(query):
        found.setdefault(row.stream_id, []).append(row.bit)
    return {stream: combine(map(Label.of, bits)) for stream, bits in found.items()}

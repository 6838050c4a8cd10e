"""Queries whose roles see another part of their streams since policies changed (002 §3.3, 003 §IV).

The call that changes a policy notes them: from then on nothing is wanted of their plans, and
nothing that these deliver reaches anybody who may not have it. `secadmin.control.new_merging` then
merges each of them anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import orm, select, update

from catalog.models import DeliveryClass, Object, OutputInput, OutputRow, QueryRow
from catalog.store import bump_generation
from secadmin.control.query_rights import ViewChange, change_of_views


def note_if_changed(session: orm.Session, query: QueryRow, now: datetime) -> frozenset[int]:
    """Note the query if its plan is not what its roles see now. Gives what `note_changed` gives."""
    outputs = _outputs_of(session, [query.object_id])
    change = change_of_views(session, query, outputs)
    if change is ViewChange.NONE and query.views_changed_at is None:
        return frozenset()
    return note_changed(session, outputs, now, wider=change is not ViewChange.OTHER)


def note_changed(
    session: orm.Session, output_ids: Collection[int], now: datetime, *, wider: bool
) -> frozenset[int]:
    """Note that the queries of these outputs are to be merged anew, with all that is over them.

    Unless their roles see all that they saw and more (`wider`), the delivery classes are closed: a
    class holds results of one view alone. Gives the ids of all outputs concerned. Settle the
    accesses to them afterwards.
    """
    found = _with_those_over(session, output_ids) if output_ids else frozenset[int]()
    if not found:
        return found
    queries = select(OutputRow.query_id).where(OutputRow.object_id.in_(found))
    noted = update(QueryRow).where(QueryRow.object_id.in_(queries))
    session.execute(noted.values(views_changed_at=now))
    if not wider:
        close_classes(session, found, now)
    bump_generation(session)
    return found


def close_classes(session: orm.Session, output_ids: Collection[int], now: datetime) -> None:
    """Close all classes of these outputs."""
    own = (DeliveryClass.output_id.in_(output_ids), DeliveryClass.closed_at.is_(None))
    session.execute(update(DeliveryClass).where(*own).values(closed_at=now))
    session.flush()


def _with_those_over(session: orm.Session, output_ids: Collection[int]) -> frozenset[int]:
    """The live ones of these outputs, of those of the same queries, and of all computed from them.

    A query is merged as a whole.
    """
    found, new = frozenset[int](), frozenset(output_ids)
    while new:
        found |= new
        over = select(OutputInput.output_id).where(OutputInput.relation_id.in_(new))
        queries = select(OutputRow.query_id).where(OutputRow.object_id.in_(new))
        beside = _outputs_of(session, session.scalars(queries))
        new = frozenset([*session.scalars(over), *beside]) - found
    return frozenset(_live(session, found))


def _outputs_of(session: orm.Session, query_ids: Iterable[int]) -> list[int]:
    own = select(OutputRow.object_id).where(OutputRow.query_id.in_(list(query_ids)))
    return _live(session, session.scalars(own))


def _live(session: orm.Session, ids: Iterable[int]) -> list[int]:
    live = select(Object.id).where(Object.id.in_(list(ids)), Object.removed_at.is_(None))
    return list(session.scalars(live.order_by(Object.id)))

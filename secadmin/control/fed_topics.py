"""Topics that get results from now on, and those whose place they take.

A grant that no difference class can show opens a whole class beside the old one. The subscriber
reads both, until the new one is fed: so its rights grow without a pause.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, exists, or_, select, update
from sqlalchemy.orm import aliased

from catalog.audit import PLATFORM
from catalog.models import Access, AccessTopic
from catalog.wanted import fed_classes
from secadmin.control.platform import Platform
from secadmin.control.settlement import Settlement

OVERLAP = timedelta(seconds=5)
"""How far behind its topic a reader may be, and still miss nothing of one that leaves."""


def note_fed(platform: Platform) -> None:
    """Note since when topics are fed. Nothing is noted of an engine that is not seen alive."""
    unfed = select(AccessTopic.class_id).where(
        AccessTopic.fed_at.is_(None), AccessTopic.class_id.is_not(None)
    )
    with platform.catalog.read() as session:
        classes = [found for found in session.scalars(unfed.distinct()) if found is not None]
        fed = fed_classes(session, classes, platform.pulse.living(session)) if classes else None
    if fed:
        with platform.catalog.bookkeeping() as session:
            rows = update(AccessTopic).where(
                AccessTopic.fed_at.is_(None), AccessTopic.class_id.in_(fed)
            )
            session.execute(rows.values(fed_at=platform.clock()))


def cut_replaced(platform: Platform) -> None:
    """Take the topics that leave from subscriptions whose other topics are fed, fenced."""
    with platform.catalog.read() as session:
        if session.scalar(select(Access.id).where(_replaced(platform.clock())).limit(1)) is None:
            return
    with platform.catalog.change(PLATFORM) as change:
        settlement = Settlement(change, change.now)
        due = select(Access).where(_replaced(change.now)).order_by(Access.id)
        accesses = change.session.scalars(due).all()
        settlement.cut_leaving(accesses)
        change.audit("cut replaced topics", "accesses", detail={"subscriptions": len(accesses)})
    platform.alignment.align(settlement.topics)


def _replaced(now: datetime) -> ColumnElement[bool]:
    """The accesses with a topic that leaves, all others of which are fed since a while."""
    # First those few that have such a topic: this is asked all the time.
    leaving = select(AccessTopic.access_id).where(AccessTopic.leaving.is_(True))
    other = aliased(AccessTopic)
    others = (other.access_id == Access.id, other.leaving.is_(False))
    late = or_(other.fed_at.is_(None), other.fed_at > now - OVERLAP)
    return Access.id.in_(leaving) & exists().where(*others) & ~exists().where(*others, late)

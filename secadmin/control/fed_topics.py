"""New topics of a subscription that get results, and the old topics that they replace.

If a grant cannot be shown by a difference class, it opens a new whole class beside the old one. The
subscriber reads both until the new class is fed. So its rights grow without a pause.
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
"""A reader may be this far behind in an old topic and still miss none of its records."""


def note_fed(platform: Platform) -> None:
    """Record since when topics are fed. Engines that are not known to be alive do not count."""
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
    """Withdraw old topics from subscriptions whose other topics are fed, and fence them."""
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
    """The accesses with an old topic whose other topics have been fed for long enough."""
    # First the few accesses with an old topic, because this is asked very often.
    leaving = select(AccessTopic.access_id).where(AccessTopic.leaving.is_(True))
    other = aliased(AccessTopic)
    others = (other.access_id == Access.id, other.leaving.is_(False))
    late = or_(other.fed_at.is_(None), other.fed_at > now - OVERLAP)
    return Access.id.in_(leaving) & exists().where(*others) & ~exists().where(*others, late)

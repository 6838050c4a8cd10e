"""Topics of a new stream or query. A refused call leaves none behind.

The topics are made before the transaction that adds the object: Kafka is slow, and engines read
what the catalog has as soon as it is there. So the transaction may still refuse the call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import select

from catalog.errors import PlatformError, Unavailable
from catalog.models import Object
from catalog.namespace import Namespace
from catalog.topics import topic_relation
from secadmin.control.alignment import TOPIC_PATIENCE
from secadmin.control.platform import Platform
from secadmin.control.wanted_access import topics_of

log = logging.getLogger(__name__)
_DELETES_WITHIN_S = 30.0
"""After so long the locks may be lost while topics are deleted, so nothing is deleted."""


@contextmanager
def new_topics(
    platform: Platform, topics: Sequence[str], create: Callable[[], None]
) -> Iterator[None]:
    """Create topics for an object that the block adds. If that is refused, delete them again.

    Both is done under the locks of the topics. So no other call makes these topics, adds an object
    of their name, or deletes them meanwhile. What was there before stays. Do not align topics in
    the block, because the locks must not be held for so long.

    Raises Unavailable, also if the locks are not free in time, and what `create` raises.
    """
    with platform.alignment.lock(topics, TOPIC_PATIENCE):
        began, made = time.monotonic(), False
        there = platform.kafka.partitions(topics).keys()
        try:
            create()
            made = True
            yield
        except PlatformError as failure:
            # If the database did not answer, nobody knows whether the object was added.
            if not (made and isinstance(failure, Unavailable)):
                _delete(platform, [each for each in topics if each not in there], began)
            raise


def _delete(platform: Platform, topics: Collection[str], began: float) -> None:
    """Delete those of the topics that belong to no object. A failure is logged."""
    try:
        left = sorted(set(topics) - _known(platform, topics))
        if left and time.monotonic() - began > _DELETES_WITHIN_S:
            raise Unavailable("Kafka is too slow")
        if left:
            platform.kafka.delete_topics(left)
    except PlatformError as failure:
        log.warning("a refused call leaves topics: %s: %s", ", ".join(topics), failure)


def _known(platform: Platform, topics: Collection[str]) -> set[str]:
    """The topics of streams and outputs that are there, of these names."""
    names = {topic_relation(each) for each in topics}
    there = select(Object).where(
        Object.namespace == Namespace.RELATION, Object.name.in_(names), Object.gone_at.is_(None)
    )
    with platform.catalog.read() as session:
        return {topic for obj in session.scalars(there) for topic in topics_of(session, obj)}

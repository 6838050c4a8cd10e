"""What Kafka should allow, as the catalog has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import orm, select

from catalog.models import Access, DeliveryClass, Object, SenderRow
from catalog.permission import ObjectKind
from catalog.store import Catalog
from catalog.topics import lab_topic, quarantine_topic
from secadmin.control.settlement import SEND


@dataclass(frozen=True, slots=True)
class WantedState:
    """Readers and writers are (principal, topic); `principals` those of all live accesses.

    `topics` are those of the platform: its data plane may use them, and no others are its own.
    """

    readers: frozenset[tuple[str, str]]
    writers: frozenset[tuple[str, str]]
    principals: frozenset[str]
    topics: frozenset[str]


def wanted_state(catalog: Catalog) -> WantedState:
    """Read the state that Kafka should be in."""
    with catalog.read() as session:
        accesses = list(session.scalars(select(Access).where(Access.ended_at.is_(None))))
        objects = session.scalars(select(Object).where(Object.gone_at.is_(None)))
        topics = {topic for obj in objects for topic in topics_of(session, obj)}
        classes = select(DeliveryClass.topic).where(DeliveryClass.closed_at.is_(None))
        topics.update(session.scalars(classes))
    reaching = [access for access in accesses if access.topic is not None]
    return WantedState(
        readers=_pairs(access for access in reaching if access.kind != SEND),
        writers=_pairs(access for access in reaching if access.kind == SEND),
        principals=frozenset(access.principal for access in accesses),
        topics=frozenset(topics),
    )


def topics_of(session: orm.Session, obj: Object) -> list[str]:
    """The topics that an object has besides those of its delivery classes.

    A stream's are also those of all its senders that are not deleted yet.
    """
    if obj.kind == ObjectKind.STREAM:
        there = (SenderRow.stream_id == obj.id, SenderRow.removed_at.is_(None))
        senders = session.scalars(select(SenderRow.topic).where(*there))
        return [*senders, lab_topic(obj.name), quarantine_topic(obj.name)]
    return [lab_topic(obj.name)] if obj.kind == ObjectKind.OUTPUT else []


def _pairs(accesses: Iterable[Access]) -> frozenset[tuple[str, str]]:
    return frozenset((access.principal, access.topic) for access in accesses if access.topic)

"""The access that Kafka should allow, as the catalog says."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import orm, select

from catalog.access_kind import AccessKind
from catalog.models import Access, AccessTopic, DeliveryClass, Object, SenderRow, StreamRow
from catalog.permission import ObjectKind
from catalog.runs import stream_topics
from catalog.store import Catalog
from catalog.topics import lab_topic


@dataclass(frozen=True, slots=True)
class WantedState:
    """`readers`, `writers`: pairs (principal, topic). `principals`: those of live accesses.

    `reading` are those of them that read, also those whose topics are all withdrawn for now.
    Engines use the topics of streams, and those of outputs with their delivery classes, and no
    others.
    """

    readers: frozenset[tuple[str, str]]
    writers: frozenset[tuple[str, str]]
    principals: frozenset[str]
    reading: frozenset[str]
    stream_topics: frozenset[str]
    output_topics: frozenset[str]


def wanted_state(catalog: Catalog) -> WantedState:
    """Read the wanted state of Kafka from the catalog."""
    with catalog.read() as session:
        live = Access.ended_at.is_(None)
        accesses = session.execute(select(Access.principal, Access.kind).where(live)).all()
        reached = session.execute(
            select(Access.principal, Access.kind, AccessTopic.topic)
            .join(AccessTopic, AccessTopic.access_id == Access.id)
            .where(live)
        ).all()
        classes = select(DeliveryClass.topic).where(DeliveryClass.closed_at.is_(None))
        of_classes = frozenset(session.scalars(classes))
        of_streams = _topics_of_all(session, ObjectKind.STREAM)
        of_outputs = _topics_of_all(session, ObjectKind.OUTPUT)
    return WantedState(
        readers=frozenset(
            (row.principal, row.topic) for row in reached if row.kind != AccessKind.SEND
        ),
        writers=frozenset(
            (row.principal, row.topic) for row in reached if row.kind == AccessKind.SEND
        ),
        principals=frozenset(row.principal for row in accesses),
        reading=frozenset(row.principal for row in accesses if row.kind != AccessKind.SEND),
        stream_topics=of_streams,
        output_topics=of_outputs | of_classes,
    )


def _topics_of_all(session: orm.Session, kind: ObjectKind) -> frozenset[str]:
    there = (Object.kind == kind, Object.gone_at.is_(None))
    objects = session.scalars(select(Object).where(*there)).all()
    return frozenset(topic for obj in objects for topic in topics_of(session, obj))


def topics_of(session: orm.Session, obj: Object) -> list[str]:
    """The topics of an object, without those of its delivery classes.

    A stream's topics include those of all its senders that are not deleted yet.
    """
    if obj.kind == ObjectKind.STREAM:
        there = (SenderRow.stream_id == obj.id, SenderRow.removed_at.is_(None))
        senders = session.scalars(select(SenderRow.topic).where(*there))
        row = session.get(StreamRow, obj.id)
        ruled = row is not None and row.label_rule is not None
        return [*senders, *stream_topics(obj.name, ruled=ruled)]
    return [lab_topic(obj.name)] if obj.kind == ObjectKind.OUTPUT else []

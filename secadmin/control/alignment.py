"""Alignment: Kafka's topics and ACLs become what the catalog says, topic by topic.

Whatever happened before (a crash, Kafka away, two services at once), aligning a topic carries out
the withdrawals that were decided for it and then lets in whom the catalog lets in. It holds the
topic's lock and reads the catalog under it, so an older view never overtakes a newer one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy import ColumnElement, Select, and_, or_, select, update

from catalog.errors import PlatformError
from catalog.models import Access, DeliveryClass, OutputRow, Withdrawal
from catalog.store import Catalog, bump_generation
from secadmin.control.settlement import SEND
from secadmin.kafka.fence import FenceNotProven

_PARALLEL = 16
# No name that `secadmin.kafka.principals` gives out.
_OF_NOBODY = "-"


class TopicControl(Protocol):
    """What alignment needs of Kafka."""

    def open_class(self, topic: str, retention_ms: int) -> None:
        """Create a delivery topic and let the data plane write it, if that is not done."""

    def allow_read(self, topic: str, principals: Collection[str]) -> None:
        """Let the principals read the topic, each with groups of its own prefix."""

    def allow_write(self, topic: str, principals: Collection[str]) -> None:
        """Let the principals write the topic."""

    def withdraw(self, topic: str, principals: frozenset[str]) -> None:
        """Take the topic from the principals; for readers, fenced when the call returns."""


@dataclass(frozen=True)
class Alignment:
    """Aligns topics; `lock` gives the lock of a topic, across services."""

    catalog: Catalog
    kafka: TopicControl
    lock: Callable[[str], AbstractContextManager[None]]
    clock: Callable[[], datetime]

    def align(self, topics: Iterable[str]) -> None:
        """Align these topics, several at once. Raises the first failure when all were tried.

        A topic that could not be aligned keeps its withdrawals; `align_pending` tries again.
        """
        ordered = sorted(set(topics))
        if len(ordered) <= 1:
            for topic in ordered:
                self._align_one(topic)
            return
        with ThreadPoolExecutor(min(_PARALLEL, len(ordered))) as pool:
            failures = list(pool.map(self._try_one, ordered))
        for failure in failures:
            if failure is not None:
                raise failure

    def align_pending(self) -> None:
        """Align every topic that has something left to do."""
        self.align(self._pending())

    def intend_to_fence(self, topics: Collection[str]) -> None:
        """Keep that these topics have to be fenced, until they are aligned the next time."""
        now = self.clock()
        with self.catalog.bookkeeping() as session:
            session.add_all(
                Withdrawal(principal=_OF_NOBODY, topic=topic, decided_at=now) for topic in topics
            )

    def _try_one(self, topic: str) -> PlatformError | None:
        try:
            self._align_one(topic)
        except PlatformError as failure:
            return failure
        return None

    def _pending(self) -> set[str]:
        with self.catalog.read() as session:
            withdrawn = session.scalars(
                select(Withdrawal.topic).where(Withdrawal.done_at.is_(None))
            )
            lacking = session.scalars(select(Access.topic).where(_lacks_acl()))
            return {*withdrawn, *(topic for topic in lacking if topic)}

    def _align_one(self, topic: str) -> None:
        with self.lock(topic):
            self._withdraw(topic)
            self._open(topic)
            self._allow(topic)

    def _withdraw(self, topic: str) -> None:
        open_ones = (Withdrawal.topic == topic, Withdrawal.done_at.is_(None))
        with self.catalog.read() as session:
            rows = session.execute(select(Withdrawal.id, Withdrawal.principal).where(*open_ones))
            pending = {row.id: row.principal for row in rows}
        if not pending:
            return
        principals = frozenset(pending.values())
        try:
            self.kafka.withdraw(topic, principals)
        except FenceNotProven:
            self._stop_writing(pending)
            raise
        with self.catalog.bookkeeping() as session:
            done = update(Withdrawal).where(Withdrawal.id.in_(pending))
            session.execute(done.values(done_at=self.clock()))
            # What was not proven stopped the topic's run, which goes on now.
            bump_generation(session)
            session.execute(
                update(Access)
                .where(Access.principal.in_(principals), Access.allowed_topic == topic)
                .values(allowed_topic=None)
            )

    def _stop_writing(self, pending: Collection[int]) -> None:
        """Nothing more is written to the topic until its fence is proven: its run stands still."""
        with self.catalog.bookkeeping() as session:
            session.execute(
                update(Withdrawal).where(Withdrawal.id.in_(pending)).values(unproven=True)
            )
            bump_generation(session)

    def _open(self, topic: str) -> None:
        with self.catalog.read() as session:
            found = session.execute(
                select(DeliveryClass.id, OutputRow.retention_ms)
                .join(OutputRow, OutputRow.object_id == DeliveryClass.output_id)
                .where(
                    DeliveryClass.topic == topic,
                    DeliveryClass.opened_at.is_(None),
                    DeliveryClass.closed_at.is_(None),
                )
            ).one_or_none()
        if found is None:
            return
        self.kafka.open_class(topic, found.retention_ms)
        with self.catalog.bookkeeping() as session:
            opened = update(DeliveryClass).where(DeliveryClass.id == found.id)
            session.execute(opened.values(opened_at=self.clock()))
            bump_generation(session)

    def _allow(self, topic: str) -> None:
        with self.catalog.read() as session:
            lacking = [
                (access.id, access.principal, access.kind)
                for access in session.scalars(
                    select(Access).where(Access.topic == topic, _lacks_acl())
                )
            ]
        if not lacking:
            return
        if readers := [principal for _, principal, kind in lacking if kind != SEND]:
            self.kafka.allow_read(topic, readers)
        if writers := [principal for _, principal, kind in lacking if kind == SEND]:
            self.kafka.allow_write(topic, writers)
        ids = [row[0] for row in lacking]
        with self.catalog.bookkeeping() as session:
            let_in = (Access.id.in_(ids), Access.topic == topic, Access.ended_at.is_(None))
            session.execute(update(Access).where(*let_in).values(allowed_topic=topic))
            for principal in session.scalars(_overtaken(topic, ids)):
                again = Withdrawal(principal=principal, topic=topic, decided_at=self.clock())
                session.add(again)


def _overtaken(topic: str, ids: Collection[int]) -> Select[str]:
    """Principals of accesses that were let in here after the topic had been taken from them.

    A service that stood still for longer than its lease does that. A withdrawal that is yet to come
    takes away what was created here; one that is done did not find it, and is decided once more.
    """
    to_come = select(Withdrawal.principal).where(
        Withdrawal.topic == topic, Withdrawal.done_at.is_(None)
    )
    elsewhere = or_(Access.topic.is_(None), Access.topic != topic, Access.ended_at.is_not(None))
    return select(Access.principal).where(
        Access.id.in_(ids), elsewhere, Access.principal.not_in(to_come)
    )


def _lacks_acl() -> ColumnElement[bool]:
    """Live accesses whose topic Kafka was not yet told to let them reach."""
    told = or_(Access.allowed_topic.is_(None), Access.allowed_topic != Access.topic)
    return and_(Access.ended_at.is_(None), Access.topic.is_not(None), told)

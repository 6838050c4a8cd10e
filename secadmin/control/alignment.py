"""Alignment: Kafka's topics and ACLs become what the catalog says, topic by topic.

Whatever happened before (a crash, Kafka away, two services at once), aligning a topic carries out
the withdrawals that were decided for it and then lets in whom the catalog lets in. It holds the
topic's lock and reads the catalog under it, so an older view never overtakes a newer one. Many
topics are aligned in groups; a group in which something fails is taken apart, topic by topic.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Protocol, TypeVar

from sqlalchemy import ColumnElement, and_, orm, select, tuple_, update

from catalog.access_kind import AccessKind
from catalog.errors import PlatformError
from catalog.models import (
    Access,
    AccessTopic,
    DeliveryClass,
    Object,
    OutputInput,
    OutputRow,
    SenderRow,
    StreamRow,
    Withdrawal,
)
from catalog.placement import Placement
from catalog.sender_state import SenderState
from catalog.store import Catalog, bump_generation
from catalog.topics import lab_topic
from secadmin.control.slices import slices
from secadmin.control.unanswered_grants import Grants
from secadmin.kafka.access import PrincipalsOf
from secadmin.kafka.fence import FenceNotProven

_K = TypeVar("_K")
_T = TypeVar("_T")
# Topics that Kafka was not yet told to let their access reach.
_LACKS_ACL = AccessTopic.allowed_at.is_(None)
TOGETHER = 16
"""How many topics are aligned in one go."""
_PARALLEL = 2
"""How many such groups are under way at once."""
TOPIC_PATIENCE = timedelta(seconds=10)
"""How long the lock of one topic is waited for."""
_PATIENCE_TOGETHER = timedelta(seconds=2)


class TopicControl(Protocol):
    """What alignment needs of Kafka: all of it for several topics at once."""

    def open_classes(self, retention_ms: Mapping[str, int]) -> None:
        """Create delivery topics and let the data plane write them, where that is not done."""

    def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        """By topic and partition, the offset that the next record will get."""

    def open_senders(self, partitions: Mapping[str, int]) -> None:
        """Create senders' topics and let the data plane read them, where that is not done."""

    def allow_read(self, principals_of: PrincipalsOf) -> bool:
        """Let the principals read the topics, each with groups of its own prefix.

        Says whether Kafka has no other copy of the request. Raises Unanswered if Kafka may still
        carry it out.
        """

    def allow_write(self, principals_of: PrincipalsOf) -> bool:
        """Let the principals write the topics. As above."""

    def withdraw(self, principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
        """Take the topics from the principals; for readers, fenced when the call returns.

        Those of them that are banned are denied their topics for good.
        """


class TopicLocks(Protocol):
    """The locks of topics, across services."""

    def __call__(self, topics: Collection[str], wait: timedelta) -> AbstractContextManager[None]:
        """Hold all of them while the block runs. Raises Unavailable if not had within `wait`."""


@dataclass(frozen=True)
class Alignment:
    """Aligns topics, some together: what a transaction or a request costs is paid once for them."""

    catalog: Catalog
    kafka: TopicControl
    lock: TopicLocks
    clock: Callable[[], datetime]
    _under_way: Counter[str] = field(default_factory=Counter, init=False)
    _noting: Lock = field(default_factory=Lock, init=False)

    def align(self, topics: Iterable[str]) -> None:
        """Align these topics. Raises the first failure when all were tried.

        That Kafka is away comes before a fence that is not proven, which is its topic's own.
        A topic that could not be aligned keeps its withdrawals; `align_pending` tries again.
        """
        ordered = sorted(set(topics))
        together = list(slices(ordered, TOGETHER))
        with self._noted(ordered):
            failures = _at_once(_PARALLEL, self._try, together)
        if failures:
            others = (error for error in failures if not isinstance(error, FenceNotProven))
            raise next(others, failures[0])

    @contextmanager
    def _noted(self, topics: Sequence[str]) -> Iterator[None]:
        """While the block runs, nobody need look for what is pending in these topics."""
        with self._noting:
            self._under_way.update(topics)
        try:
            yield
        finally:
            with self._noting:
                self._under_way.subtract(topics)
                for topic in topics:
                    if not self._under_way[topic]:
                        del self._under_way[topic]

    def _try(self, topics: Sequence[str]) -> list[PlatformError]:
        """Align the topics together; where that fails, each for itself: none holds up another."""
        alone = len(topics) == 1
        try:
            with self.lock(topics, TOPIC_PATIENCE if alone else _PATIENCE_TOGETHER):
                self._withdraw_and_open(topics)
                self._open_senders(topics)
                self._allow(topics)
            return []
        except PlatformError as failure:
            if alone:
                return [failure]
        return _at_once(TOGETHER, self._try, [[topic] for topic in topics])

    def _withdraw_and_open(self, topics: Sequence[str]) -> None:
        """Make the new topics while others are fenced: who loses one for a smaller one needs both.

        Nobody may read a new topic yet.
        """
        with ThreadPoolExecutor(1) as pool:
            opening = pool.submit(self._open, topics)
            self._withdraw(topics)
        opening.result()

    def align_pending(self) -> None:
        """Align every topic that has something left to do and is not being aligned by a call."""
        pending = self._pending()
        with self._noting:
            left = pending - self._under_way.keys()
        self.align(left)

    def _pending(self) -> set[str]:
        with self.catalog.read() as session:
            withdrawn = session.scalars(
                select(Withdrawal.topic).where(Withdrawal.done_at.is_(None))
            )
            lacking = session.scalars(select(AccessTopic.topic).where(_LACKS_ACL))
            unopened = session.scalars(select(SenderRow.topic).where(_lacks_topic()))
            return {*withdrawn, *unopened, *lacking}

    def _withdraw(self, topics: Sequence[str]) -> None:
        with self.catalog.read() as session:
            rows = session.execute(
                select(Withdrawal.id, Withdrawal.topic, Withdrawal.principal).where(
                    Withdrawal.topic.in_(topics), Withdrawal.done_at.is_(None)
                )
            ).all()
        if not rows:
            return
        # What is decided from now on has a larger id.
        decided = and_(
            Withdrawal.topic.in_(topics),
            Withdrawal.done_at.is_(None),
            Withdrawal.id <= max(row.id for row in rows),
        )
        try:
            lost = _grouped((row.topic, row.principal) for row in rows)
            self.kafka.withdraw(lost, self._grants.ban(lost))
        except FenceNotProven:
            # Of several, those whose fence is not proven are found when each is tried for itself.
            if len(topics) == 1:
                self._stop_writing(decided)
            raise
        with self.catalog.bookkeeping() as session:
            # What was given again meanwhile has lost its ACL, too.
            taken = tuple_(AccessTopic.access_id, AccessTopic.topic).in_(
                select(Access.id, Withdrawal.topic)
                .join(Withdrawal, Withdrawal.principal == Access.principal)
                .where(decided)
            )
            session.execute(
                update(AccessTopic).where(taken).values(allowed_at=None),
                execution_options={"synchronize_session": False},
            )
            session.execute(update(Withdrawal).where(decided).values(done_at=self.clock()))
            # What was not proven stopped the topic's run, which goes on now.
            bump_generation(session)

    def _stop_writing(self, decided: ColumnElement[bool]) -> None:
        """Nothing more is written to the topic until its fence is proven: its run stands still."""
        with self.catalog.bookkeeping() as session:
            session.execute(update(Withdrawal).where(decided).values(unproven=True))
            bump_generation(session)

    def _open(self, topics: Sequence[str]) -> None:
        with self.catalog.read() as session:
            found = session.execute(
                select(
                    *(DeliveryClass.id, DeliveryClass.topic, DeliveryClass.output_id),
                    *(OutputRow.retention_ms, OutputRow.placement, DeliveryClass.backfills),
                )
                .join(OutputRow, OutputRow.object_id == DeliveryClass.output_id)
                .where(
                    DeliveryClass.topic.in_(topics),
                    DeliveryClass.opened_at.is_(None),
                    DeliveryClass.closed_at.is_(None),
                )
            ).all()
        if not found:
            return
        self.kafka.open_classes({row.topic: row.retention_ms for row in found})
        # The execution of a backfill says itself where it begins.
        new = [row for row in found if not row.backfills]
        begins: Mapping[int, Mapping[str, Mapping[str, int]]] = {}
        try:
            begins = self._ends_below(row.output_id for row in new)
        except PlatformError:
            # A topic that is at fault holds up nobody's rights. But who runs apart begins there;
            # another class is then fed from when an engine sees it.
            if any(row.placement == Placement.APART for row in new):
                raise
        with self.catalog.bookkeeping() as session:
            for row in new:
                own = update(DeliveryClass).where(DeliveryClass.id == row.id)
                session.execute(own.values(starting_offsets=begins.get(row.output_id)))
            opened = update(DeliveryClass).where(DeliveryClass.id.in_([row.id for row in found]))
            # One that was closed and removed while this service stood still is removed once more.
            session.execute(opened.values(opened_at=self.clock(), removed_at=None))
            bump_generation(session)

    def _ends_below(self, outputs: Iterable[int]) -> Mapping[int, Mapping[str, Mapping[str, int]]]:
        """The ends of the lab topics that each of these outputs reads, by the output's id."""
        if not (wanted := sorted(set(outputs))):
            return {}
        with self.catalog.read() as session:
            read = (
                select(OutputInput.output_id, Object.name)
                .join(Object, Object.id == OutputInput.relation_id)
                .where(OutputInput.output_id.in_(wanted))
            )
            topics = _grouped((row.output_id, lab_topic(row.name)) for row in session.execute(read))
        ends = self.kafka.end_offsets(sorted({t for of in topics.values() for t in of}))
        return {output: {topic: ends[topic] for topic in of} for output, of in topics.items()}

    def _open_senders(self, topics: Sequence[str]) -> None:
        with self.catalog.read() as session:
            found = session.execute(
                select(SenderRow.id, SenderRow.topic, StreamRow.partitions)
                .join(StreamRow, StreamRow.object_id == SenderRow.stream_id)
                .where(SenderRow.topic.in_(topics), _lacks_topic())
            ).all()
        if not found:
            return
        self.kafka.open_senders({row.topic: row.partitions for row in found})
        with self.catalog.bookkeeping() as session:
            opened = update(SenderRow).where(SenderRow.id.in_([row.id for row in found]))
            session.execute(opened.values(opened_at=self.clock()))
            bump_generation(session)

    def _allow(self, topics: Sequence[str]) -> None:
        with self.catalog.read() as session:
            lacking = session.execute(
                select(AccessTopic.topic, Access.principal, Access.kind)
                .join(AccessTopic, AccessTopic.access_id == Access.id)
                .where(AccessTopic.topic.in_(topics), _LACKS_ACL, Access.ended_at.is_(None))
            ).all()
        if not lacking:
            return
        readers = _grouped((a.topic, a.principal) for a in lacking if a.kind != AccessKind.SEND)
        writers = _grouped((a.topic, a.principal) for a in lacking if a.kind == AccessKind.SEND)
        self._grants.carry_out(readers, self.kafka.allow_read, self._note_let_in)
        self._grants.carry_out(writers, self.kafka.allow_write, self._note_let_in)

    @property
    def _grants(self) -> Grants:
        return Grants(self.catalog, self.clock)

    def _note_let_in(self, session: orm.Session, let_in: PrincipalsOf) -> None:
        for topic, names in let_in.items():
            for some in slices(list(names)):
                own = select(Access.id).where(Access.principal.in_(some))
                row = (AccessTopic.access_id.in_(own), AccessTopic.topic == topic)
                session.execute(
                    update(AccessTopic).where(*row).values(allowed_at=self.clock()),
                    execution_options={"synchronize_session": False},
                )


def _at_once(
    most: int,
    attempt: Callable[[Sequence[str]], list[PlatformError]],
    groups: Sequence[Sequence[str]],
) -> list[PlatformError]:
    """What failed in all groups, of which at most so many are attempted at once."""
    if len(groups) <= 1:
        return [failure for group in groups for failure in attempt(group)]
    with ThreadPoolExecutor(min(most, len(groups))) as pool:
        return [failure for failures in pool.map(attempt, groups) for failure in failures]


def _grouped(pairs: Iterable[tuple[_K | None, _T]]) -> dict[_K, list[_T]]:
    found: defaultdict[_K, list[_T]] = defaultdict(list)
    for topic, value in pairs:
        if topic is not None:
            found[topic].append(value)
    return found


def _lacks_topic() -> ColumnElement[bool]:
    """Senders of live streams whose topics were not made yet."""
    live = select(Object.id).where(Object.removed_at.is_(None))
    return and_(
        SenderRow.opened_at.is_(None),
        SenderRow.state == SenderState.ACTIVE,
        SenderRow.stream_id.in_(live),
    )

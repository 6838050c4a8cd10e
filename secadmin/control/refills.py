"""Refills: a smaller class gets what its subscribers had not read in the topics that were cut.

If a right is taken from a subscription, the topics that can take too much are cut, and a class
begins for what is left (`secadmin.control.held_topics`). Its run feeds it a while later. Until then
the run goes on to write the topic that was cut, and that topic still has what the subscriber had
not read. So a thread here copies from it: what comes after the last record that the subscriber has
read, as far as the new class takes it by its label, until the class has been fed for a while.

What is copied is decided by the rule of the run (`catalog.delivery`), and only while the run itself
may write the class's topic. So a refill never delivers what the run would not deliver.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from sqlalchemy import ColumnElement, and_, delete, exists, func, orm, select

from catalog.delivery import Delivery
from catalog.error_places import places_of
from catalog.errors import PlatformError, Unavailable
from catalog.label import Label
from catalog.models import Access, AccessTopic, DeliveryClass, Object, OutputRow, Refill, Withdrawal
from catalog.wanted import what_classes_take
from secadmin.control.platform import Platform

log = logging.getLogger(__name__)
BEHIND = timedelta(seconds=30)
"""A reader that commits no offsets may be this far behind when its topic is cut."""
TAIL = timedelta(seconds=30)
"""When a class has been fed for so long, its run has delivered all that it had read before."""
# A call says itself that it has opened a class. So this is for what is left from before.
_LOOK_S, _AGAIN_S = 1.0, 2.0
_TURNS, _PAUSE_S = 10, 0.05
# Other services wait for so long. No topic has this name.
_HELD_S, _LOCK = 5.0, "refills/"


@dataclass(frozen=True, slots=True)
class Cut:
    """A topic that was cut: since when, and the newest of the withdrawals by which it was."""

    since: datetime
    newest: int | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A class that is refilled: its topic, its sources, and the rule for what it takes.

    `fed` says that its run has fed it for long enough. Then the refill ends when all is copied that
    is in the sources.
    """

    topic: str
    sources: Mapping[str, Cut]
    delivery: Delivery
    categories: Label
    fed: bool

    def takes(self, label: Label) -> bool:
        """Whether the class takes a result with this label."""
        return self.delivery.takes(label, self.categories)


def due_refills(session: orm.Session, now: datetime) -> Mapping[int, Due]:
    """The refills that can go on now, by the id of the class, the oldest first."""
    rows = session.scalars(select(Refill).order_by(Refill.decided_at, Refill.class_id)).all()
    sources: defaultdict[int, dict[str, Cut]] = defaultdict(dict)
    newest = _newest_withdrawals(session)
    for row in rows:
        cut = Cut(row.decided_at, newest.get((row.class_id, row.source)))
        sources[row.class_id][row.source] = cut
    rules = what_classes_take(session, sources.keys()) if sources else {}
    named = select(DeliveryClass.id, DeliveryClass.topic).where(DeliveryClass.id.in_([*sources]))
    topics = {row.id: row.topic for row in session.execute(named)}
    fed = _fed_since(session, [*sources])
    return {
        class_id: Due(topics[class_id], of, *rules[class_id], fed.get(class_id, now) <= now - TAIL)
        for class_id, of in sources.items()
        if class_id in rules
    }


def _newest_withdrawals(session: orm.Session) -> Mapping[tuple[int, str], int]:
    """(class, source) -> the newest withdrawal of a subscription that has the class now."""
    found = session.execute(
        select(Refill.class_id, Refill.source, func.max(Withdrawal.id))
        .select_from(Refill)
        .join(Withdrawal, _cut_for_it())
        .join(Access, Access.principal == Withdrawal.principal)
        .join(AccessTopic, _has_the_class())
        .group_by(Refill.class_id, Refill.source)
    )
    return {(class_id, source): newest for class_id, source, newest in found}


def readers_of(session: orm.Session, class_id: int) -> Mapping[str, frozenset[str]]:
    """source -> the principals from which it was cut, and whose subscription has the class now."""
    found = session.execute(
        select(Refill.source, Withdrawal.principal)
        .select_from(Refill)
        .join(Withdrawal, _cut_for_it())
        .join(Access, Access.principal == Withdrawal.principal)
        .join(AccessTopic, _has_the_class())
        .where(Refill.class_id == class_id)
    )
    readers: defaultdict[str, set[str]] = defaultdict(set)
    for source, principal in found:
        readers[source].add(principal)
    return {source: frozenset(each) for source, each in readers.items()}


def _cut_for_it() -> ColumnElement[bool]:
    return and_(Withdrawal.topic == Refill.source, Withdrawal.decided_at >= Refill.decided_at)


def _has_the_class() -> ColumnElement[bool]:
    return and_(AccessTopic.access_id == Access.id, AccessTopic.class_id == Refill.class_id)


def _fed_since(session: orm.Session, class_ids: Sequence[int]) -> Mapping[int, datetime]:
    own = (AccessTopic.class_id.in_(class_ids), AccessTopic.fed_at.is_not(None))
    fed = select(AccessTopic.class_id, func.min(AccessTopic.fed_at)).where(*own)
    rows = session.execute(fed.group_by(AccessTopic.class_id))
    return {id_: since for id_, since in rows if id_ is not None and since is not None}


Key = tuple[int, str]


def needless(session: orm.Session, now: datetime) -> frozenset[Key]:
    """The refills (class, source) that nobody needs.

    Either no subscription has the class any more, or it is closed, or its output was removed. Or
    what was to be copied is so old that Kafka has deleted it.
    """
    held = exists().where(AccessTopic.class_id == Refill.class_id)
    found = session.execute(
        select(Refill, DeliveryClass.closed_at, Object.removed_at, OutputRow.retention_ms, held)
        .select_from(Refill)
        .join(DeliveryClass, DeliveryClass.id == Refill.class_id)
        .join(Object, Object.id == DeliveryClass.output_id)
        .join(OutputRow, OutputRow.object_id == DeliveryClass.output_id)
    )
    return frozenset(
        (row.class_id, row.source)
        for row, closed_at, removed_at, kept_ms, is_held in found
        if closed_at is not None
        or removed_at is not None
        or not is_held
        or row.decided_at < now - timedelta(milliseconds=kept_ms)
    )


class Topics(Protocol):
    """What refills need of Kafka (`secadmin.kafka.refill_topics`)."""

    def starts(
        self, moved: Mapping[str, Collection[str]], before: Mapping[str, datetime]
    ) -> dict[str, int]:
        """source -> the first offset that one of its former readers may not have read."""

    def begin(self, target: str, starts: Mapping[str, int]) -> None:
        """Begin to copy to the target from the sources, at these offsets."""

    def end(self, target: str) -> None:
        """Copy nothing more to the target."""

    def copy(self, takes: Mapping[str, Callable[[Label], bool]]) -> Mapping[str, PlatformError]:
        """Copy those of the next results that the targets take; the failures by target."""

    def is_through(self, target: str) -> bool:
        """Whether all is copied that is in the target's sources now."""

    def close(self) -> None:
        """Close the connections."""


@dataclass
class Refills:
    """Does the refills that are due. Not for several threads.

    `pause` waits, and says whether it is time to end. `now_s` is a clock that never goes back.
    """

    platform: Platform
    topics: Topics
    pause: Callable[[float], object] = time.sleep
    now_s: Callable[[], float] = time.monotonic
    # The classes that are refilled, and those that failed, which are tried again after this time.
    _begun: dict[int, Due] = field(default_factory=dict)
    _failed: dict[int, float] = field(default_factory=dict)

    def work(self) -> bool:
        """Copy for some seconds. False if nothing is to be refilled, or another service does it."""
        self.platform.refills_due.clear()
        with self.platform.catalog.read() as session:
            if session.scalar(select(Refill.class_id).limit(1)) is None:
                self._end_all()
                return False
        try:
            with self.platform.alignment.lock([_LOCK], timedelta(0)):
                self._go_on(self.now_s() + _HELD_S)
        except Unavailable:
            # Another service does it. What it copies is found in the class's topic.
            self._end_all()
            return False
        return True

    def _go_on(self, until: float) -> None:
        try:
            while self.now_s() < until and self._turn():
                pass
        except PlatformError as failure:
            log.warning("refills wait: %s", failure)
            self._end_all()
            self.pause(_AGAIN_S)

    def _turn(self) -> bool:
        """Look what is due, and copy it for half a second. False if there is nothing.

        It is shorter if a call may have opened another class that is to be refilled.
        """
        self.platform.refills_due.clear()
        now = self.platform.clock()
        with self.platform.catalog.read() as session:
            dropped, due = needless(session, now), due_refills(session, now)
        self._drop(dropped)
        self._failed = {id_: until for id_, until in self._failed.items() if until > self.now_s()}
        for class_id in [each for each in self._begun if each not in due]:
            self._end(class_id)
        for class_id, each in due.items():
            self._try(class_id, each, self._begin)
        for _ in range(_TURNS):
            rules = {each.topic: each.takes for each in self._begun.values()}
            failures = self.topics.copy(rules)
            for class_id in [i for i, each in self._begun.items() if each.topic in failures]:
                self._fail(class_id, failures[self._begun[class_id].topic])
            if self.pause(_PAUSE_S):
                return False
            if self.platform.refills_due.is_set():
                break
        for class_id in [i for i, each in self._begun.items() if each.fed]:
            self._try(class_id, due[class_id], self._finish)
        return bool(due)

    def _try(self, class_id: int, due: Due, step: Callable[[int, Due], None]) -> None:
        """Do a step for one class. If it fails, it is tried again later; no other class waits."""
        if class_id in self._failed:
            return
        try:
            step(class_id, due)
        except PlatformError as failure:
            self._fail(class_id, failure)

    def _fail(self, class_id: int, failure: PlatformError) -> None:
        log.warning("%s", failure)
        self._end(class_id)
        self._failed[class_id] = self.now_s() + _AGAIN_S

    def _begin(self, class_id: int, due: Due) -> None:
        """Begin, or begin anew if a topic was cut for the class once more."""
        begun = self._begun.get(class_id)
        if begun is None or begun.sources != due.sources:
            with self.platform.catalog.read() as session:
                readers = readers_of(session, class_id)
            moved = {source: readers.get(source, frozenset()) for source in due.sources}
            before = {source: cut.since - BEHIND for source, cut in due.sources.items()}
            self.topics.begin(due.topic, self.topics.starts(moved, before))
        self._begun[class_id] = due

    def _finish(self, class_id: int, due: Due) -> None:
        if self.topics.is_through(due.topic):
            self._drop({(class_id, source) for source in due.sources})
            self._end(class_id)
            log.info("%s is refilled", due.topic)

    def _end(self, class_id: int) -> None:
        begun = self._begun.pop(class_id, None)
        if begun is not None:
            self.topics.end(begun.topic)

    def _end_all(self) -> None:
        for class_id in list(self._begun):
            self._end(class_id)

    def _drop(self, keys: Collection[Key]) -> None:
        if not keys:
            return
        with self.platform.catalog.bookkeeping() as session:
            for class_id, source in sorted(keys):
                own = (Refill.class_id == class_id, Refill.source == source)
                session.execute(delete(Refill).where(*own))


def refill(platform: Platform, connect: Callable[[], Topics], stop: threading.Event) -> None:
    """Refill classes until it is time to stop. `connect` makes the connections."""
    while not stop.is_set():
        try:
            topics = connect()
        except (PlatformError, OSError) as failure:
            log.warning("refills wait: %s", failure)
            stop.wait(_AGAIN_S)
            continue
        try:
            _refill(Refills(platform, topics, stop.wait), stop)
        except Exception as error:
            # The thread must outlive what nobody foresaw, or subscribers would miss results.
            log.error("refills wait: %s", places_of(error))
            stop.wait(_AGAIN_S)
        finally:
            topics.close()


def _refill(refills: Refills, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            worked = refills.work()
        except PlatformError as failure:
            log.warning("refills wait: %s", failure)
            worked = False
        if not worked:
            refills.platform.refills_due.wait(_LOOK_S)

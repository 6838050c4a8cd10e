"""Upkeep: what happens by time and not by a call.

Expired sessions end; what a call could not tell Kafka is told; classes without a subscription are
closed; topics of removed objects are deleted; and once a minute what Kafka allows is compared with
what the catalog allows.

If there are several services, each of them ends sessions and tells Kafka what is left to tell:
nobody may keep a right for longer because one service is dead. All else is done by the one that is
on *duty*. It has the duty for some seconds. Then whoever is first has it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import select, update

from catalog.error_places import places_of
from catalog.errors import PlatformError, Unavailable
from catalog.models import Access, DeliveryClass, Object, SenderRow, Withdrawal
from catalog.sender_state import SenderState
from catalog.trials import give_up, has_superfluous
from catalog.wanted import is_in_step, used_topics
from secadmin.control import backfills, logins
from secadmin.control.alignment import TOPIC_PATIENCE
from secadmin.control.fed_topics import cut_replaced, note_fed
from secadmin.control.floors import raise_floors
from secadmin.control.grown_streams import follow_partitions
from secadmin.control.new_merging import merge_changed
from secadmin.control.open_classes import close_idle, delete_closed, give_level_engines
from secadmin.control.platform import Platform
from secadmin.control.settlement import is_access_principal
from secadmin.control.shared_executions import move_outputs
from secadmin.control.unanswered_grants import Grants
from secadmin.control.unknown_acls import UnknownAcls
from secadmin.control.wanted_access import topics_of, wanted_state
from secadmin.kafka.fence import FenceNotProven

log = logging.getLogger(__name__)
TICK_S, SLOW_TICK_S = 0.5, 1.0
# No topic has this name.
_DUTY = "upkeep/"
RECONCILE_TICKS = 120
OFTEN_TICKS = 3
DUTY_TICKS = 20
"""The duty is given back after so many ticks, so that a service that hangs does not keep it."""
SELDOM_TICKS = 20
RETIRED_A_TICK = 50
"""Kafka takes about a tenth of a second for each."""
MANY_CLOSED = 10_000
CLOSED_TEXT = (
    "Kafka holds %d users of ended accesses, which cannot log in: once each of its nodes has a "
    "snapshot of the metadata, set removes_users = true in [kafka], and they are removed"
)


def start_up(platform: Platform) -> None:
    """Before serving: carry out what an earlier service decided and did not finish.

    Raises Unavailable while Kafka is away: a service that cannot revoke must not serve. A fence
    that cannot be proven is no such reason: its run stands still, whoever serves, and the upkeep
    goes on trying.
    """
    platform.kafka.restore_leftovers()
    steps: tuple[Callable[[], None], ...] = (
        lambda: logins.end_leftover_accesses(platform),
        lambda: logins.end_expired(platform),
        platform.alignment.align_pending,
        lambda: reconcile(platform),
    )
    for step in steps:
        try:
            step()
        except FenceNotProven as failure:
            log.warning("serving without it: %s", failure)


def reconcile(platform: Platform) -> None:
    """Take away, fenced, what Kafka allows and the catalog does not; add what is missing."""
    unknown = UnknownAcls(platform.catalog, platform.alignment.lock)
    grants = Grants(platform.catalog, platform.clock)
    platform.kafka.reconcile(lambda: wanted_state(platform.catalog), unknown, grants)
    # With the locks given back: it takes them, too, and fences what was taken away.
    platform.alignment.align_pending()


@dataclass
class Upkeep:
    """The threads that keep up; `close` ends them.

    What ends by time has a thread of its own, and so have queries that begin anew: they must not
    wait for whatever else takes long.
    """

    platform: Platform
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _orphans: set[str] = field(default_factory=set)
    _duty: ExitStack = field(default_factory=ExitStack)
    # How many ticks of the duty are left; 0 if another service has it.
    _left: int = 0
    _has_common_topics: bool = False

    def start(self) -> None:
        """Start the threads."""
        for name, tick, every_s in (
            ("expiry", self._end_sessions, SLOW_TICK_S),
            ("upkeep", self._keep_up, TICK_S),
            ("merging", self._merge_changed, SLOW_TICK_S),
        ):
            own = (tick, every_s)
            thread = threading.Thread(target=self._run, args=own, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        """End the threads and wait for them."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._try("give the duty back", self._duty.close)

    def _run(self, tick: Callable[[int], None], every_s: float) -> None:
        ticks = 0
        while not self._stop.wait(every_s):
            ticks += 1
            tick(ticks)

    def _end_sessions(self, _ticks: int) -> None:
        self._try("watch the engines", self._watch_engines)
        self._try("end sessions", lambda: logins.end_expired(self.platform))
        self._try("end accesses", lambda: logins.end_leftover_accesses(self.platform))

    def _merge_changed(self, _ticks: int) -> None:
        self._try("merge queries anew", lambda: merge_changed(self.platform))

    def _watch_engines(self) -> None:
        with self.platform.catalog.read() as session:
            self.platform.pulse.living(session)

    def _keep_up(self, ticks: int) -> None:
        self._try("align Kafka", self.platform.alignment.align_pending)
        self._try("note what is fed", lambda: note_fed(self.platform))
        if self._on_duty():
            self._tidy(ticks)

    def _on_duty(self) -> bool:
        """Whether this service does what one service alone does."""
        # Another service may have the duty, or may have taken it from one that stood still. Each
        # step bears that two services do it.
        with suppress(Unavailable):
            if not self._left:
                mine = self.platform.alignment.lock([_DUTY], timedelta(0))
                self._duty.enter_context(mine)
                self._left = DUTY_TICKS
            else:
                self._left -= 1
                if not self._left:
                    # Until the next tick another service may take it.
                    self._duty.close()
        return self._left > 0

    def _tidy(self, ticks: int) -> None:
        if not self._has_common_topics:
            self._try("make the common topics", self._make_common_topics)
        self._try("cut replaced topics", lambda: cut_replaced(self.platform))
        if ticks % OFTEN_TICKS == 0:
            self._try("retire principals", lambda: retire_ended(self.platform))
            self._try("raise floors", lambda: raise_floors(self.platform))
            self._try("remove topics", lambda: delete_removed(self.platform))
            self._try("remove topics of classes", lambda: delete_closed(self.platform))
            self._try("find new engines", lambda: find_new_engines(self.platform))
            self._try("look after backfills", lambda: backfills.look_after(self.platform))
            self._try("give engines to levels", lambda: give_level_engines(self.platform))
            self._try("remove drained topics", lambda: delete_drained(self.platform))
        if ticks % SELDOM_TICKS == 0:
            self._try("move outputs", lambda: move_outputs(self.platform))
            self._try("close idle classes", lambda: close_idle(self.platform))
            self._try("follow partitions", lambda: follow_partitions(self.platform))
        if ticks % RECONCILE_TICKS == 0:
            self._try("reconcile", self._reconcile)

    def _make_common_topics(self) -> None:
        # Engines read one of them to warm up, before there is a stream or a query.
        self.platform.kafka.create_common_topics()
        self._has_common_topics = True

    def _reconcile(self) -> None:
        reconcile(self.platform)
        self._sweep_principals()
        if replenished := self.platform.kafka.replenish():
            log.info("%d partitions get replicas again", replenished)

    def _sweep_principals(self) -> None:
        """Delete principals that no access has, seen twice so that none is just being made."""
        found = {name for name in self.platform.kafka.principals() if is_access_principal(name)}
        orphans = found - wanted_state(self.platform.catalog).principals
        sweep = sorted(orphans & self._orphans)[:RETIRED_A_TICK]
        for name in sweep:
            self.platform.kafka.delete_principal(name)
        self._orphans = orphans.difference(sweep)
        if (closed := self.platform.kafka.closed_principals()) >= MANY_CLOSED:
            log.warning(CLOSED_TEXT, closed)

    def _try(self, what: str, step: Callable[[], None]) -> None:
        """Do a step; a failed one is logged and comes again with the next tick."""
        try:
            step()
        except PlatformError as failure:
            log.warning("upkeep: %s: %s", what, failure)
        except Exception as error:
            # A thread must outlive what nobody foresaw, or sessions would not expire any more.
            log.error("upkeep: %s failed: %s", what, places_of(error))


def retire_ended(platform: Platform) -> None:
    """Delete the Kafka users of ended accesses, once what they reached is taken away and fenced.

    Some at a time, so that what waits behind them waits for seconds. What is still connected as one
    of them keeps its connection, and can do nothing with it.
    """
    pending = select(Withdrawal.principal).where(Withdrawal.done_at.is_(None))
    over = (Access.ended_at.is_not(None), Access.retired_at.is_(None))
    with platform.catalog.read() as session:
        ended = select(Access.principal).where(*over, Access.principal.not_in(pending))
        principals = list(session.scalars(ended.order_by(Access.id).limit(RETIRED_A_TICK)))
    for principal in principals:
        platform.kafka.delete_principal(principal)
        with platform.catalog.bookkeeping() as session:
            retired = update(Access).where(Access.principal == principal)
            session.execute(retired.values(retired_at=platform.clock()))


def find_new_engines(platform: Platform) -> None:
    """Give what was assigned to engines that the deployment has no more to those that it has."""
    engines = platform.spaces.engines
    with platform.catalog.read() as session:
        if not has_superfluous(session, engines):
            return
    with platform.catalog.bookkeeping() as session:
        gone, homes = platform.pulse.gone(), platform.spaces.homes()
        give_up(session, engines, gone, platform.limits, homes)


def delete_removed(platform: Platform) -> None:
    """Delete the topics of removed streams and outputs that no run uses any more.

    Only then is an object gone and its name free. One whose run does not end holds up no other.
    Raises the first failure when all were tried.
    """
    leaving = select(Object).where(Object.removed_at.is_not(None), Object.gone_at.is_(None))
    with platform.catalog.read() as session:
        removed = list(session.scalars(leaving))
        # In one snapshot: what a run uses is told before its engine is in step.
        if not removed or not is_in_step(session):
            return
        used = used_topics(session)
        topics = {obj.id: topics_of(session, obj) for obj in removed}
        there = (DeliveryClass.output_id.in_(topics), DeliveryClass.removed_at.is_(None))
        for delivery_class in session.scalars(select(DeliveryClass).where(*there)):
            topics[delivery_class.output_id].append(delivery_class.topic)
    failures: list[PlatformError] = []
    for object_id, names in topics.items():
        if used.intersection(names):
            continue
        try:
            _delete(platform, object_id, names)
        except PlatformError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def _delete(platform: Platform, object_id: int, topics: Sequence[str]) -> None:
    """Delete the object's topics, unless another service has: the name may have a new owner."""
    left = (Object.id == object_id, Object.gone_at.is_(None))
    with platform.alignment.lock(topics, TOPIC_PATIENCE):
        with platform.catalog.read() as session:
            if session.scalar(select(Object.id).where(*left)) is None:
                return
        platform.kafka.delete_topics(topics)
        with platform.catalog.bookkeeping() as session:
            session.execute(update(Object).where(*left).values(gone_at=platform.clock()))
            senders = update(SenderRow).where(SenderRow.stream_id == object_id)
            now = {"state": SenderState.GONE, "removed_at": platform.clock()}
            session.execute(senders.where(SenderRow.removed_at.is_(None)).values(now))
            classes = update(DeliveryClass).where(DeliveryClass.output_id == object_id)
            there = DeliveryClass.removed_at.is_(None)
            session.execute(classes.where(there).values(removed_at=platform.clock()))


def delete_drained(platform: Platform) -> None:
    """Delete the topics of senders of which ingest has taken all, once no run uses them.

    Some at a time. Raises the first failure when all were tried.
    """
    drained = (SenderRow.state == SenderState.GONE, SenderRow.removed_at.is_(None))
    with platform.catalog.read() as session:
        rows = session.scalars(select(SenderRow.topic).where(*drained).limit(RETIRED_A_TICK))
        topics = list(rows)
        # In one snapshot: what a run uses is told before the runner is in step.
        if not topics or not is_in_step(session):
            return
        used = used_topics(session)
    failures: list[PlatformError] = []
    for topic in topics:
        if topic in used:
            continue
        try:
            with platform.alignment.lock([topic], TOPIC_PATIENCE):
                platform.kafka.delete_topics([topic])
                with platform.catalog.bookkeeping() as session:
                    deleted = update(SenderRow).where(SenderRow.topic == topic, *drained)
                    session.execute(deleted.values(removed_at=platform.clock()))
        except PlatformError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]

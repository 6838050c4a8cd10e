"""The topics of an access: what a change gives to it and takes from it, in its transaction."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import bindparam, exists, orm, select

from catalog.clearance import Clearance
from catalog.delivery import Delivery
from catalog.delivery_classes import delivery_of, shares_results
from catalog.label import Label
from catalog.models import Access, AccessTopic, DeliveryClass, Object, Refill, Withdrawal
from catalog.topics import out_topic
from secadmin.control.held_topics import Held, next_step
from secadmin.control.unanswered_grants import Pair, bans_of, is_banned

_OPEN_CLASSES = select(DeliveryClass).where(
    DeliveryClass.output_id == bindparam("output"),
    DeliveryClass.closed_at.is_(None),
    DeliveryClass.backfills.is_(False),
)


@dataclass
class AccessTopics:
    """Changes the topics of accesses; `told` collects those that Kafka must be told about.

    `opened` collects the ids of the outputs that a class was opened for.
    """

    session: orm.Session
    now: datetime
    told: set[str]
    opened: set[int]
    _classes: dict[tuple[int, Delivery], list[DeliveryClass]] = field(default_factory=dict)
    _bans: dict[int, frozenset[Pair]] = field(default_factory=dict)
    _fed: dict[int, bool] = field(default_factory=dict)
    _shared: dict[int, bool] = field(default_factory=dict)
    _refilled: set[tuple[int, str]] = field(default_factory=set)

    def reach(self, access: Access, topic: str | None) -> None:
        """Let the access reach this topic alone, or nothing.

        One that is banned gets no other topic: a new access must take its place.
        """
        for row in list(access.topics):
            if row.topic != topic:
                self._cut(access, row)
        if topic is None or access.topics or is_banned(self.session, access.principal):
            return
        self._add(access, topic, None)

    def deliver(
        self,
        access: Access,
        output: Object,
        rights: Delivery,
        grows_by_difference: Callable[[], bool],
        *,
        opens: bool,
    ) -> None:
        """Let a subscription reach what delivers exactly what these rights cover.

        Unless it `opens` classes, the subscription keeps what it has of that, and gets nothing.
        """
        self._cut_backfills(access, rights)
        rows = {row.topic: row for row in access.topics if not _is_backfill(row)}
        step = next_step([_held(row) for row in rows.values()], rights, grows_by_difference)
        for topic, row in rows.items():
            row.leaving = topic in step.leave
            if topic in step.cut:
                self._cut(access, row)
        if step.add is not None and opens:
            found = self._class(access, output, step.add)
            self._refill(found, [rows[topic] for topic in step.cut])
            self._add(access, found.topic, found)

    def backfill(self, access: Access, output: Object, rights: Delivery) -> DeliveryClass:
        """Give a subscription one more topic, for older results.

        No other subscription shares it. That it is fed is nothing to wait for.
        """
        made = self._new_class(output, rights, backfills=True)
        access.topics.append(
            AccessTopic(topic=made.topic, delivery_class=made, leaving=False, fed_at=self.now)
        )
        self.told.add(made.topic)
        return made

    def _cut_backfills(self, access: Access, rights: Delivery) -> None:
        """Cut the topics of backfills that hold what the rights do not cover.

        They are no part of the chain: they hold older results, and nothing takes their place.
        """
        for row in [row for row in access.topics if _is_backfill(row)]:
            held = _held(row)
            if held.closed or not held.delivery.within(rights):
                self._cut(access, row)

    def cut_leaving(self, access: Access) -> None:
        """Take from the access what others of its topics have taken the place of."""
        for row in [row for row in access.topics if row.leaving]:
            self._cut(access, row)

    def _cut(self, access: Access, row: AccessTopic) -> None:
        lost = Withdrawal(principal=access.principal, topic=row.topic, decided_at=self.now)
        self.session.add(lost)
        self.told.add(row.topic)
        if row.delivery_class is not None and _is_backfill(row):
            # Nobody else has it.
            row.delivery_class.closed_at = row.delivery_class.closed_at or self.now
        access.topics.remove(row)

    def _add(self, access: Access, topic: str, of: DeliveryClass | None) -> None:
        access.topics.append(AccessTopic(topic=topic, delivery_class=of, leaving=False))
        self.told.add(topic)

    def _refill(self, into: DeliveryClass, cut: Sequence[AccessTopic]) -> None:
        """Note that the class lacks what was not read yet of the topics that were cut for it.

        A class that is fed has that already, for its other subscriptions. If a topic that was cut
        is being refilled itself, its sources are sources here, too. If each class has results of
        its own, those of another class would reveal what they do not hold.
        """
        sources = [each for row in cut if (each := row.delivery_class) is not None]
        if not sources or self._is_fed(into) or not self._is_shared(into.output_id):
            return
        for source in sources:
            if (into.id, source.topic) not in self._refilled:
                self._note_refill(into, source.topic, self.now)
                own = select(Refill).where(Refill.class_id == source.id)
                for pending in self.session.scalars(own).all():
                    self._note_refill(into, pending.source, pending.decided_at)

    def _note_refill(self, into: DeliveryClass, source: str, decided_at: datetime) -> None:
        key = into.id, source
        if key not in self._refilled and self.session.get(Refill, key) is None:
            self.session.add(Refill(class_id=into.id, source=source, decided_at=decided_at))
        self._refilled.add(key)

    def _is_shared(self, output_id: int) -> bool:
        if output_id not in self._shared:
            self._shared[output_id] = shares_results(self.session, output_id)
        return self._shared[output_id]

    def _is_fed(self, of: DeliveryClass) -> bool:
        """Whether a run has fed the class for a subscription that it has."""
        if of.id not in self._fed:
            fed = exists().where(AccessTopic.class_id == of.id, AccessTopic.fed_at.is_not(None))
            self._fed[of.id] = bool(self.session.scalar(select(fed)))
        return self._fed[of.id]

    def _class(self, access: Access, output: Object, delivery: Delivery) -> DeliveryClass:
        """The output's open class that delivers this, which all subscriptions share.

        A subscription that is banned from its topic gets another one, which delivers the same.
        """
        key = output.id, delivery
        if key not in self._classes:
            rows = self.session.scalars(_OPEN_CLASSES, {"output": output.id})
            self._classes[key] = [row for row in rows if delivery_of(row) == delivery]
        if output.id not in self._bans:
            self._bans[output.id] = bans_of(self.session, output.id)
        for row in self._classes[key]:
            if (access.principal, row.topic) not in self._bans[output.id]:
                return row
        made = self._new_class(output, delivery)
        self._classes[key].append(made)
        return made

    def _new_class(
        self, output: Object, delivery: Delivery, *, backfills: bool = False
    ) -> DeliveryClass:
        name = secrets.token_hex(8)
        beyond = delivery.beyond
        made = DeliveryClass(
            output_id=output.id,
            name=name,
            topic=out_topic(output.name, name),
            clearance=Label(delivery.clearance.bits).to_wire(),
            beyond=None if beyond is None else Label(beyond.bits).to_wire(),
            weak=delivery.weak,
            ways=[Label(way.bits).to_wire() for way in delivery.ways] or None,
            backfills=backfills,
        )
        self.session.add(made)
        self.session.flush()
        self.opened.add(output.id)
        return made


def _is_backfill(row: AccessTopic) -> bool:
    return row.delivery_class is not None and row.delivery_class.backfills


def _held(row: AccessTopic) -> Held:
    found = row.delivery_class
    delivery = delivery_of(found) if found is not None else None
    if found is None or delivery is None:
        # Nobody can say what it holds: it is as good as closed.
        return Held(row.topic, Delivery(Clearance()), closed=True)
    return Held(row.topic, delivery, found.closed_at is not None, row.leaving)

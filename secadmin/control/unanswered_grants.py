"""Grants that Kafka has not answered: what is kept of them, and the bans that follow from them.

A broker that hangs may have the request to create an ACL, and carry it out whenever it goes on. No
request that comes later can take it back: Kafka's log of changes has an order, and this request is
not in it yet. So whoever takes the right must know of the request, and bans the principal: for
Kafka a denial goes before all that allows, also before what comes later. The platform deletes no
ban, so no late deletion can hit one either.

Each request is noted before it is sent. The note goes with the answer. So a service that is killed
in between, or stands still, leaves the note behind.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, delete, exists, insert, orm, select, update

from catalog.errors import Unavailable
from catalog.models import Access, AccessTopic, DeliveryClass, UnansweredGrant
from catalog.store import Catalog
from secadmin.control.slices import slices
from secadmin.kafka.access import PrincipalsOf
from secadmin.kafka.wire.connections import Unanswered

_TOKEN_BYTES = 16
Pair = tuple[str, str]
"""A principal and a topic."""


def _note_nothing(_session: orm.Session, _created: PrincipalsOf) -> None:
    pass


@dataclass(frozen=True)
class Grants:
    """Carries grants out in Kafka. The caller holds the locks of the topics."""

    catalog: Catalog
    clock: Callable[[], datetime]

    def carry_out(
        self,
        principals_of: PrincipalsOf,
        create: Callable[[PrincipalsOf], bool],
        note: Callable[[orm.Session, PrincipalsOf], None] = _note_nothing,
    ) -> None:
        """See `secadmin.kafka.access.Granting`. Whom no access belongs to is always wanted.

        `note` changes the catalog in the transaction that knows the answer.
        """
        if not principals_of:
            return
        request = secrets.token_hex(_TOKEN_BYTES)
        with self.catalog.bookkeeping() as session:
            wanted = self._ask(session, request, principals_of)
        if not wanted:
            return
        try:
            is_settled = create(wanted)
        except Unavailable as failure:
            with self.catalog.bookkeeping() as session:
                _end(session, request, settled=not isinstance(failure, Unanswered))
            raise
        with self.catalog.bookkeeping() as session:
            _end(session, request, settled=is_settled)
            note(session, wanted)

    def ban(self, principals_of: PrincipalsOf) -> PrincipalsOf:
        """Whom of those who lose these topics Kafka must be told to deny them for good.

        They never get the topics again. Whom a topic was given again meanwhile keeps it.
        """
        with self.catalog.read() as session:
            if not _unanswered(session, principals_of):
                return {}
        with self.catalog.bookkeeping() as session:
            rows = _unanswered(session, principals_of)
            held = _held(session, [(row.principal, row.topic) for row in rows])
            found: defaultdict[str, set[str]] = defaultdict(set)
            for row in rows:
                if (row.principal, row.topic) not in held:
                    row.banned_at = row.banned_at or self.clock()
                    found[row.topic].add(row.principal)
        return found

    def _ask(
        self, session: orm.Session, request: str, principals_of: PrincipalsOf
    ) -> Mapping[str, Collection[str]]:
        """Note that Kafka is asked for what is still wanted, and give this."""
        pairs = [(name, topic) for topic, names in principals_of.items() for name in names]
        held, old = _held(session, pairs), _unanswered(session, principals_of)
        banned = {(row.principal, row.topic) for row in old if row.banned_at is not None}
        # One note of a pair that stays is enough.
        lost = {(row.principal, row.topic) for row in old if row.lost}
        accesses = _principals(session, pairs)
        wanted = [p for p in pairs if p[0] not in accesses or (p in held and p not in banned)]
        rows = [
            {
                "request": request,
                "principal": principal,
                "topic": topic,
                "asked_at": self.clock(),
                "lost": False,
            }
            for principal, topic in wanted
            if principal in accesses and (principal, topic) not in lost
        ]
        if rows:
            session.execute(insert(UnansweredGrant), rows)
        found: defaultdict[str, list[str]] = defaultdict(list)
        for principal, topic in wanted:
            found[topic].append(principal)
        return found


def is_banned(session: orm.Session, principal: str) -> bool:
    """Whether the principal is banned from any topic."""
    own = UnansweredGrant.principal == principal
    return bool(session.scalar(select(exists().where(own, UnansweredGrant.banned_at.is_not(None)))))


def bans_of(session: orm.Session, output_id: int) -> frozenset[Pair]:
    """Who is banned from which topics of the output's open classes."""
    found = (
        select(UnansweredGrant.principal, UnansweredGrant.topic)
        .join(DeliveryClass, DeliveryClass.topic == UnansweredGrant.topic)
        .where(DeliveryClass.output_id == output_id, DeliveryClass.closed_at.is_(None))
        .where(UnansweredGrant.banned_at.is_not(None))
    )
    return frozenset((row.principal, row.topic) for row in session.execute(found))


def _end(session: orm.Session, request: str, *, settled: bool) -> None:
    own = UnansweredGrant.request == request
    if settled:
        # A ban stays: this service stood still, and another one has taken the right.
        done = delete(UnansweredGrant).where(own, UnansweredGrant.banned_at.is_(None))
        session.execute(done, execution_options={"synchronize_session": False})
    else:
        session.execute(update(UnansweredGrant).where(own).values(lost=True))


def _unanswered(session: orm.Session, principals_of: PrincipalsOf) -> list[UnansweredGrant]:
    topics = sorted(principals_of)
    rows = session.scalars(select(UnansweredGrant).where(UnansweredGrant.topic.in_(topics)))
    return [row for row in rows if row.principal in principals_of[row.topic]]


def _held(session: orm.Session, pairs: Collection[Pair]) -> set[Pair]:
    """Which of the pairs accesses have now."""
    names, topics = sorted({name for name, _ in pairs}), sorted({topic for _, topic in pairs})
    found: set[Pair] = set()
    for some in slices(names):
        held = (
            select(Access.principal, AccessTopic.topic)
            .join(AccessTopic, AccessTopic.access_id == Access.id)
            .where(Access.ended_at.is_(None), Access.principal.in_(some))
            .where(AccessTopic.topic.in_(topics))
        )
        found.update((row.principal, row.topic) for row in session.execute(held))
    return found


def _principals(session: orm.Session, pairs: Collection[Pair]) -> set[str]:
    """Which of the principals were given out for accesses."""
    found: set[str] = set()
    for some in slices(sorted({name for name, _ in pairs})):
        known: Select[str] = select(Access.principal).where(Access.principal.in_(some))
        found.update(session.scalars(known))
    return found

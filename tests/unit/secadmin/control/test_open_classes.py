"""Which classes of an output are closed, and when their topics go."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, select, update

from catalog.authorizer import Authorizer
from catalog.engines import all_engines
from catalog.errors import Conflict, Unavailable
from catalog.label import Label
from catalog.limits import Limits
from catalog.models import (
    Access,
    AccessTopic,
    AuditEntry,
    DeliveryClass,
    Object,
    OutputRow,
    Refill,
    StreamRow,
    User,
    Withdrawal,
)
from catalog.passwords import Passwords
from catalog.placement import Placement
from catalog.plan import Plan, Source
from catalog.runs import RunReport
from catalog.senders import NOWHERE
from catalog.spaces import Spaces
from catalog.store import Catalog
from catalog.stored_form import to_stored
from catalog.subject import Subject, subject_of_user
from catalog.wanted import generation, report_applied, report_status
from secadmin.control.anchors import Anchors
from secadmin.control.open_classes import (
    IdleClass,
    close_idle,
    delete_closed,
    require_room_for_classes,
    to_close,
)
from secadmin.control.platform import Platform
from secadmin.control.settlement import Settlement
from secadmin.control.work import Work
from tests.outputs import alone
from tests.plans import whole
from tests.unit.catalog.plans import relation, windowed
from tests.unit.catalog.world import START

STRANGER = Subject(user_id=0, user_name="al", sends_to=NOWHERE)
FAST = 77
"""The number of a stream."""
HOUR = timedelta(hours=1)
MOMENT = timedelta(microseconds=1)
IDLE = st.lists(
    st.builds(IdleClass, st.integers(1, 9), st.datetimes(), st.integers(1, 3)),
    unique_by=lambda c: c.id,
)


def weight(classes: Sequence[IdleClass]) -> int:
    return sum(each.weight for each in classes)


@given(IDLE, st.integers(0, 9), st.integers(1, 9), st.datetimes())
def test_the_longest_idle_go_until_none_is_old_and_there_are_not_too_many(
    idle: list[IdleClass], held: int, most: int, until: Any
) -> None:
    closed = to_close(idle, held + weight(idle), most, until)
    left = [each for each in idle if each.id not in closed]
    gone = [each for each in idle if each.id in closed]
    assert len(closed) == len(gone)
    assert all(each.since > until for each in left)
    assert not left or held + weight(left) <= most
    assert all(a.since <= b.since for a in gone for b in left)
    # None goes that could stay.
    young = sorted((e for e in gone if e.since > until), key=lambda each: (each.since, each.id))
    assert not young or held + weight([*left, young[-1]]) > most


@dataclass
class Kafka:
    """Deletes all but what is `bad`."""

    bad: str = ""
    deleted: list[str] = field(default_factory=list)

    def delete_topics(self, topics: Sequence[str]) -> None:
        if self.bad in topics:
            raise Unavailable("Kafka still lists the deleted topic")
        self.deleted.extend(topics)


class Alignment:
    """What the deletions need of it."""

    @contextmanager
    def lock(self, topics: Collection[str], wait: timedelta) -> Iterator[None]:
        yield


@dataclass
class Place:
    """A catalog with the output o; `platform` closes classes that are idle for an hour."""

    catalog: Catalog
    kafka: Kafka
    output: int
    most: int = 64
    most_a_user: int = 16

    def platform(self, meanwhile: Callable[[], object] = lambda: None) -> Platform:
        """`meanwhile` happens after it has looked which classes are idle."""

        def clock() -> datetime:
            meanwhile()
            return START

        parts = (self.catalog, self.kafka, Alignment(), Passwords(cost=4), "", "")
        made: Any = Platform
        return made(  # type: ignore[no-any-return]
            *parts, clock, Anchors([]), limits=Limits(classes=self.most), idle_class=HOUR
        )

    def add(self, name: str, *taken: timedelta, held: bool = False, **values: object) -> None:
        """A class whose topic was taken from accesses so long ago, and that one may have now."""
        with self.catalog.bookkeeping() as session:
            made = DeliveryClass(
                output_id=self.output,
                name=name,
                topic=name,
                clearance=Label.of(0).to_wire(),
                weak=False,
                opened_at=START,
                **values,
            )
            session.add(made)
            session.add_all(
                Withdrawal(principal="p", topic=name, decided_at=START - ago, done_at=START)
                for ago in taken
            )
        if held:
            self.hold(name)

    def hold(self, name: str) -> None:
        """Let a new subscription have the class."""
        with self.catalog.bookkeeping() as session:
            made = session.scalars(select(DeliveryClass).where(DeliveryClass.name == name)).one()
            access = Access(
                kind="output",
                user_id=session.scalars(select(User.id)).one(),
                object_id=self.output,
                principal=f"p-{name}-{secrets.token_hex(4)}",
                created_at=START,
            )
            access.topics.append(AccessTopic(topic=name, delivery_class=made))
            session.add(access)

    def require_room(self, of: int, caller: Subject = STRANGER) -> None:
        """As a call that gives and has opened a class of that output."""
        with self.catalog.change("test") as change:
            settlement = Settlement(change, change.now, opened_classes_of={of})
            authorizer = Authorizer(change.session)
            work = Work(change.session, caller, authorizer, change=change, settlement=settlement)
            limits = Limits(classes=self.most, classes_a_user=self.most_a_user)
            require_room_for_classes(work, limits, Spaces())
            change.audit("give", "test")

    def caller(self) -> Subject:
        """The user that has all subscriptions, and now owns the output."""
        with self.catalog.bookkeeping() as session:
            user = session.scalars(select(User)).one()
            session.get_one(Object, self.output).owner_id = user.id
            return subject_of_user(session, user)

    def run_is(self, *topics: str) -> None:
        """The engines are in step; the run of the output uses these topics."""
        with self.catalog.bookkeeping() as session:
            report = RunReport("query-1", "running", topics=frozenset(topics))
            report_status(session, report, START)
            for engine in all_engines(1):
                report_applied(session, engine, generation(session))

    def open(self) -> set[str]:
        return self._names(DeliveryClass.closed_at.is_(None))

    def there(self) -> set[str]:
        return self._names(DeliveryClass.removed_at.is_(None))

    def _names(self, which: Any) -> set[str]:
        with self.catalog.read() as session:
            return set(session.scalars(select(DeliveryClass.name).where(which)))


@pytest.fixture
def place(catalog: Catalog) -> Iterator[Place]:
    catalog.clock = lambda: START
    row = {"namespace": "relation", "kind": "output", "created_at": START}
    with catalog.bookkeeping() as session:
        output = Object(**row, name="o")
        session.add(output)
        session.flush()
        number = output.id
    yield Place(catalog, Kafka(), number)


def test_a_class_is_closed_an_hour_after_its_last_subscription(place: Place) -> None:
    place.add("held", 3 * HOUR, held=True)
    place.add("never held")
    place.add("long ago", 3 * HOUR, HOUR)
    place.add("lately", 3 * HOUR, HOUR - MOMENT)
    with place.catalog.read() as session:
        before = generation(session)
    close_idle(place.platform())
    assert place.open() == {"held", "lately"}
    with place.catalog.read() as session:
        assert generation(session) == before + 1, "its run learns of it"
        noted = session.scalars(
            select(AuditEntry.detail).where(AuditEntry.action == "close idle classes")
        )
        assert list(noted) == [{"classes": 2}]
        closed = select(DeliveryClass.closed_at).where(DeliveryClass.closed_at.is_not(None))
        assert set(session.scalars(closed)) == {START}
    close_idle(place.platform())
    with place.catalog.read() as session:
        assert generation(session) == before + 1, "nothing is left to do"


def test_a_class_from_which_another_one_is_refilled_stays(place: Place) -> None:
    place.add("smaller", held=True)
    place.add("read", HOUR)
    place.add("closed", HOUR, closed_at=START)
    with place.catalog.bookkeeping() as session:
        into = session.scalars(select(DeliveryClass.id).where(DeliveryClass.name == "smaller"))
        number = into.one()
        session.add_all(
            Refill(class_id=number, source=source, decided_at=START)
            for source in ("read", "closed")
        )
    place.run_is()
    close_idle(place.platform())
    delete_closed(place.platform())
    assert place.open() == {"smaller", "read"} and place.kafka.deleted == []
    with place.catalog.bookkeeping() as session:
        session.execute(delete(Refill))
    close_idle(place.platform())
    place.run_is()
    delete_closed(place.platform())
    assert place.open() == {"smaller"} and set(place.kafka.deleted) == {"read", "closed"}


def test_what_is_idle_for_longest_goes_where_there_are_too_many(place: Place) -> None:
    place.most = 3
    for number in range(2):
        place.add(f"held {number}", held=True)
    for number in range(3):
        place.add(f"idle {number}", number * MOMENT)
    close_idle(place.platform())
    assert place.open() == {"held 0", "held 1", "idle 0"}
    place.most = 1
    close_idle(place.platform())
    assert place.open() == {"held 0", "held 1"}, "no class with a subscription is closed"


def test_a_subscription_that_comes_before_the_closing_keeps_its_class(place: Place) -> None:
    place.add("idle", HOUR)
    coming = ["idle"]

    def come() -> None:
        if coming:
            place.hold(coming.pop())

    close_idle(place.platform(come))
    assert not coming and place.open() == {"idle"}


def test_idle_classes_make_room_for_a_call_that_gives(place: Place) -> None:
    place.most = 2
    place.add("opened", held=True)
    for number in range(3):
        place.add(f"idle {number}", number * HOUR)
    place.require_room(place.output)
    assert place.open() == {"opened", "idle 0"}
    place.require_room(place.output)
    assert place.open() == {"opened", "idle 0"}, "however old, the upkeep is to close it"


def test_a_call_that_gives_is_refused_where_idle_classes_make_too_little_room(place: Place) -> None:
    place.most = 2
    place.add("idle", HOUR)
    for number in range(2):
        place.add(f"held {number}", held=True)
    place.require_room(place.output)
    assert place.open() == {"held 0", "held 1"}
    place.add("held 2", held=True)
    place.require_room(place.output + 1)
    with pytest.raises(Conflict, match=r"an output has no room for .*; it may have 2") as refused:
        place.require_room(place.output)
    assert "3" not in str(refused.value), "how many there are is nobody's business"
    owner = place.caller()
    with pytest.raises(Conflict, match="the output 'o' has no room"):
        place.require_room(place.output, owner)


def give_views(place: Place, plan: Plan) -> None:
    """The output has that plan, and each of its classes has a view of its own."""
    row = OutputRow(
        object_id=place.output,
        query_id=place.output,
        relation={},
        plan=to_stored(plan),
        starting_offsets={},
        execution_id=place.output,
        retention_ms=1,
        placement=Placement.SOURCES.value,
    )
    with place.catalog.bookkeeping() as session:
        session.add(alone(place.output, plan))
        session.flush()
        session.add(row)


def test_classes_with_views_of_their_own_are_fewer(place: Place) -> None:
    place.most = 9
    give_views(place, whole(windowed(60, 1)))
    for number in range(4):
        place.add(f"held {number}", held=True)
    place.require_room(place.output)
    place.add("held 4", held=True)
    with pytest.raises(Conflict, match=r"an output has no room for .*; it may have 4"):
        place.require_room(place.output)


def declare(place: Place, stream: int, rate: int) -> None:
    """Declare that rate of the stream, which is added if it is not there."""
    with place.catalog.bookkeeping() as session:
        found = session.get(StreamRow, stream)
        if found is None:
            values = {"relation": {}, "record_format": {}, "max_ahead_ms": 0, "max_bytes": 1}
            own = {"partitions": 1, "shared": False, "ingest_group": 1}
            made = Object(namespace="relation", kind="stream", name="in", created_at=START)
            made.id = stream
            session.add(made)
            session.flush()
            found = StreamRow(object_id=stream, schema_id=stream, **values, **own)
            session.add(found)
        found.rate = rate


def test_a_fast_stream_has_fewer_still_and_no_class_that_is_held_goes_for_it(place: Place) -> None:
    give_views(place, Plan(Source(relation(bit=FAST - 1))))
    declare(place, FAST, 240_000)
    for number in range(2):
        place.add(f"held {number}", held=True)
    place.add("idle", HOUR)
    place.require_room(place.output)
    assert place.open() == {"held 0", "held 1"}, "idle classes make room"
    place.add("held 2", held=True)
    with pytest.raises(Conflict, match=r"an output has no room for .*; it may have 2"):
        place.require_room(place.output)
    declare(place, FAST, 160_000)
    place.require_room(place.output)
    declare(place, FAST, 480_001)
    close_idle(place.platform())
    assert place.open() == {"held 0", "held 1", "held 2"}, "those that are open stay"
    with pytest.raises(Conflict, match=r"an output has no room for .*; it may have 1"):
        place.require_room(place.output)
    place.require_room(place.output + 1)


def test_nobody_holds_more_classes_of_an_output_than_a_share(place: Place) -> None:
    place.most_a_user = 2
    user = place.caller()
    for number in range(2):
        place.add(f"held {number}", held=True)
    place.hold("held 1")
    place.add("idle")
    place.add("closed", held=True, closed_at=START)
    place.require_room(place.output, user)
    place.add("held 2", held=True)
    with pytest.raises(Conflict, match="hold 3 delivery classes of the output 'o', and may hold 2"):
        place.require_room(place.output, user)
    # Another user's call is not refused for what this user holds.
    place.require_room(place.output)
    place.require_room(place.output + 1, user)


def test_a_call_that_gives_is_refused_while_too_many_topics_are_being_removed(
    place: Place,
) -> None:
    place.most = 2
    place.add("held", held=True)
    for number in range(2):
        place.add(f"closed {number}", closed_at=START)
        place.add(f"removed {number}", closed_at=START, removed_at=START)
    place.require_room(place.output)
    place.add("closed", closed_at=START)
    with pytest.raises(Conflict, match=r"too many old topics of an output .* try again in some"):
        place.require_room(place.output)


def test_a_topic_goes_once_no_run_uses_it_and_all_is_fenced(place: Place) -> None:
    for name in ("open", "used", "unfenced", "closed"):
        place.add(name, HOUR, closed_at=None if name == "open" else START)
    with place.catalog.bookkeeping() as session:
        undone = update(Withdrawal).where(Withdrawal.topic == "unfenced")
        session.execute(undone.values(done_at=None))
    with place.catalog.bookkeeping() as session:
        for engine in all_engines(1):
            report_applied(session, engine, generation(session) - 1)
    delete_closed(place.platform())
    assert place.kafka.deleted == [], "an engine may use what it has not reported"
    place.run_is("open", "used")
    delete_closed(place.platform())
    assert place.kafka.deleted == ["closed"]
    assert place.there() == {"open", "used", "unfenced"}
    place.run_is("open")
    delete_closed(place.platform())
    assert place.kafka.deleted == ["closed", "used"]


def test_a_topic_that_cannot_be_deleted_holds_up_no_other(place: Place) -> None:
    for name in ("one", "two", "three"):
        place.add(name, closed_at=START)
    place.run_is()
    place.kafka.bad = "two"
    with pytest.raises(Unavailable, match="still lists"):
        delete_closed(place.platform())
    assert place.kafka.deleted == ["one", "three"]
    assert place.there() == {"two"}

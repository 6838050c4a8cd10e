"""What a smaller class lacks of the topics that were cut, and when that is copied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import select, update

from catalog.errors import PlatformError, Unavailable
from catalog.label import PUBLIC, Label
from catalog.models import (
    Access,
    AccessTopic,
    DeliveryClass,
    Object,
    OutputRow,
    QueryRow,
    Refill,
    StreamRow,
    Withdrawal,
)
from catalog.placement import Placement
from catalog.plan import Aggregation, Plan, Source, Union, Window
from catalog.relation import Relation
from catalog.stored_form import from_stored, to_stored
from secadmin.control.refills import (
    BEHIND,
    TAIL,
    Due,
    Refills,
    due_refills,
    needless,
    readers_of,
)
from tests.plans import grouped
from tests.unit.catalog.world import SettableClock
from tests.unit.secadmin.control.place import IN1, IN2, Place, add_output, add_stream

IN3 = 9
DAY_MS = 24 * 60 * 60 * 1000
MOMENT = timedelta(microseconds=1)


@dataclass
class Ward:
    """Subscriptions to out1, whose query runs, and what became of their topics."""

    place: Place

    def __post_init__(self) -> None:
        query = self.place.world.get_object("query q").id
        self.place.world.edit(QueryRow, query, running=True)
        self._keep_for_a_day()

    def _keep_for_a_day(self) -> None:
        with self.place.catalog.bookkeeping() as session:
            session.execute(update(OutputRow).values(retention_ms=DAY_MS))

    @property
    def clock(self) -> SettableClock:
        return cast(SettableClock, self.place.catalog.clock)

    def subscribe(self, user: str = "bob", what: str = "output out1") -> Access:
        """A new subscription, which is fed."""
        self._keep_for_a_day()
        access = self.place.access(user, what)
        self.place.settle()
        self.feed()
        return access

    def feed(self) -> None:
        """All topics are there, and their runs feed them."""
        now = self.clock()
        with self.place.catalog.bookkeeping() as session:
            unopened = update(DeliveryClass).where(DeliveryClass.opened_at.is_(None))
            session.execute(unopened.values(opened_at=now))
            unfed = update(AccessTopic).where(AccessTopic.fed_at.is_(None))
            session.execute(unfed.values(fed_at=now))

    def open(self) -> None:
        """All topics are there."""
        with self.place.catalog.bookkeeping() as session:
            unopened = update(DeliveryClass).where(DeliveryClass.opened_at.is_(None))
            session.execute(unopened.values(opened_at=self.clock()))

    def lose(self, stream: str = "in2") -> None:
        """R may not read the stream any more."""
        self.place.revoke("READ TUPLE", f"stream {stream}")
        self.place.settle()

    def refills(self) -> set[tuple[str, str]]:
        """(source, topic of the class) of each."""
        query = select(Refill.source, DeliveryClass.topic).join(
            DeliveryClass, DeliveryClass.id == Refill.class_id
        )
        with self.place.catalog.read() as session:
            return {(source, topic) for source, topic in session.execute(query)}

    def due(self) -> list[Due]:
        with self.place.catalog.read() as session:
            return list(due_refills(session, self.clock()).values())

    def needless(self) -> int:
        with self.place.catalog.read() as session:
            return len(needless(session, self.clock()))


@pytest.fixture
def ward(place: Place) -> Ward:
    return Ward(place)


def test_what_is_left_of_a_topic_that_is_cut_is_owed_to_the_smaller_class(ward: Ward) -> None:
    access = ward.subscribe()
    before = str(ward.place.topic(access))
    assert ward.refills() == set(), "who begins lacks nothing"
    ward.lose()
    assert ward.refills() == {(before, str(ward.place.topic(access)))}
    # What is settled once more owes nothing more.
    ward.place.settle()
    assert len(ward.refills()) == 1


def test_a_growth_and_the_loss_of_what_was_added_owe_nothing(ward: Ward) -> None:
    ward.place.revoke("READ TUPLE", "stream in2")
    access = ward.subscribe()
    ward.place.world.grant("R", "READ TUPLE", "stream in2")
    ward.place.settle()
    assert len(ward.place.topics(access)) == 2
    ward.feed()
    ward.lose()
    assert ward.refills() == set(), "the whole class goes on without a gap"
    ward.lose("in1")
    assert ward.place.topics(access) == {} and ward.refills() == set()


def test_one_call_that_gives_and_takes_owes_what_both_classes_take(ward: Ward) -> None:
    ward.place.revoke("READ TUPLE", "stream in2")
    access = ward.subscribe()
    before = str(ward.place.topic(access))
    ward.place.revoke("READ TUPLE", "stream in1")
    ward.place.world.grant("R", "READ TUPLE", "stream in2")
    ward.place.settle()
    assert ward.refills() == {(before, str(ward.place.topic(access)))}
    ward.open()
    (due,) = ward.due()
    assert due.takes(PUBLIC) and not due.takes(Label.of(IN1))


@pytest.mark.parametrize("placement", [Placement.SOURCES, Placement.ROLES, Placement.APART])
def test_results_of_another_class_would_tell_of_what_they_do_not_hold(
    ward: Ward, placement: Placement
) -> None:
    """A window without tuples that were taken away tells that there was none of them."""
    output = ward.place.world.get_object("output out1").id
    with ward.place.catalog.read() as session:
        plan = from_stored(Plan, session.get_one(OutputRow, output).plan)
    counted = grouped(plan.root, Window(1_000, 1_000), (), (Aggregation("n", "count", None),))
    ward.place.world.edit(
        *(OutputRow, output), placement=placement.value, plan=to_stored(Plan(counted))
    )
    access = ward.subscribe()
    before = ward.place.topic(access)
    ward.lose()
    assert ward.place.topic(access) not in (None, before) and ward.refills() == set()


def test_a_class_that_is_fed_for_others_lacks_nothing(ward: Ward) -> None:
    world = ward.place.world
    world.user("eve")
    world.role("S")
    for right, what in (
        *(("VIEW OBJECT", "output out1"), ("SUBSCRIBE", "output out1")),
        *(("VIEW OBJECT", "stream in1"), ("READ TUPLE", "stream in1")),
    ):
        world.grant("S", right, what)
    world.member("eve", "S")
    world.access("eve", "output out1", "S")
    bob = ward.place.access()
    ward.place.settle()
    ward.feed()
    ward.lose()
    assert ward.place.topic(bob) is not None and ward.refills() == set()


def test_all_whose_topic_is_cut_for_a_class_are_its_readers(ward: Ward) -> None:
    ward.place.world.member("joe", "R")
    bob, joe = ward.place.access(), ward.place.access("joe")
    ward.place.settle()
    ward.feed()
    before = str(ward.place.topic(bob))
    ward.lose()
    class_id = ward.place.class_of(bob).id
    with ward.place.catalog.read() as session:
        assert readers_of(session, class_id) == {before: {bob.principal, joe.principal}}
    ward.open()
    first = next(each for each in ward.due() if before in each.sources)
    # One more is moved: it may be further behind.
    ward.place.world.user("eve")
    ward.place.world.member("eve", "R")
    late = ward.place.access("eve")
    with ward.place.catalog.bookkeeping() as session:
        session.add(Withdrawal(principal=late.principal, topic=before, decided_at=ward.clock()))
    ward.place.settle()
    assert ward.place.class_of(late).id == class_id
    second = next(each for each in ward.due() if before in each.sources)
    assert second.sources != first.sources


def test_a_class_that_is_cut_while_it_is_refilled_leaves_its_sources_to_the_next(
    ward: Ward,
) -> None:
    world = ward.place.world
    wide = [relation(ward.place, name) for name in ("in1", "in2")]
    wide.append(add_stream(world, "in3", IN3))
    add_output(world, "wide", Plan(Union(tuple(map(Source, wide)))))
    for right, what in (
        *(("VIEW OBJECT", "output wide"), ("SUBSCRIBE", "output wide")),
        *(("VIEW OBJECT", "stream in3"), ("READ TUPLE", "stream in3")),
    ):
        world.grant("R", right, what)
    access = ward.subscribe(what="output wide")
    first = str(ward.place.topic(access))
    begun = ward.clock()
    ward.lose("in3")
    second = str(ward.place.topic(access))
    ward.clock.advance(seconds=1)
    ward.lose("in2")
    third = str(ward.place.topic(access))
    assert ward.refills() == {(first, second), (first, third), (second, third)}
    with ward.place.catalog.read() as session:
        own = session.scalars(select(Refill).where(Refill.source == first))
        assert {row.decided_at for row in own} == {begun}
    assert ward.needless() == 1, "nobody has the class between any more"
    with ward.place.catalog.read() as session:
        readers = readers_of(session, ward.place.class_of(access).id)
    assert readers == {first: {access.principal}, second: {access.principal}}


def relation(place: Place, stream: str) -> Relation:
    number = place.world.get_object(f"stream {stream}").id
    with place.catalog.read() as session:
        return from_stored(Relation, session.get_one(StreamRow, number).relation)


def test_a_refill_is_due_while_the_run_itself_may_write(ward: Ward) -> None:
    access = ward.subscribe()
    before = str(ward.place.topic(access))
    ward.lose()
    assert ward.due() == [], "its topic is not there"
    ward.open()
    (due,) = ward.due()
    assert (due.topic, due.fed) == (ward.place.topic(access), False)
    assert due.takes(Label.of(IN1)) and due.takes(PUBLIC)
    assert not due.takes(Label.of(IN2)) and not due.takes(Label.of(IN1, IN2))
    for topic in (before, due.topic):
        with ward.place.catalog.bookkeeping() as session:
            row = Withdrawal(principal="p", topic=topic, decided_at=ward.clock(), unproven=True)
            session.add(row)
            session.flush()
            number = row.id
        assert ward.due() == [], "a fence is not proven"
        ward.place.world.edit(Withdrawal, number, done_at=ward.clock())
    assert len(ward.due()) == 1
    ward.place.world.edit(QueryRow, ward.place.world.get_object("query q").id, running=False)
    assert ward.due() == [], "it is stopped"


def test_it_ends_when_the_class_has_been_fed_for_a_while(ward: Ward) -> None:
    ward.subscribe()
    ward.lose()
    ward.feed()
    ward.clock.now += TAIL - MOMENT
    assert not ward.due()[0].fed
    ward.clock.now += MOMENT
    assert ward.due()[0].fed


@pytest.mark.parametrize("why", ["closed", "removed", "unheld", "old"])
def test_what_nobody_needs_is_dropped(ward: Ward, why: str) -> None:
    access = ward.subscribe()
    ward.lose()
    number = ward.place.class_of(access).id
    assert ward.needless() == 0
    if why == "closed":
        ward.place.world.edit(DeliveryClass, number, closed_at=ward.clock())
    elif why == "removed":
        output = ward.place.world.get_object("output out1").id
        ward.place.world.edit(Object, output, removed_at=ward.clock())
    elif why == "unheld":
        ward.lose("in1")
    else:
        ward.clock.now += timedelta(milliseconds=DAY_MS)
        assert ward.needless() == 0
        ward.clock.now += MOMENT
    assert ward.needless() == 1


@dataclass
class Shelf:
    """Topics in memory: each has labels. It fails for the targets in `bad`."""

    topics: dict[str, list[Label]] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    asked: list[tuple[dict[str, set[str]], dict[str, datetime]]] = field(default_factory=list)
    bad: set[str] = field(default_factory=set)
    begun: dict[str, dict[str, int]] = field(default_factory=dict)

    def starts(
        self, moved: Mapping[str, Collection[str]], before: Mapping[str, datetime]
    ) -> dict[str, int]:
        self.asked.append(({t: set(each) for t, each in moved.items()}, dict(before)))
        return {topic: self.read.get(topic, 0) for topic in moved}

    def begin(self, target: str, starts: Mapping[str, int]) -> None:
        if target in self.bad:
            raise Unavailable("the broker is away")
        self.begun[target] = dict(starts)

    def end(self, target: str) -> None:
        self.begun.pop(target, None)

    def copy(self, takes: Mapping[str, Callable[[Label], bool]]) -> Mapping[str, PlatformError]:
        assert takes.keys() == self.begun.keys()
        failed = [target for target in self.begun if target in self.bad]
        for target in failed:
            self.end(target)
        for target, positions in self.begun.items():
            for source, offset in positions.items():
                labels = self.topics.get(source, [])
                into = self.topics.setdefault(target, [])
                into.extend(label for label in labels[offset:] if takes[target](label))
                positions[source] = len(labels)
        return {target: Unavailable("its topic is away") for target in failed}

    def is_through(self, target: str) -> bool:
        positions = self.begun[target].items()
        return all(offset >= len(self.topics.get(source, [])) for source, offset in positions)

    def close(self) -> None: ...


@dataclass
class Worker:
    """Refills over a shelf. Each pause takes its time; then `meanwhile` happens."""

    ward: Ward
    shelf: Shelf = field(default_factory=Shelf)
    now_s: float = 0.0
    locked: bool = False
    meanwhile: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        catalog = self.ward.place.catalog
        self.due = Event()
        platform = SimpleNamespace(
            catalog=catalog, alignment=self, clock=catalog.clock, refills_due=self.due
        )
        self.refills = Refills(cast(Any, platform), self.shelf, self._pause, lambda: self.now_s)

    def _pause(self, seconds: float) -> bool:
        self.now_s += seconds
        self.meanwhile()
        return False

    @contextmanager
    def lock(self, topics: Collection[str], wait: timedelta) -> Iterator[None]:
        if self.locked:
            raise Unavailable("somebody else holds it")
        yield


def test_what_was_not_read_is_copied_until_the_class_is_fed(ward: Ward) -> None:
    access = ward.subscribe()
    before = str(ward.place.topic(access))
    worker = Worker(ward)
    one, two, both = Label.of(IN1), Label.of(IN2), Label.of(IN1, IN2)
    worker.shelf.topics[before] = [one, one, two, one, both]
    worker.shelf.read[before] = 1
    worker.due.set()
    assert worker.refills.work() is False, "nothing is cut"
    assert not worker.due.is_set(), "or the thread would look without a pause"
    ward.lose()
    cut = ward.clock()
    smaller = str(ward.place.topic(access))
    ward.open()
    assert worker.refills.work() is True
    assert worker.shelf.topics[smaller] == [one, one]
    assert worker.shelf.asked == [({before: {access.principal}}, {before: cut - BEHIND})]
    # The run goes on to write the topic that was cut.
    worker.shelf.topics[before] += [two, PUBLIC]
    worker.refills.work()
    assert worker.shelf.topics[smaller] == [one, one, PUBLIC]
    assert len(worker.shelf.begun) == len(worker.shelf.asked) == 1, "it goes on where it was"
    ward.feed()
    ward.clock.now += TAIL
    worker.refills.work()
    assert ward.refills() == set()
    assert worker.refills.work() is False and worker.shelf.begun == {}


def test_what_a_call_opens_is_looked_at_before_the_turn_is_over(ward: Ward) -> None:
    ward.subscribe()
    ward.lose()
    worker = Worker(ward)

    def opened() -> None:
        ward.open()
        worker.due.set()

    worker.meanwhile = opened
    worker.refills.work()
    one_pause = worker.now_s
    worker.meanwhile = lambda: None
    worker.refills.work()
    assert worker.shelf.begun and not worker.due.is_set()
    assert worker.now_s > 10 * one_pause, "the next turn is as long as usual"


def test_it_begins_anew_if_somebody_else_is_moved_to_the_class(ward: Ward) -> None:
    access = ward.subscribe()
    before = str(ward.place.topic(access))
    worker = Worker(ward)
    ward.lose()
    ward.open()
    worker.refills.work()
    with ward.place.catalog.bookkeeping() as session:
        again = Withdrawal(principal=access.principal, topic=before, decided_at=ward.clock())
        session.add(again)
    worker.refills.work()
    assert len(worker.shelf.asked) == 2 and len(worker.shelf.begun) == 1


def test_one_that_fails_holds_up_no_other_and_is_tried_again(ward: Ward) -> None:
    ward.place.world.member("joe", "R")
    bad, good = ward.place.access(), ward.place.access("joe", "output out3")
    ward.place.settle()
    ward.feed()
    sources = {each: str(ward.place.topic(each)) for each in (bad, good)}
    worker = Worker(ward)
    for source in sources.values():
        worker.shelf.topics[source] = [Label.of(IN1)]
    ward.lose()
    ward.open()
    worker.shelf.bad = {str(ward.place.topic(bad))}
    worker.refills.work()
    assert worker.shelf.topics[str(ward.place.topic(good))] == [Label.of(IN1)]
    assert str(ward.place.topic(bad)) not in worker.shelf.topics
    worker.shelf.bad.clear()
    worker.refills.work()
    assert worker.shelf.topics[str(ward.place.topic(bad))] == [Label.of(IN1)]
    # It may also fail while it is refilled. Then it begins anew.
    asked = len(worker.shelf.asked)
    worker.shelf.bad = {str(ward.place.topic(good))}
    worker.refills.work()
    assert worker.shelf.begun.keys() == {str(ward.place.topic(bad))}
    worker.shelf.bad.clear()
    worker.refills.work()
    assert len(worker.shelf.begun) == 2 and len(worker.shelf.asked) > asked


def test_one_service_at_a_time_refills(ward: Ward) -> None:
    ward.subscribe()
    ward.lose()
    ward.open()
    worker = Worker(ward, locked=True)
    assert worker.refills.work() is False and worker.shelf.asked == []


def test_what_is_dropped_meanwhile_is_closed(ward: Ward) -> None:
    ward.subscribe()
    ward.lose()
    ward.open()
    worker = Worker(ward)
    worker.refills.work()
    assert len(worker.shelf.begun) == 1
    ward.lose("in1")
    worker.refills.work()
    assert worker.shelf.begun == {} and ward.refills() == set()

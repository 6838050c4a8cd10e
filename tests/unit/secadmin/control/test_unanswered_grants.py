"""A grant that Kafka has not answered may be carried out later, and lets nobody in by then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from sqlalchemy import select

from catalog.errors import Unavailable
from catalog.models import Access, DeliveryClass, UnansweredGrant
from secadmin.control.alignment import Alignment
from secadmin.control.unanswered_grants import Grants
from secadmin.kafka.access import PrincipalsOf
from secadmin.kafka.wire.connections import Unanswered
from tests.unit.secadmin.control.place import Place
from tests.unit.secadmin.control.test_alignment import Locks

Pairs = set[tuple[str, str]]


class Killed(BaseException):
    """The service is killed."""


@dataclass
class Kafka:
    """While it `fails`, it keeps what it is asked to allow; `go_on` carries that out.

    A denial goes before all that is allowed, and stays.
    """

    fails: BaseException | None = None
    held: list[PrincipalsOf] = field(default_factory=list)
    allowed: Pairs = field(default_factory=set)
    denied: Pairs = field(default_factory=set)
    asked: Callable[[], object] = lambda: None
    twice: bool = False

    def open_classes(self, retention_ms: Mapping[str, int]) -> None:
        pass

    def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        return {topic: {"0": 0} for topic in topics}

    def open_senders(self, partitions: Mapping[str, int]) -> None:
        pass

    def allow_read(self, principals_of: PrincipalsOf) -> bool:
        self.asked()
        if self.twice or self.fails is not None:
            self.held.append(principals_of)
        if self.fails is not None:
            raise self.fails
        self.allowed |= _pairs(principals_of)
        return not self.twice

    allow_write = allow_read

    def withdraw(self, principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
        assert _pairs(banned) <= _pairs(principals_of)
        self.allowed -= _pairs(principals_of)
        self.denied |= _pairs(banned)

    def go_on(self) -> None:
        """Carry out what was asked for long ago."""
        self.fails, self.twice = None, False
        assert self.held
        for each in self.held:
            self.allowed |= _pairs(each)
        self.held.clear()

    def lets_in(self) -> Pairs:
        return self.allowed - self.denied


def _pairs(principals_of: PrincipalsOf) -> Pairs:
    return {(name, topic) for topic, names in principals_of.items() for name in names}


@dataclass
class Stage:
    """The place, with its Kafka and a service."""

    place: Place
    kafka: Kafka

    @property
    def alignment(self) -> Alignment:
        return Alignment(self.place.catalog, self.kafka, Locks(), self.place.catalog.clock)

    def settle(self) -> None:
        """Settle everything, and tell Kafka."""
        self.alignment.align(self.place.settle())

    def notes(self) -> list[UnansweredGrant]:
        with self.place.catalog.read() as session:
            return list(session.scalars(select(UnansweredGrant)))

    def pair(self, access: Access) -> tuple[str, str]:
        topic = self.place.topic(access)
        assert topic is not None
        return self.place.read(access).principal, topic


@pytest.fixture
def stage(place: Place) -> Stage:
    return Stage(place, Kafka())


def _take(stage: Stage) -> None:
    stage.place.revoke("READ TUPLE", "stream in1")
    stage.place.revoke("READ TUPLE", "stream in2")


def _give(stage: Stage) -> None:
    stage.place.world.grant("R", "READ TUPLE", "stream in1")
    stage.place.world.grant("R", "READ TUPLE", "stream in2")


def _silence() -> Unanswered:
    return Unanswered("cannot create the ACLs: the broker did not answer")


def test_what_was_answered_leaves_nothing_behind(stage: Stage) -> None:
    access = stage.place.access()
    stage.settle()
    assert stage.kafka.lets_in() == {stage.pair(access)}
    _take(stage)
    stage.settle()
    assert (stage.notes(), stage.kafka.denied, stage.kafka.allowed) == ([], set(), set())


@pytest.mark.parametrize("failure", [_silence(), Killed()], ids=["silent", "killed"])
def test_what_comes_late_lets_nobody_in(stage: Stage, failure: BaseException) -> None:
    access = stage.place.access()
    stage.kafka.fails = failure
    with pytest.raises(type(failure)):
        stage.settle()
    pair = stage.pair(access)
    _take(stage)
    stage.settle()
    stage.kafka.go_on()
    assert stage.kafka.allowed == {pair}, "it came late"
    assert stage.kafka.lets_in() == set()


def test_a_copy_of_what_was_answered_lets_nobody_in(stage: Stage) -> None:
    """Another broker did it, while the first one hung with the same request."""
    access = stage.place.access()
    stage.kafka.twice = True
    stage.settle()
    pair = stage.pair(access)
    assert stage.kafka.lets_in() == {pair}
    _take(stage)
    stage.settle()
    stage.kafka.go_on()
    assert (stage.kafka.allowed, stage.kafka.lets_in()) == ({pair}, set())


def test_a_service_that_stands_still_lets_nobody_in(stage: Stage) -> None:
    """It asks Kafka when another service has taken the right already, and even gets the answer."""
    access = stage.place.access()
    pairs: Pairs = set()

    def meanwhile() -> None:
        pairs.add(stage.pair(access))
        _take(stage)
        Alignment(stage.place.catalog, stage.kafka, Locks(), stage.place.catalog.clock).align(
            stage.place.settle()
        )

    stage.kafka.asked = meanwhile
    stage.settle()
    assert stage.kafka.allowed == pairs != set()
    assert stage.kafka.lets_in() == set()
    (note,) = stage.notes()
    assert note.banned_at is not None, "the answer does not take the ban back"


def test_what_is_taken_before_kafka_is_asked_is_not_asked_for(stage: Stage) -> None:
    access = stage.place.access()
    stage.settle()
    principal, topic = stage.pair(access)
    _take(stage)
    stage.settle()

    def create(principals_of: PrincipalsOf) -> bool:
        raise AssertionError(principals_of)

    grants = Grants(stage.place.catalog, stage.place.catalog.clock)
    grants.carry_out({topic: [principal]}, create)
    assert stage.notes() == []
    created: list[PrincipalsOf] = []

    def note(principals_of: PrincipalsOf) -> bool:
        created.append(principals_of)
        return True

    grants.carry_out({topic: [principal, "ingest"]}, note)
    assert created == [{topic: ["ingest"]}], "an account of the platform has no access"


def test_where_nothing_was_sent_nothing_stays(stage: Stage) -> None:
    access = stage.place.access()
    stage.kafka.fails = Unavailable("Kafka is away")
    with pytest.raises(Unavailable, match="away"):
        stage.settle()
    assert stage.notes() == []
    stage.kafka.fails = None
    stage.alignment.align_pending()
    assert stage.kafka.lets_in() == {stage.pair(access)}


def test_many_tries_leave_one_note(stage: Stage) -> None:
    access = stage.place.access()
    stage.kafka.fails = _silence()
    with pytest.raises(Unanswered):
        stage.settle()
    for _ in range(3):
        with pytest.raises(Unanswered):
            stage.alignment.align_pending()
    (note,) = stage.notes()
    assert (note.lost, note.banned_at) == (True, None)
    stage.kafka.fails = None
    stage.alignment.align_pending()
    assert stage.kafka.lets_in() == {stage.pair(access)}
    assert len(stage.notes()) == 1, "the first request may still come"


def test_who_is_banned_from_a_topic_gets_another_one(stage: Stage) -> None:
    banned, other = stage.place.access(principal="p-1"), stage.place.access(principal="p-2")
    stage.settle()
    (_, topic), (_, same) = stage.pair(banned), stage.pair(other)
    assert topic == same
    with stage.place.catalog.bookkeeping() as session:
        lost = {"request": "r", "lost": True, "asked_at": stage.place.catalog.clock()}
        session.add(UnansweredGrant(principal="p-1", topic=topic, **lost))
    _take(stage)
    stage.settle()
    assert stage.kafka.denied == {("p-1", topic)}
    _give(stage)
    stage.settle()
    (_, new), (_, kept) = stage.pair(banned), stage.pair(other)
    assert kept == topic != new
    assert stage.kafka.lets_in() == {("p-1", new), ("p-2", topic)}
    with stage.place.catalog.read() as session:
        rows = select(DeliveryClass).where(DeliveryClass.topic.in_([topic, new]))
        first, second = session.scalars(rows)
    assert first.clearance == second.clearance


@pytest.mark.parametrize(
    ("kind", "right", "what"),
    [("send", "SEND", "stream in1"), ("quarantine", "READ TUPLE", "stream in1")],
)
def test_other_accesses_that_are_banned_get_nothing_more(
    stage: Stage, kind: str, right: str, what: str
) -> None:
    """The ban of a sender holds for all its transactions, and a stream has one quarantine."""
    banned = stage.place.access(what=what, kind=kind, principal="p-1")
    stage.kafka.fails = _silence()
    with pytest.raises(Unanswered):
        stage.settle()
    pair = stage.pair(banned)
    stage.place.revoke(right, what)
    stage.settle()
    assert stage.kafka.denied == {pair}
    stage.place.world.grant("R", right, what)
    stage.kafka.fails = None
    anew = stage.place.access(what=what, kind=kind, principal="p-2")
    stage.settle()
    assert stage.place.topic(banned) is None
    assert stage.kafka.lets_in() == {("p-2", pair[1])} == {stage.pair(anew)}


def test_what_is_given_again_before_it_is_taken_in_kafka_is_no_ban(stage: Stage) -> None:
    access = stage.place.access()
    stage.kafka.fails = _silence()
    with pytest.raises(Unanswered):
        stage.settle()
    stage.kafka.fails = None
    pair = stage.pair(access)
    _take(stage)
    topics = stage.place.settle()
    _give(stage)
    topics |= stage.place.settle()
    assert stage.pair(access) == pair
    stage.alignment.align(topics)
    assert (stage.kafka.lets_in(), stage.kafka.denied) == ({pair}, set())
    _take(stage)
    stage.settle()
    stage.kafka.go_on()
    assert stage.kafka.lets_in() == set()


def test_a_withdrawal_that_fails_bans_again(stage: Stage) -> None:
    stage.place.access()
    stage.kafka.fails = _silence()
    with pytest.raises(Unanswered):
        stage.settle()

    class Away(Kafka):
        def withdraw(self, principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
            raise Unavailable("Kafka is away")

    _take(stage)
    with pytest.raises(Unavailable):
        replace(stage, kafka=Away()).settle()
    stage.alignment.align_pending()
    stage.kafka.go_on()
    assert (stage.kafka.lets_in(), len(stage.kafka.denied)) == (set(), 1)

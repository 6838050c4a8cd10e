"""Alignment of many topics: together, and where one fails, each for itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import select, update

from catalog.errors import Unavailable
from catalog.models import AccessTopic, DeliveryClass, OutputInput, Withdrawal
from catalog.store import Catalog
from secadmin.control.alignment import Alignment
from secadmin.kafka.access import PrincipalsOf
from secadmin.kafka.fence import FenceNotProven
from tests.new_catalog import new_catalog
from tests.unit.secadmin.control.place import Place

TOPICS = [f"out.many.{number}" for number in range(40)]
BAD = TOPICS[7]


@dataclass
class Kafka:
    """Fences what is not `bad`."""

    bad: set[str] = field(default_factory=set)
    calls: list[set[str]] = field(default_factory=list)
    withdrawn: dict[str, list[str]] = field(default_factory=dict)

    def open_classes(self, retention_ms: Mapping[str, int]) -> None:
        raise AssertionError("there is no class")

    def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        raise AssertionError("there is no class")

    def open_senders(self, partitions: Mapping[str, int]) -> None:
        raise AssertionError("there is no sender")

    def allow_read(self, principals_of: PrincipalsOf) -> bool:
        raise AssertionError("there is no access")

    allow_write = allow_read

    def withdraw(self, principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
        self.calls.append(set(principals_of))
        if not self.bad.isdisjoint(principals_of):
            raise FenceNotProven(principals_of, "the broker is not what it was")
        self.withdrawn |= {topic: sorted(names) for topic, names in principals_of.items()}


@dataclass
class Locks:
    """Locks that nobody else holds, but for those of `taken`."""

    taken: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)

    @contextmanager
    def __call__(self, topics: Collection[str], wait: timedelta) -> Iterator[None]:
        if not self.taken.isdisjoint(topics):
            raise Unavailable("somebody else holds it; try again")
        assert self.held.isdisjoint(topics)
        self.held |= set(topics)
        try:
            yield
        finally:
            self.held -= set(topics)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    catalog = new_catalog(tmp_path)
    with catalog.bookkeeping() as session:
        session.add_all(
            Withdrawal(principal=f"output-{name}", topic=topic, decided_at=catalog.clock())
            for topic in TOPICS
            for name in ("a", "b")
        )
    yield catalog
    catalog.close()


def undone(catalog: Catalog) -> dict[str, bool]:
    """The topics with withdrawals that are not done, and whether they are marked unproven."""
    with catalog.read() as session:
        rows = session.scalars(select(Withdrawal).where(Withdrawal.done_at.is_(None)))
        return {row.topic: row.unproven for row in rows}


def test_many_topics_are_aligned_together(catalog: Catalog) -> None:
    kafka, locks = Kafka(), Locks()
    Alignment(catalog, kafka, locks, catalog.clock).align(TOPICS)
    assert kafka.withdrawn == {topic: ["output-a", "output-b"] for topic in TOPICS}
    assert len(kafka.calls) < 5
    assert undone(catalog) == {}
    assert locks.held == set()


def test_a_fence_that_is_not_proven_stops_its_own_topic_alone(catalog: Catalog) -> None:
    kafka = Kafka(bad={BAD})
    alignment = Alignment(catalog, kafka, Locks(), catalog.clock)
    with pytest.raises(FenceNotProven, match=rf"the fence of {BAD} is"):
        alignment.align(TOPICS)
    assert undone(catalog) == {BAD: True}
    kafka.bad.clear()
    alignment.align_pending()
    assert undone(catalog) == {}
    assert kafka.withdrawn.keys() == set(TOPICS)


def test_a_topic_whose_lock_is_held_holds_up_no_other(catalog: Catalog) -> None:
    with pytest.raises(Unavailable, match="somebody else"):
        Alignment(catalog, Kafka(), Locks(taken={BAD}), catalog.clock).align(TOPICS)
    assert undone(catalog) == {BAD: False}


def test_what_holds_up_everything_is_told_before_a_fence_that_is_not_proven(
    catalog: Catalog,
) -> None:
    with pytest.raises(Unavailable, match="somebody else") as caught:
        Alignment(catalog, Kafka(bad={BAD}), Locks(taken={TOPICS[30]}), catalog.clock).align(TOPICS)
    assert not isinstance(caught.value, FenceNotProven)
    assert undone(catalog) == {BAD: True, TOPICS[30]: False}


def test_what_a_call_is_aligning_is_left_to_it(catalog: Catalog) -> None:
    own, other = TOPICS[:2], set(TOPICS[2:])

    class Looking(Kafka):
        def withdraw(self, principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
            if not other & principals_of.keys():
                # Meanwhile the upkeep looks for what is pending.
                alignment.align_pending()
            super().withdraw(principals_of, banned)

    kafka = Looking(bad=set(own))
    alignment = Alignment(catalog, kafka, Locks(), catalog.clock)
    with pytest.raises(FenceNotProven):
        alignment.align(own)
    assert kafka.withdrawn.keys() == other
    kafka.bad.clear()
    alignment.align_pending()
    assert kafka.withdrawn.keys() == set(TOPICS)
    assert undone(catalog) == {}


def test_a_smaller_class_gets_its_topic_while_the_larger_one_is_fenced(place: Place) -> None:
    class Waiting(Kafka):
        """Fences when the new topic is there, which nobody may read yet."""

        def __init__(self) -> None:
            super().__init__()
            self.opened = Event()
            self.allowed: PrincipalsOf = {}

        def open_classes(self, retention_ms: Mapping[str, int]) -> None:
            self.opened.set()

        def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
            return {topic: {"0": 4} for topic in topics}

        def withdraw(self, principals_of: PrincipalsOf, banned: PrincipalsOf) -> None:
            assert self.opened.wait(20)
            super().withdraw(principals_of, banned)

        def allow_read(self, principals_of: PrincipalsOf) -> bool:
            assert self.withdrawn
            self.allowed = principals_of
            return True

    access = place.access()
    place.settle()
    before = place.topic(access)
    place.revoke("READ TUPLE", "stream in2")
    topics = place.settle()
    with place.catalog.bookkeeping() as session:
        is_open = update(DeliveryClass).where(DeliveryClass.topic == before)
        session.execute(is_open.values(opened_at=place.catalog.clock()))
        allowed = update(AccessTopic).where(AccessTopic.topic == before)
        session.execute(allowed.values(allowed_at=place.catalog.clock()))
    kafka = Waiting()
    Alignment(place.catalog, kafka, Locks(), place.catalog.clock).align(topics)
    assert kafka.withdrawn.keys() == {before}
    assert kafka.allowed.keys() == {place.topic(access)}


class Opening(Kafka):
    """Opens classes; the lab topics end at 4, or cannot be asked."""

    def __init__(self, *, asked: bool) -> None:
        super().__init__()
        self.asked = asked

    def open_classes(self, retention_ms: Mapping[str, int]) -> None:
        assert retention_ms

    def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        if not self.asked:
            raise Unavailable("Kafka does not serve the topic")
        return {topic: {"0": 4} for topic in topics}

    def allow_read(self, principals_of: PrincipalsOf) -> bool:
        return True


@pytest.mark.parametrize("asked", [True, False])
def test_a_new_class_begins_at_the_ends_of_what_its_query_reads(place: Place, asked: bool) -> None:
    """If they cannot be asked, it is open all the same: nobody waits for a topic at fault."""
    for name in ("in1", "in2"):
        read = place.world.get_object(f"stream {name}").id
        output = place.world.get_object("output out1").id
        place.world.add(OutputInput(output_id=output, relation_id=read))
    place.access()
    topics = place.settle()
    Alignment(place.catalog, Opening(asked=asked), Locks(), place.catalog.clock).align(topics)
    with place.catalog.read() as session:
        (made,) = session.scalars(select(DeliveryClass))
        assert made.opened_at is not None
        begins = made.starting_offsets
    assert begins == ({"lab.in1": {"0": 4}, "lab.in2": {"0": 4}} if asked else None)

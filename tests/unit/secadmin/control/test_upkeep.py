"""Nothing that the upkeep does waits for what fails or takes long elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from sqlalchemy import select, update

from catalog.errors import Unavailable
from catalog.models import Access, Object, Session, User
from catalog.passwords import Passwords
from catalog.runs import RunReport
from catalog.store import Catalog
from catalog.wanted import report_status
from secadmin.control.anchors import Anchors
from secadmin.control.platform import Platform
from secadmin.control.upkeep import (
    DUTY_TICKS,
    RETIRED_A_TICK,
    Upkeep,
    delete_removed,
    retire_ended,
)

PATIENCE_S = 30


@dataclass
class Alignment:
    """Aligns nothing; `pending` and `meanwhile` stand for what others do at that moment."""

    pending: Callable[[], object] = lambda: None
    meanwhile: Callable[[], object] = lambda: None
    ended: Event = field(default_factory=Event)

    def align(self, topics: Collection[str]) -> None:
        self.ended.set()

    def align_pending(self) -> None:
        self.pending()

    @contextmanager
    def lock(self, topics: Collection[str], wait: timedelta) -> Iterator[None]:
        self.meanwhile()
        yield


@dataclass
class Kafka:
    """Deletes all but what is `bad`."""

    bad: str = ""
    deleted: list[str] = field(default_factory=list)

    def delete_principal(self, name: str) -> None:
        self.deleted.append(name)

    def delete_topics(self, topics: Sequence[str]) -> None:
        if any(self.bad in topic for topic in topics if self.bad):
            raise Unavailable("Kafka still lists the deleted topic")
        self.deleted.extend(topics)


def _platform(catalog: Catalog, kafka: Kafka, alignment: Alignment) -> Platform:
    parts: Any = (catalog, kafka, alignment, Passwords(cost=4), "", "", catalog.clock, Anchors([]))
    return Platform(*parts)


def _user(catalog: Catalog) -> int:
    with catalog.read() as session:
        return session.scalars(select(User.id)).one()


def _remove_streams(catalog: Catalog, *names: str) -> None:
    now = catalog.clock()
    with catalog.bookkeeping() as session:
        for name in names:
            row = {"namespace": "relation", "name": name, "kind": "stream", "created_at": now}
            session.add(Object(**row, removed_at=now))


def _gone(catalog: Catalog) -> set[str]:
    with catalog.read() as session:
        return set(session.scalars(select(Object.name).where(Object.gone_at.is_not(None))))


def test_an_object_that_cannot_be_deleted_holds_up_no_other(catalog: Catalog) -> None:
    _remove_streams(catalog, "one", "two", "three")
    with pytest.raises(Unavailable, match="still lists"):
        delete_removed(_platform(catalog, Kafka(bad="two"), Alignment()))
    assert _gone(catalog) == {"one", "three"}


def test_an_object_whose_run_does_not_end_holds_up_no_other(catalog: Catalog) -> None:
    _remove_streams(catalog, "one", "two")
    platform = _platform(catalog, Kafka(), Alignment())
    for used, gone in (({"lab.one"}, {"two"}), (set(), {"one", "two"})):
        with catalog.bookkeeping() as session:
            report = RunReport("ingest-1", "running", topics=frozenset(used))
            report_status(session, report, catalog.clock())
        delete_removed(platform)
        assert _gone(catalog) == gone


def test_what_another_service_has_deleted_is_not_deleted_again(catalog: Catalog) -> None:
    """Its name may be that of a new stream, with new topics."""
    _remove_streams(catalog, "one")

    def other_service() -> None:
        with catalog.bookkeeping() as session:
            session.execute(update(Object).values(gone_at=catalog.clock()))

    kafka = Kafka()
    delete_removed(_platform(catalog, kafka, Alignment(meanwhile=other_service)))
    assert kafka.deleted == []


def test_kafka_users_go_some_at_a_time(catalog: Catalog) -> None:
    user, now = _user(catalog), catalog.clock()
    with catalog.bookkeeping() as session:
        system = session.scalars(select(Object.id)).one()
        session.add_all(
            Access(
                kind="send",
                user_id=user,
                object_id=system,
                principal=f"send-{number}",
                created_at=now,
                ended_at=now,
            )
            for number in range(RETIRED_A_TICK + 1)
        )
    kafka = Kafka()
    platform = _platform(catalog, kafka, Alignment())
    for most in (RETIRED_A_TICK, RETIRED_A_TICK + 1):
        retire_ended(platform)
        assert len(set(kafka.deleted)) == len(kafka.deleted) == most


def test_sessions_end_while_all_else_takes_long(catalog: Catalog) -> None:
    busy, go_on = Event(), Event()

    def pending() -> None:
        busy.set()
        assert go_on.wait(PATIENCE_S)

    alignment = Alignment(pending=pending)
    upkeep = Upkeep(_platform(catalog, Kafka(), alignment))
    upkeep.start()
    try:
        assert busy.wait(PATIENCE_S)
        _let_expire(catalog)
        assert alignment.ended.wait(PATIENCE_S)
    finally:
        go_on.set()
        upkeep.close()
    with catalog.read() as session:
        assert session.scalars(select(Session.ended_at)).one() is not None


@dataclass
class OneDuty(Alignment):
    """Its lock has one holder at a time."""

    holders: int = 0

    @contextmanager
    def lock(self, topics: Collection[str], wait: timedelta) -> Iterator[None]:
        if self.holders:
            raise Unavailable("somebody else holds it")
        self.holders += 1
        yield
        self.holders -= 1


def test_one_service_tidies_and_each_tells_kafka_what_is_left(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    alignment = OneDuty(pending=lambda: told.append("aligned"))
    platform = _platform(catalog, Kafka(), alignment)
    one, other = Upkeep(platform), Upkeep(platform)
    tidied: list[Upkeep] = []
    monkeypatch.setattr(Upkeep, "_tidy", lambda upkeep, _ticks: tidied.append(upkeep))
    for tick in range(2):
        one._keep_up(tick)
        other._keep_up(tick)
    assert (told, tidied) == (["aligned"] * 4, [one] * 2)
    one.close()
    other._keep_up(2)
    assert tidied[2:] == [other]


def test_the_duty_is_given_back_now_and_then(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = _platform(catalog, Kafka(), OneDuty())
    one, other = Upkeep(platform), Upkeep(platform)
    monkeypatch.setattr(Upkeep, "_tidy", lambda *_: None)
    had = []
    for tick in range(4 * DUTY_TICKS):
        for name, upkeep in (("one", one), ("other", other)):
            if upkeep._on_duty():
                had.append((tick, name))
    assert {name for _, name in had} == {"one", "other"}
    assert len({tick for tick, _ in had}) == len(had), "never both"


def test_the_common_topics_are_made_once(catalog: Catalog) -> None:
    made: list[str] = []

    class Making(Kafka):
        def create_common_topics(self) -> None:
            made.append("try")
            if len(made) == 1:
                raise Unavailable("Kafka is away")

    upkeep = Upkeep(_platform(catalog, Making(), Alignment()))
    for tick in (1, 2, 4):
        upkeep._tidy(tick)
    assert len(made) == 2, "until it worked"


def _let_expire(catalog: Catalog) -> None:
    user, now = _user(catalog), catalog.clock()
    over = {"created_at": now, "expires_at": now - timedelta(seconds=1)}
    with catalog.bookkeeping() as session:
        session.add(Session(user_id=user, token_hash="x", **over))

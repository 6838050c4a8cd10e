"""A call that is refused leaves no topics behind, and takes none that others have."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from catalog.errors import Conflict, InvalidInput, PlatformError, Unavailable
from catalog.limits import Limits
from catalog.models import Object, SchemaRow, User
from catalog.models import Session as LoginSession
from catalog.record_format import USUAL
from catalog.sessions import token_hash
from catalog.spaces import Spaces
from catalog.stored_form import to_stored
from catalog.time_source import TimeSource
from catalog.user_limits import UserLimits
from secadmin.control.new_streams import StreamDefinition, add_stream
from secadmin.control.new_topics import new_topics
from secadmin.control.platform import Platform
from secadmin.control.queries import add_query
from secadmin.control.query_definition import QueryDefinition
from secadmin.control.work import Caller
from tests.unit.secadmin.control.place import SCHEMA, Place
from tests.unit.secadmin.control.place import add_stream as put_stream

BOB = Caller("bob's token", "bob")


@dataclass
class Kafka:
    """The topics that are there, and those that ever were made."""

    topics: set[str] = field(default_factory=set)
    made: list[str] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    can_delete: bool = True

    def create_stream_topics(self, stream: str, partitions: int, *, ruled: bool = False) -> None:
        kinds = ("lab", "quarantine", "parked") if ruled else ("lab", "quarantine")
        self._make(*(f"{kind}.{stream}" for kind in kinds))

    def create_output_topics(self, output: str) -> None:
        self._make(f"lab.{output}")

    def _make(self, *topics: str) -> None:
        self.made += topics
        self.topics |= set(topics)
        self.meanwhile()

    def delete_topics(self, topics: Sequence[str]) -> None:
        if not self.can_delete:
            raise Unavailable("Kafka is away")
        self.topics -= set(topics)

    def partitions(self, topics: Sequence[str]) -> Mapping[str, int]:
        return {topic: 1 for topic in topics if topic in self.topics}

    def end_offsets(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        return {topic: {"0": 0} for topic in topics}


@dataclass
class Adding:
    """Bob, who may add streams and queries."""

    place: Place
    kafka: Kafka = field(default_factory=Kafka)
    locked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = self.place.world
        schema = world.get_object("schema s").id
        world.add(SchemaRow(object_id=schema, definition=to_stored(SCHEMA)))
        for permission in ("ADD STREAM", "ADD QUERY", "CHANGE SYSTEM"):
            world.grant("R", permission, "system system")
        world.grant("R", "VIEW OBJECT", "schema s")
        session = world.session("bob", "R")
        world.edit(LoginSession, session.id, token_hash=token_hash(BOB.token))
        self.parts = SimpleNamespace(
            catalog=self.place.catalog,
            kafka=self.kafka,
            alignment=SimpleNamespace(lock=self._lock, align=lambda topics: None),
            limits=Limits(),
            user_limits=UserLimits(),
            spaces=Spaces(),
            clock=self.place.catalog.clock,
            refills_due=threading.Event(),
        )
        self.platform = cast(Platform, self.parts)

    @contextmanager
    def _lock(self, topics: Collection[str], wait: timedelta) -> Iterator[None]:
        self.locked += topics
        yield
        for topic in topics:
            self.locked.remove(topic)

    def stream(self, name: str = "x", **other: Any) -> None:
        broker = (None, TimeSource.BROKER, None, 0, 1)
        add_stream(
            self.platform,
            BOB,
            StreamDefinition(name, "s", *broker, 1, False, None, USUAL, **other),
        )

    def query(self, name: str = "x") -> None:
        text = "SELECT a FROM in1"
        add_query(self.platform, BOB, QueryDefinition(name, "sql", text, output="x"))


@pytest.fixture
def adding(place: Place) -> Adding:
    return Adding(place)


Add = Callable[[Adding], None]
STREAM: Add = lambda adding: adding.stream()  # noqa: E731
QUERY: Add = lambda adding: adding.query()  # noqa: E731
BOTH = pytest.mark.parametrize("add", [STREAM, QUERY], ids=["stream", "query"])


@BOTH
def test_what_is_added_has_its_topics(adding: Adding, add: Add) -> None:
    add(adding)
    assert "lab.x" in adding.kafka.topics
    with pytest.raises(Conflict, match="taken"):
        add(adding)
    assert "lab.x" in adding.kafka.topics


@BOTH
def test_where_an_engine_is_full_no_topic_is_made(adding: Adding, add: Add) -> None:
    adding.parts.limits = Limits(slots=0)
    with pytest.raises(Conflict, match="full"):
        add(adding)
    assert adding.kafka.made == []


def test_a_user_at_its_limit_makes_no_topic(adding: Adding) -> None:
    adding.parts.user_limits = UserLimits(running_queries=0)
    with pytest.raises(Conflict, match="running queries"):
        adding.query()
    assert adding.kafka.made == []


@BOTH
def test_a_user_has_so_many_streams_and_outputs(adding: Adding, add: Add) -> None:
    world, now = adding.place.world, adding.place.catalog.clock()
    own = world.get_object("output out1").id
    world.edit(Object, own, owner_id=world.get(User, "bob").id)
    adding.place.revoke("CHANGE SYSTEM", "system system")
    adding.parts.user_limits = UserLimits(streams_and_outputs=1)
    held = r"streams and outputs of a user is 1: there are 1, .* remove one first, and wait"
    with pytest.raises(Conflict, match=held):
        add(adding)
    assert adding.kafka.made == []
    # What is removed counts until its topics are deleted.
    world.edit(Object, own, removed_at=now)
    with pytest.raises(Conflict, match=held):
        add(adding)
    world.edit(Object, own, gone_at=now)
    add(adding)
    with pytest.raises(Conflict, match=held):
        adding.stream("y")


def test_an_administrator_may_have_more(adding: Adding) -> None:
    adding.parts.user_limits = UserLimits(streams_and_outputs=1)
    for name in ("x", "y"):
        adding.stream(name)


def test_a_rule_with_an_unknown_role_makes_no_topic(adding: Adding) -> None:
    with pytest.raises(InvalidInput, match="no role of that name"):
        adding.stream(label_rule="'nobody'")
    assert adding.kafka.made == []


@BOTH
def test_if_it_is_full_meanwhile_the_topics_go_again(adding: Adding, add: Add) -> None:
    def fill() -> None:
        assert adding.locked, "no other call makes or deletes these topics"
        adding.parts.limits = Limits(slots=0)

    adding.kafka.meanwhile = fill
    adding.kafka.topics = {"quarantine.x"}
    with pytest.raises(Conflict, match="full"):
        add(adding)
    assert "lab.x" in adding.kafka.made
    assert adding.kafka.topics == {"quarantine.x"}, "it was there before"


@BOTH
def test_topics_of_an_object_that_is_there_stay(adding: Adding, add: Add) -> None:
    def take_the_name() -> None:
        put_stream(adding.place.world, "x", 90)

    adding.kafka.meanwhile = take_the_name
    with pytest.raises(Conflict, match="taken"):
        add(adding)
    assert "lab.x" in adding.kafka.topics


def test_the_refusal_comes_through_if_the_topics_cannot_be_deleted(
    adding: Adding, caplog: pytest.LogCaptureFixture
) -> None:
    adding.kafka.can_delete = False
    adding.kafka.meanwhile = lambda: setattr(adding.parts, "limits", Limits(slots=0))
    with caplog.at_level(logging.WARNING), pytest.raises(Conflict, match="full"):
        adding.stream()
    assert "lab.x, quarantine.x: Kafka is away" in caplog.text


def test_nothing_is_deleted_when_the_locks_may_be_lost(
    adding: Adding, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("secadmin.control.new_topics._DELETES_WITHIN_S", -1.0)
    adding.kafka.meanwhile = lambda: setattr(adding.parts, "limits", Limits(slots=0))
    with caplog.at_level(logging.WARNING), pytest.raises(Conflict, match="full"):
        adding.stream()
    assert adding.kafka.topics == {"lab.x", "quarantine.x"}
    assert "Kafka is too slow" in caplog.text


@pytest.mark.parametrize("made", [False, True])
def test_topics_stay_only_if_their_object_may_be_there(adding: Adding, made: bool) -> None:
    def create() -> None:
        adding.kafka.create_output_topics("y")
        if not made:
            raise Unavailable("Kafka does not serve it")

    with pytest.raises(PlatformError), new_topics(adding.platform, ["lab.y"], create):
        raise Unavailable("the database does not answer")
    assert adding.kafka.topics == ({"lab.y"} if made else set())

"""Rights that grow and shrink take from a subscriber no topic that it may go on reading.

Tuples are written to the delivery topics here as the data plane writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import Producer
from sqlalchemy import select

from catalog.delivery import Delivery
from catalog.delivery_classes import delivery_of
from catalog.executions import execution_of
from catalog.models import CategoryRow, DeliveryClass, Object
from catalog.pulse import Pulse
from catalog.run_names import query_run_name
from catalog.runs import RunReport, fingerprint
from catalog.settings import Settings
from catalog.wanted import report_status, wanted_runs
from secadmin.control import fed_topics
from secadmin.control.fed_topics import cut_replaced, note_fed
from secadmin.control.platform import Platform
from secadmin.kafka.acl import group_prefix
from secadmin.kafka.principals import Credentials
from tests.heartbeat import let_beat
from tests.integration.brokers import embedded_only
from tests.integration.kafka.clients import (
    DENIED_TOPIC,
    parked_reader,
    reader,
    secadmin_producer,
    write,
)
from tests.integration.service.conftest import Api, NewUser, add_stream, topics_of

pytestmark = embedded_only

Fresh = Callable[[str], str]
GROWTHS = ["a grant", "a junior role", "a junior's junior role"]


@dataclass
class Exchange:
    """An output over two streams. The role `first` reads one, and nobody the other yet."""

    admin: Api
    platform: Platform
    settings: Settings
    new_user: NewUser
    streams: tuple[str, str]
    output: str
    first: str
    second: str
    producer: Producer

    def change(self, path: str, role: str, stream: str, *permissions: str) -> None:
        """Grant permissions on a stream to a role, or revoke them."""
        body = {"role": role, "kind": "stream", "name": stream}
        self.admin.post(path, **body, permissions=list(permissions or ("READ TUPLE",)))

    def subscribe(self, user: Api, keep: bool = False) -> Credentials:
        """The user subscribes."""
        given = user.post(f"/outputs/{self.output}/subscriptions", keep=keep)
        return Credentials(given["principal"], given["secret"])

    def topics(self, credentials: Credentials) -> set[str]:
        """What the catalog lets it read."""
        return topics_of(self.platform, credentials.username)

    def delivery(self, topic: str) -> Delivery | None:
        """What goes to a topic."""
        with self.platform.catalog.read() as session:
            found = select(DeliveryClass).where(DeliveryClass.topic == topic)
            return delivery_of(session.scalars(found).one())

    def bits(self, stream: str) -> int:
        """The stream's category, as the bits of a label."""
        found = select(CategoryRow.bit).join(Object, Object.id == CategoryRow.stream_id)
        with self.platform.catalog.read() as session:
            return 1 << session.scalars(found.where(Object.name == stream)).one()

    def write(self, topic: str, *values: str) -> None:
        """Write as the data plane does."""
        write(self.producer, topic, values)

    def grow(self, how: str) -> Callable[[], None]:
        """Let the role `first` read the other stream as well; gives what takes that again."""
        if how == "a grant":
            self.change("/grants", self.first, self.streams[1])
            return lambda: self.change("/revocations", self.first, self.streams[1])
        self.change("/grants", self.second, self.streams[1])
        junior = self.second
        if how == "a junior's junior role":
            junior = f"{self.second}x"
            self.admin.post("/roles", name=junior)
            self.admin.post(f"/roles/{junior}/juniors", role=self.second)
        self.admin.post(f"/roles/{self.first}/juniors", role=junior)
        return lambda: self.admin.delete(f"/roles/{self.first}/juniors/{junior}")

    def let_feed(self) -> None:
        """Let the runner say that it runs what is wanted of the output."""
        let_beat(self.platform)
        with self.platform.catalog.read() as session:
            own = select(Object.id).where(Object.name == self.output, Object.kind == "output")
            name = query_run_name(execution_of(session, session.scalars(own).one()))
            run = next(run for run in wanted_runs(session) if run.name == name)
        with self.platform.catalog.bookkeeping() as session:
            report = RunReport(run.name, "running", "", fingerprint(run))
            report_status(session, report, self.platform.clock())


@pytest.fixture
def exchange(
    admin: Api, platform: Platform, service_settings: Settings, new_user: NewUser, fresh: Fresh
) -> Iterator[Exchange]:
    streams, output = (fresh("a"), fresh("b")), fresh("out")
    first, second = fresh("F"), fresh("S")
    for stream in streams:
        add_stream(admin, stream, fresh("s"))
    for role in (first, second):
        admin.post("/roles", name=role)
    text = " UNION ALL ".join(f"SELECT ts, symbol FROM {stream}" for stream in streams)
    admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    made = Exchange(
        admin=admin,
        platform=platform,
        settings=service_settings,
        new_user=new_user,
        streams=streams,
        output=output,
        first=first,
        second=second,
        producer=secadmin_producer(service_settings.kafka),
    )
    for role in (first, second):
        body = {"kind": "output", "name": output, "permissions": ["VIEW OBJECT", "SUBSCRIBE"]}
        admin.post("/grants", role=role, **body)
    made.change("/grants", first, streams[0])
    yield made


@pytest.mark.parametrize("how", GROWTHS)
def test_what_grows_and_shrinks_touches_no_topic_that_stays(exchange: Exchange, how: str) -> None:
    credentials = exchange.subscribe(exchange.new_user(exchange.first))
    (stays,) = exchange.topics(credentials)
    kafka = exchange.settings.kafka
    group = f"{group_prefix(credentials.username)}other"
    commit: dict[str, Any] = {"enable.auto.commit": True}
    with (
        reader(kafka, credentials, **commit) as bob,
        reader(kafka, credentials, group) as other,
    ):
        bob.consumer.subscribe([rf"^out\.{exchange.output}\..*"])
        other.consumer.subscribe([stays])
        exchange.write(stays, "1")
        bob.read_until(lambda: bob.values == ["1"], "a record of the first stream")
        other.read_until(lambda: other.values == ["1"], "a record of the first stream")
        take = exchange.grow(how)
        (added,) = exchange.topics(credentials) - {stays}
        exchange.write(added, "2")
        exchange.write(stays, "3")
        bob.read_until(lambda: set(bob.values) == {"1", "2", "3"}, "both")
        assert bob.errors == set(), "no call has refused anything"
        with parked_reader(kafka, credentials, added, 1) as hostile:
            take()
            assert exchange.topics(credentials) == {stays}
            exchange.write(added, "x" * 200_000)
            exchange.write(stays, "4")
            hostile.read_until(lambda: DENIED_TOPIC in hostile.errors, "the refusal")
            assert hostile.values == []
        other.read_until(lambda: other.values == ["1", "3", "4"], "the first stream")
        assert other.errors == set(), "its topic was denied at no time"
        bob.read_until(lambda: "4" in bob.values, "the first stream")
        assert sorted(bob.values) == ["1", "2", "3", "4"]


def test_an_added_topic_takes_what_the_other_does_not(exchange: Exchange) -> None:
    credentials = exchange.subscribe(exchange.new_user(exchange.first))
    (stays,) = exchange.topics(credentials)
    exchange.grow("a grant")
    (added,) = exchange.topics(credentials) - {stays}
    one, more = exchange.delivery(stays), exchange.delivery(added)
    assert one is not None and more is not None
    assert one.beyond is None and more.beyond == one.clearance
    first, second = map(exchange.bits, exchange.streams)
    assert (one.clearance.bits, more.clearance.bits) == (first, first | second)


def test_subscribers_of_other_rights_notice_nothing(exchange: Exchange) -> None:
    """Of five, the two of one role grow and shrink; one ends with the role it activated."""
    admin, both = exchange.admin, f"{exchange.first}y"
    admin.post("/roles", name=both)
    for role in (exchange.first, exchange.second):
        admin.post(f"/roles/{both}/juniors", role=role)
    exchange.change("/grants", exchange.second, exchange.streams[1])
    kept = f"{exchange.first}z"
    admin.post("/roles", name=kept)
    admin.post(f"/roles/{kept}/juniors", role=exchange.first)
    users = {
        "of the first": exchange.new_user(exchange.first),
        "kept": exchange.new_user(exchange.first),
        "of the second": exchange.new_user(exchange.second),
        "of both": exchange.new_user(both),
        "of a senior": exchange.new_user(kept),
    }
    own = {name: exchange.subscribe(user, name == "kept") for name, user in users.items()}
    before = {name: exchange.topics(each) for name, each in own.items()}
    take = exchange.grow("a grant")
    grown = {name: exchange.topics(each) for name, each in own.items()}
    for name in ("of the first", "kept", "of a senior"):
        assert len(grown[name]) == 2 and before[name] < grown[name]
    for name in ("of the second", "of both"):
        assert grown[name] == before[name]
    added = {name: grown[name] - before[name] for name in grown if grown[name] != before[name]}
    assert len({frozenset(topics) for topics in added.values()}) == 1, "equal rights, one class"
    take()
    assert {name: exchange.topics(each) for name, each in own.items()} == before
    users["of the first"].delete(f"/whoami/roles/{exchange.first}")
    after = {name: exchange.topics(each) for name, each in own.items()}
    assert after == {**before, "of the first": set()}


def test_a_role_that_is_assigned_shows_in_a_new_session_alone(exchange: Exchange) -> None:
    """A subscription has the roles that it was made with, and no others."""
    exchange.change("/grants", exchange.second, exchange.streams[1])
    user = exchange.new_user(exchange.first)
    credentials = exchange.subscribe(user)
    before = exchange.topics(credentials)
    exchange.admin.post(f"/users/{user.user}/roles", role=exchange.second)
    assert exchange.topics(credentials) == before
    exchange.admin.delete(f"/users/{user.user}/roles/{exchange.second}")
    assert exchange.topics(credentials) == before


def test_where_no_difference_goes_the_old_topic_leaves_when_the_new_one_is_fed(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange.admin.put(f"/outputs/{exchange.output}/semantics", weak=True)
    bob = exchange.new_user(exchange.first)
    credentials = exchange.subscribe(bob)
    (old,) = exchange.topics(credentials)
    exchange.let_feed()
    note_fed(exchange.platform)
    exchange.grow("a grant")
    (new,) = exchange.topics(credentials) - {old}
    delivery = exchange.delivery(new)
    assert delivery is not None and delivery.beyond is None
    cut_replaced(exchange.platform)
    assert shown(bob)["fed"] is False and shown(bob)["fed_since"] is None
    with reader(exchange.settings.kafka, credentials) as client:
        client.consumer.subscribe([rf"^out\.{exchange.output}\..*"])
        exchange.write(old, "1")
        client.read_until(lambda: client.values == ["1"], "what comes before the new one is fed")
        exchange.let_feed()
        note_fed(exchange.platform)
        cut_replaced(exchange.platform)
        assert exchange.topics(credentials) == {old, new}, "who is a little behind misses nothing"
        assert shown(bob)["fed"] is True and shown(bob)["fed_since"] is not None
        assert shown(bob)["topics"] == sorted((old, new))
        exchange.write(new, "2")
        client.read_until(lambda: client.values == ["1", "2"], "the new topic")
        monkeypatch.setattr(fed_topics, "OVERLAP", timedelta(0))
        cut_replaced(exchange.platform)
        assert exchange.topics(credentials) == {new}
        exchange.write(old, "late")
        exchange.write(new, "3")
        client.read_until(lambda: client.values == ["1", "2", "3"], "the new topic alone")


def test_nothing_is_fed_while_the_runner_is_dead(exchange: Exchange) -> None:
    bob = exchange.new_user(exchange.first)
    exchange.subscribe(bob)
    exchange.let_feed()
    note_fed(replace(exchange.platform, pulse=Pulse()))
    assert shown(bob)["fed_since"] is None


def shown(user: Api) -> dict[str, Any]:
    """The user's one access, as it is listed."""
    (access,) = user.get("/accesses")
    return dict(access)

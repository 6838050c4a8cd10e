"""Who may SEND to a stream is not shown its declared aggregate, from when the call has returned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from catalog.settings import Settings
from secadmin.control.platform import Platform
from secadmin.kafka.principals import Credentials
from tests.integration.kafka.clients import (
    parked_reader,
    reader,
    secadmin_producer,
    write,
)
from tests.integration.service.conftest import (
    PASSWORD,
    Api,
    NewUser,
    add_stream,
    let_take_the_aggregate,
    log_in,
    topics_of,
)
from tests.integration.service.test_aggregate_read import DECLARED, FITS

Fresh = Callable[[str], str]


@dataclass
class Market:
    """A stream whose declared aggregate the role `readers` is shown, and a role of senders.

    Ann reads; she is a member of `idle`, too, which holds nothing, and which is not active.
    """

    admin: Api
    platform: Platform
    stream: str
    output: str
    readers: str
    senders: str
    idle: str
    ann: Api

    def change(self, path: str, role: str, permission: str) -> Any:
        """Grant a permission on the stream to the role, or revoke it."""
        body = {"permissions": [permission], "kind": "stream", "name": self.stream}
        return self.admin.post(path, role=role, **body)

    def subscribe(self, user: Api, keep: bool = False) -> Credentials:
        """The user subscribes to the aggregate."""
        given = user.post(f"/outputs/{self.output}/subscriptions", keep=keep)
        return Credentials(given["principal"], given["secret"])

    def topic(self, credentials: Credentials) -> str | None:
        """What the catalog lets the principal read."""
        found = topics_of(self.platform, credentials.username)
        assert len(found) <= 1
        return next(iter(found), None)


@pytest.fixture
def market(admin: Api, platform: Platform, new_user: NewUser, fresh: Fresh) -> Market:
    stream, output = fresh("in"), fresh("mean")
    add_stream(admin, stream, fresh("s"), declared_aggregate=DECLARED)
    let_take_the_aggregate(admin, stream)
    admin.post("/queries", name=output, language="sql", text=FITS.format(stream=stream))
    readers, senders, idle = fresh("R"), fresh("S"), fresh("I")
    ann = new_user(readers, idle)
    admin.post("/roles", name=senders)
    only_reading = log_in(Api(ann.client), ann.user, PASSWORD, [readers])
    made = Market(admin, platform, stream, output, readers, senders, idle, only_reading)
    made.change("/grants", readers, "READ AGGREGATE")
    made.change("/grants", senders, "SEND")
    rights = ["VIEW OBJECT", "SUBSCRIBE"]
    admin.post("/grants", role=readers, permissions=rights, kind="output", name=output)
    return made


@dataclass(frozen=True)
class Way:
    """A call by which Ann may send, and one that takes it back."""

    name: str
    take: Callable[[Market], Any]
    give_back: Callable[[Market], Any]


WAYS = (
    Way(
        "grant",
        lambda m: m.change("/grants", m.idle, "SEND"),
        lambda m: m.change("/revocations", m.idle, "SEND"),
    ),
    Way(
        "role",
        lambda m: m.admin.post(f"/users/{m.ann.user}/roles", role=m.senders),
        lambda m: m.admin.delete(f"/users/{m.ann.user}/roles/{m.senders}"),
    ),
    Way(
        "junior",
        lambda m: m.admin.post(f"/roles/{m.idle}/juniors", role=m.senders),
        lambda m: m.admin.delete(f"/roles/{m.idle}/juniors/{m.senders}"),
    ),
    Way(
        "removed role",
        lambda m: m.admin.post(f"/users/{m.ann.user}/roles", role=m.senders),
        lambda m: m.admin.delete(f"/roles/{m.senders}"),
    ),
)


@pytest.mark.parametrize("keep", [False, True], ids=["session", "kept"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_nothing_arrives_once_the_reader_may_send(
    market: Market, service_settings: Settings, new_user: NewUser, way: Way, keep: bool
) -> None:
    bob = new_user(market.readers)
    ann_reads, bob_reads = market.subscribe(market.ann, keep), market.subscribe(bob)
    topic = market.topic(ann_reads)
    assert topic is not None
    assert market.topic(bob_reads) == topic
    kafka = service_settings.kafka
    producer = secadmin_producer(kafka)
    with reader(kafka, ann_reads) as ann, parked_reader(kafka, ann_reads, topic, 1) as hostile:
        answer = way.take(market)
        assert [f"stream {market.stream}" in text for text in answer["warnings"]] == [True]
        write(producer, topic, ["after", "x" * 200_000])
        ann.consumer.subscribe([topic])
        ann.read_until_refused()
        hostile.read_until_refused()
        assert ann.values == hostile.values == []
    assert market.topic(ann_reads) is None
    assert market.topic(bob_reads) == topic
    way.give_back(market)
    assert market.topic(ann_reads) == topic
    with reader(kafka, ann_reads) as ann:
        ann.consumer.subscribe([topic])
        ann.read_until(lambda: "after" in ann.values, "what is hers again")


def test_it_stays_taken_until_no_role_lets_her_send(market: Market) -> None:
    credentials = market.subscribe(market.ann)
    for way in WAYS[:2]:
        way.take(market)
        assert market.topic(credentials) is None
    WAYS[0].give_back(market)
    assert market.topic(credentials) is None
    WAYS[1].give_back(market)
    assert market.topic(credentials) is not None


def test_users_with_equal_roles_are_told_apart_in_one_settlement(
    market: Market, new_user: NewUser
) -> None:
    """Whoever of them is looked at first."""
    market.change("/revocations", market.readers, "READ AGGREGATE")
    people = [new_user(market.readers) for _ in range(4)]
    market.admin.post(f"/users/{people[1].user}/roles", role=market.senders)
    market.admin.post(f"/users/{people[2].user}/roles", role=market.senders)
    reads = [market.subscribe(user) for user in people]
    for path in ("/grants", "/revocations", "/grants"):
        market.change(path, market.readers, "READ AGGREGATE")
        gets = [market.topic(one) is not None for one in reads]
        assert gets == [path == "/grants", False, False, path == "/grants"]


def test_who_may_send_gets_none_by_a_new_subscription_either(market: Market) -> None:
    WAYS[0].take(market)
    assert market.topic(market.subscribe(market.ann)) is None
    (allowed, reason), *_ = [
        (way["allowed"], way["reason"])
        for way in market.admin.get(
            "/explain",
            user=market.ann.user,
            permission="READ AGGREGATE",
            kind="stream",
            name=market.stream,
        )["reasons"]
        if market.readers in way["reason"]
    ]
    assert not allowed
    assert f"role {market.idle} lets {market.ann.user} SEND there" in reason
    market.change("/grants", market.readers, "READ TUPLE")
    assert market.topic(market.subscribe(market.ann)) is not None, "she is shown the tuples"


def test_warnings_name_no_users_and_no_hidden_streams(
    market: Market, admin: Api, new_user: NewUser, fresh: Fresh
) -> None:
    owners, chiefs = fresh("O"), fresh("C")
    owner, chief = new_user(owners), new_user(chiefs)
    for permission in ("CHANGE PERM", "VIEW OBJECT"):
        market.change("/grants", owners, permission)
    admin.post("/grants", role=chiefs, permissions=["CHANGE SYSTEM"], kind="system")
    for caller in (admin, owner):
        body = {"permissions": ["SEND"], "kind": "stream", "name": market.stream}
        (warning,) = caller.post("/grants", role=market.idle, **body)["warnings"]
        assert f"stream {market.stream}" in warning
        assert market.ann.user not in warning
    market.change("/revocations", market.idle, "SEND")
    (warning,) = chief.post(f"/users/{market.ann.user}/roles", role=market.senders)["warnings"]
    assert "a stream that you may not view" in warning
    assert market.stream not in warning
    assert market.change("/grants", market.readers, "VIEW OBJECT")["warnings"] == []
    assert len(market.change("/grants", market.readers, "READ AGGREGATE")["warnings"]) == 1

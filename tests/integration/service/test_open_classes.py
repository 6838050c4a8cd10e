"""A class that nobody subscribes to is closed; an output has a limited number of classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, select

from catalog.limits import Limits
from catalog.models import Access, AccessTopic, DeliveryClass, Refill
from catalog.runs import QueryRun, RunReport
from catalog.wanted import report_status, wanted_runs
from secadmin.control.open_classes import close_idle, delete_closed
from secadmin.control.platform import Platform
from secadmin.kafka.principals import Credentials
from secadmin.service.app import create_app
from tests.integration.kafka.clients import reader
from tests.integration.service.conftest import (
    Api,
    NewUser,
    Scene,
    add_stream,
    decided_by_the_database,
)
from tests.integration.service.test_upkeep import apply_generation

pytestmark = decided_by_the_database

Fresh = Callable[[str], str]


def at_once(platform: Platform) -> Platform:
    """The platform as it would be when all idle classes have been so for long."""
    return replace(platform, idle_class=timedelta(0))


def fed(platform: Platform, topic: str) -> bool:
    """Whether a run should write the topic."""
    with platform.catalog.read() as session:
        runs = [run for run in wanted_runs(session) if isinstance(run, QueryRun)]
    return any(topic == each.topic for run in runs for each in run.classes)


def delete_all_closed(platform: Platform) -> None:
    """Delete what can be deleted, also what other tests left, of which some go at a time."""
    left, before = _left(platform), -1
    while left != before:
        delete_closed(platform)
        left, before = _left(platform), left


def _left(platform: Platform) -> int:
    closed = (DeliveryClass.closed_at.is_not(None), DeliveryClass.removed_at.is_(None))
    with platform.catalog.read() as session:
        return len(session.scalars(select(DeliveryClass.id).where(*closed)).all())


def test_an_idle_class_is_closed_and_its_topic_goes(scene: Scene) -> None:
    first = scene.subscribe()
    topic = str(scene.topic(first.username))
    close_idle(at_once(scene.platform))
    assert fed(scene.platform, topic), "somebody subscribes to it"
    scene.bob.delete(f"/accesses/{first.username}")
    close_idle(scene.platform)
    assert fed(scene.platform, topic), "it has not been idle for long"
    second = scene.subscribe()
    assert scene.topic(second.username) == topic, "so who comes again has it at once"
    scene.bob.delete(f"/accesses/{second.username}")
    close_idle(at_once(scene.platform))
    assert not fed(scene.platform, topic)
    delete_all_closed(scene.platform)
    assert scene.platform.kafka.end_offsets([topic]), "no engine has let go of it yet"
    apply_generation(scene.platform)
    delete_all_closed(scene.platform)
    assert scene.platform.kafka.partitions([topic]) == {}
    third = scene.subscribe()
    newest = str(scene.topic(third.username))
    assert newest != topic and fed(scene.platform, newest)
    with reader(scene.settings.kafka, third) as bob:
        bob.consumer.subscribe([newest])
        scene.write(newest, "shown")
        bob.read_until(lambda: bob.values == ["shown"], "what comes to the new class")


def test_the_topic_stays_while_a_run_writes_it(scene: Scene) -> None:
    credentials = scene.subscribe()
    topic = str(scene.topic(credentials.username))
    scene.bob.delete(f"/accesses/{credentials.username}")
    close_idle(at_once(scene.platform))
    for used, there in (({topic}, True), (set(), False)):
        with scene.platform.catalog.bookkeeping() as session:
            report = RunReport("query-0", "running", topics=frozenset(used))
            report_status(session, report, scene.platform.clock())
        apply_generation(scene.platform)
        delete_all_closed(scene.platform)
        with scene.platform.catalog.read() as session:
            row = session.scalars(select(DeliveryClass).where(DeliveryClass.topic == topic)).one()
        assert (row.removed_at is None) is there


@dataclass
class Market:
    """An output over five streams at a service where it may have two classes."""

    admin: Api
    platform: Platform
    api: Api
    streams: list[str]
    output: str
    new_user: NewUser
    fresh: Fresh

    def subscriber(self, *streams: str) -> Api:
        """A user who may subscribe and read these streams, logged in at that service."""
        role = self.fresh("R")
        user = self.new_user(role)
        for right in ("VIEW OBJECT", "SUBSCRIBE"):
            self.change("/grants", role, "output", self.output, right)
        for stream in streams:
            self.change("/grants", role, "stream", stream)
        return Api(self.api.client, user.token, role)

    def change(
        self, path: str, role: str, kind: str, name: str, right: str = "READ TUPLE"
    ) -> tuple[int, str]:
        """Grant or revoke, as the administrator; the status of the answer, and its words."""
        body = {"role": role, "permissions": [right], "kind": kind, "name": name}
        answer = self.api.call("POST", path, json=body)
        return answer.status_code, answer.text

    def subscribe(self, user: Api) -> tuple[int, str]:
        """Subscribe; the status of the answer, and the principal or the answer's words."""
        here = Api(self.api.client, user.token)
        answer = here.call("POST", f"/outputs/{self.output}/subscriptions", json={"keep": False})
        return answer.status_code, answer.json().get("principal", answer.text)

    @contextmanager
    def limited(self, limits: Limits) -> Iterator[Market]:
        """The same market at a service with these limits."""
        platform = replace(self.platform, limits=limits)
        with TestClient(create_app(platform), raise_server_exceptions=False) as client:
            yield replace(self, platform=platform, api=Api(client, self.admin.token))

    def classes(self) -> int:
        """How many classes of the output are open."""
        number = self.admin.get(f"/outputs/{self.output}")["execution"]
        with self.platform.catalog.read() as session:
            own = select(DeliveryClass).where(DeliveryClass.output_id == number)
            return len(session.scalars(own.where(DeliveryClass.closed_at.is_(None))).all())


@pytest.fixture
def market(admin: Api, platform: Platform, new_user: NewUser, fresh: Fresh) -> Iterator[Market]:
    limited = replace(platform, limits=Limits(slots=100_000, senders=10_000, classes=2))
    streams, output = [fresh("in") for _ in range(5)], fresh("out")
    for stream in streams:
        add_stream(admin, stream, fresh("s"))
    text = " UNION ALL ".join(f"SELECT ts, symbol FROM {stream}" for stream in streams)
    admin.post("/queries", name=fresh("q"), language="sql", text=text, output=output)
    with TestClient(create_app(limited), raise_server_exceptions=False) as client:
        api = Api(client, admin.token)
        yield Market(admin, limited, api, streams, output, new_user, fresh)


def test_no_call_that_gives_opens_more_classes_than_an_output_may_have(market: Market) -> None:
    one, two, three, *_ = market.streams
    users = [market.subscriber(one), market.subscriber(two), market.subscriber(one, two)]
    assert [market.subscribe(user)[0] for user in users[:2]] == [201, 201]
    status, words = market.subscribe(users[2])
    assert status == 409 and f"output '{market.output}' has no room" in words
    assert "3" not in words.replace(market.output, ""), "nothing is said about how many others have"
    status, words = market.change("/grants", users[0].user, "stream", three)
    assert status == 409 and "or end subscriptions" in words
    assert market.classes() == 2
    # Who has the same rights as another shares its class.
    assert market.subscribe(market.subscriber(one))[0] == 201
    # What was refused changed nothing.
    assert len(users[0].get("/accesses")[0]["topics"]) == 1
    # A class that nobody has makes room, however short it has been idle.
    (access,) = users[1].get("/accesses")
    users[1].delete(f"/accesses/{access['principal']}")
    assert market.subscribe(users[2])[0] == 201
    assert market.classes() == 2


def test_one_user_cannot_fill_an_output_alone(market: Market) -> None:
    one, two, *_ = market.streams
    user, other = market.subscriber(one), market.subscriber(one, two)
    with market.limited(Limits(slots=100_000, senders=10_000, classes=8, classes_a_user=2)) as wide:
        assert [wide.subscribe(user)[0] for _ in range(2)] == [201, 201]
        # Each of the two subscriptions has one more class now, which both share.
        assert wide.change("/grants", user.user, "stream", two)[0] == 200
        status, words = wide.subscribe(user)
        assert status == 409 and "would hold 3 delivery classes" in words and "may hold 2" in words
        assert wide.subscribe(other)[0] == 201
        # Another one's call is not refused for what the user holds.
        assert wide.change("/grants", user.user, "stream", market.streams[2])[0] == 200
        assert wide.classes() == 4


def test_a_revocation_is_never_refused_for_it(market: Market) -> None:
    one, two, three, *_ = market.streams
    users = [market.subscriber(one, two, three), market.subscriber(one, two, three)]
    users.append(market.subscriber(two, three))
    assert [market.subscribe(user)[0] for user in users] == [201, 201, 201]
    for user, stream in ((users[0], one), (users[1], two), (users[2], three)):
        assert market.change("/revocations", user.user, "stream", stream)[0] == 200
    # They may read two and three; one and three; two.
    assert [len(user.get("/accesses")[0]["topics"]) for user in users] == [1, 1, 1]
    assert market.classes() == 4, "and the one that nobody has any more"
    close_idle(market.platform)
    assert market.classes() == 4, "the smaller classes are refilled from it"
    with market.platform.catalog.bookkeeping() as session:
        session.execute(delete(Refill))
    close_idle(market.platform)
    assert market.classes() == 3, "what is idle beyond the limit goes, however short it is so"
    assert market.change("/grants", users[0].user, "stream", market.streams[3])[0] == 409


def test_a_subscription_that_races_with_the_closing_has_an_open_class(scene: Scene) -> None:
    closing = at_once(scene.platform)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(8):
            left = scene.subscribe()
            scene.bob.delete(f"/accesses/{left.username}")
            closed, made = pool.submit(close_idle, closing), pool.submit(scene.subscribe)
            closed.result()
            _has_open_class(scene, made.result())
            scene.bob.delete(f"/accesses/{made.result().username}")


def _has_open_class(scene: Scene, credentials: Credentials) -> None:
    own = (
        select(DeliveryClass)
        .join(AccessTopic, AccessTopic.class_id == DeliveryClass.id)
        .join(Access, Access.id == AccessTopic.access_id)
        .where(Access.principal == credentials.username)
    )
    with scene.platform.catalog.read() as session:
        found = session.scalars(own).one()
    assert found.closed_at is None and fed(scene.platform, found.topic)

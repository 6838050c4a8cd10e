"""SecAdmin is killed between any two things that a call changes, and started again.

Once it is ready, catalog and Kafka agree, nothing that was written later reaches whom the catalog
does not let in, and a call that was cut off has not said that it was done.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import delete, select

from catalog.models import Lease, Withdrawal
from catalog.passwords import Passwords
from catalog.settings import Settings
from secadmin.__main__ import build_platform
from secadmin.control.platform import Platform
from secadmin.control.upkeep import start_up
from secadmin.control.wanted_access import wanted_state
from secadmin.kafka.acl import Operation, TopicAcl
from secadmin.kafka.acls import Acls
from secadmin.kafka.connect import AdminClients
from secadmin.kafka.principals import Credentials
from secadmin.kafka.segment_setting import SegmentSetting
from secadmin.kafka.wire.connections import BrokerConnections
from tests.integration.brokers import embedded_only
from tests.integration.service.conftest import PASSWORD, Api, log_in, sqlite_only
from tests.integration.service.revocations.killed_service import Request, killed_before
from tests.integration.service.revocations.party import Party, parked_alone
from tests.integration.service.revocations.surroundings import Surroundings, flowing
from tests.integration.service.revocations.team import Member, Objects, Team, new_objects
from tests.integration.service.revocations.waiting import wait_until
from tests.integration.service.revocations.watching_client import Subscription
from tests.lanes import number_of, sampled

# Of any call: its commit, the lock of the topic, the ACL, what is written down of it.
_FEWEST_CHANGES, _MOST_CHANGES = 5, 60
_STEP = number_of("KILLED_STEP", sample=6, long=1)

# Minutes long: once is enough, and neither the database nor the broker's home matters here.
pytestmark = [pytest.mark.slow, embedded_only, sqlite_only]


@pytest.fixture
def objects(admin: Api) -> Objects:
    return new_objects(admin)


@pytest.fixture
def surroundings(
    platform: Platform, service_settings: Settings, tmp_path: Path
) -> Iterator[Surroundings]:
    with flowing(platform, service_settings.kafka, tmp_path) as around:
        yield around


@dataclass
class Stage:
    """A member of a team, its subscription, and one that has ended before."""

    around: Surroundings
    settings: Settings
    team: Team
    member: Member
    party: Party
    gone: Party

    def restarted(self) -> float:
        """Start SecAdmin again; when it was ready to serve, catalog and Kafka having agreed."""
        started = build_platform(self.settings, Passwords(cost=4))
        try:
            _let_leases_end(started)
            start_up(started)
            ready = time.monotonic()
            self._agree(started)
            return ready
        finally:
            started.catalog.close()

    def expect_what_is_allowed(self, topic: str, began: float, ready: float) -> None:
        """After a call that `began` then: the client reads where the catalog says so, else not."""
        around, principal = self.around, self.party.principal
        if not self.is_allowed(topic):
            around.ledger.lost(principal, topic, ready)
            around.flow.fill(topic)
            self.party.wait_shut_out(ready, ready)
        else:
            around.ledger.regained(principal, topic, began)
            around.flow.fill(topic)
            self.party.wait_read(ready)
        for party in (self.party, self.gone):
            assert party.leaks(around.ledger, around.flow.started) == []

    def is_allowed(self, topic: str) -> bool:
        """Whether the catalog lets the party reach the topic."""
        return topic in self.around.topics([self.party.principal])[self.party.principal]

    def has_topic(self) -> bool:
        """Whether the catalog lets the party reach any topic."""
        return bool(self.around.topics([self.party.principal])[self.party.principal])

    def admit(self, stranger: Credentials) -> None:
        """Somebody whom the catalog does not know takes the place of the party."""
        self.party.stop()
        self.party.join()
        self.party = _reading(self.around, replace(self.party.subscription, credentials=stranger))

    def subscribe_anew(self) -> None:
        """The party's subscription has ended: another one takes its place."""
        self.party.stop()
        self.party.join()
        self.party = _subscribed(self.around, self.member, self.member.output)

    def _agree(self, started: Platform) -> None:
        kafka = self.settings.kafka
        admins = AdminClients.open(kafka)
        found = {
            (acl.principal, acl.topic)
            for acl in Acls(admins, BrokerConnections(kafka)).list_all()
            if isinstance(acl, TopicAcl) and acl.operation is Operation.READ
        }
        wanted = wanted_state(started.catalog).readers
        assert {pair for pair in found if self._is_ours(pair[1])} == {
            pair for pair in wanted if self._is_ours(pair[1])
        }
        with started.catalog.read() as session:
            open_ones = select(Withdrawal.topic).where(Withdrawal.done_at.is_(None))
            assert not [topic for topic in session.scalars(open_ones) if self._is_ours(topic)]
        topics = {topic for _, topic in found if self._is_ours(topic)}
        setting = SegmentSetting(admins, BrokerConnections(kafka))
        wait_until(lambda: not setting.shortened(topics), "for the setting to be taken back")

    def _is_ours(self, topic: str) -> bool:
        objects = self.team.objects
        return topic.startswith((f"out.{objects.one}.", f"out.{objects.both}."))


def _let_leases_end(platform: Platform) -> None:
    """A minute passes: what a killed service held is free again."""
    with platform.catalog.bookkeeping() as session:
        session.execute(delete(Lease))


NewStage = Callable[[Objects, str], Stage]


@pytest.fixture
def stage(surroundings: Surroundings, service_settings: Settings, admin: Api) -> Iterator[NewStage]:
    """Two members subscribe to the output; one of them ends its subscription."""
    made: list[Stage] = []

    def make(objects: Objects, output: str) -> Stage:
        team = Team.founded(admin, objects, 2)
        one, other = team.members
        party, gone = (_subscribed(surroundings, member, output) for member in team.members)
        other.session.delete(f"/accesses/{other.principal}")
        surroundings.ledger.lost(gone.principal, gone.subscription.topic, time.monotonic())
        made.append(Stage(surroundings, service_settings, team, one, party, gone))
        return made[-1]

    yield make
    for own in made:
        for party in (own.party, own.gone):
            party.stop()
            party.join()


def _subscribed(around: Surroundings, member: Member, output: str) -> Party:
    own = around.subscribe(member.session, output)
    member.principal, member.output = own.credentials.username, output
    return _reading(around, own)


def _reading(around: Surroundings, own: Subscription) -> Party:
    end = around.platform.kafka.end_offsets([own.topic])[own.topic]["0"]
    party = Party(own, parked_alone(own, end, Random()))
    party.start()
    party.wait_ready(0)
    return party


def killed_everywhere(stage: Stage, request: Callable[[], Request | None]) -> Iterator[int]:
    """Make the request, killed before its first change, its second and so on until it succeeds.

    The sample lane has every sixth change. Each time SecAdmin is started again, and what must
    hold then is checked. The block that iterates brings the state back in which the request was
    made.
    """
    for change in count(0, _STEP):
        assert change < _MOST_CHANGES
        topic, began = stage.party.subscription.topic, time.monotonic()
        status = killed_before(stage.settings, request(), change)
        stage.expect_what_is_allowed(topic, began, stage.restarted())
        if status is not None:
            assert status in (200, 201, 204)
            assert change >= _FEWEST_CHANGES
            break
        yield change


FIRST, SECOND = "first", "second"


@pytest.mark.parametrize("stream", sampled((FIRST, SECOND), 2))
def test_within_a_revocation_and_a_grant(
    stage: NewStage, admin: Api, objects: Objects, stream: str
) -> None:
    """Of the first stream all is lost, or given; without the second there is another class.

    Who grows again keeps that one, and gets what is missing beside it.
    """
    output, name = (
        (objects.one, objects.first) if stream == FIRST else (objects.both, objects.second)
    )
    made = stage(objects, output)
    body = {"role": made.team.role, "permissions": ["READ TUPLE"], "kind": "stream", "name": name}
    for there, back in (("/revocations", "/grants"), ("/grants", "/revocations")):
        for _ in killed_everywhere(made, partial(Request, "POST", there, str(admin.token), body)):
            topic, began = made.party.subscription.topic, time.monotonic()
            admin.post(back, **body)
            made.expect_what_is_allowed(topic, began, time.monotonic())
            if stream == SECOND and not made.is_allowed(topic):
                made.subscribe_anew()
        if stream == SECOND:
            made.subscribe_anew()


@pytest.mark.long
def test_within_a_policy_that_is_added_and_one_that_is_removed(
    stage: NewStage, admin: Api, objects: Objects
) -> None:
    """It hides rows of the stream. The output shows them, so all is lost, or given."""
    made = stage(objects, objects.one)
    path, token = f"/streams/{objects.first}/policies", str(admin.token)
    body = {"policy": "p", "role": made.team.role, "rows": "price > 5", "replace": True}
    add = partial(Request, "POST", path, token, body)
    remove = partial(Request, "DELETE", f"{path}/p", token)

    def is_there() -> bool:
        return [each["policy"] for each in admin.get(path)] == ["p"]

    def follow() -> None:
        """It has all or nothing. A grant that Kafka did not answer may bring another topic."""
        hidden, topic = is_there(), made.party.subscription.topic
        assert made.has_topic() is not hidden
        if not hidden and not made.is_allowed(topic):
            made.subscribe_anew()

    def add_again() -> None:
        admin.post(path, **body)

    def remove_again() -> None:
        if is_there():
            admin.delete(f"{path}/p")

    for request, undo in ((add, remove_again), (remove, add_again)):
        for _ in killed_everywhere(made, request):
            follow()
            topic, began = made.party.subscription.topic, time.monotonic()
            undo()
            made.expect_what_is_allowed(topic, began, time.monotonic())
            follow()
        follow()


@pytest.mark.long
def test_within_a_change_of_the_password(stage: NewStage, objects: Objects, admin: Api) -> None:
    """Two transactions: the other sessions end in one, their accesses in the next."""
    made = stage(objects, objects.one)
    member = made.member
    passwords = (f"{PASSWORD} {number}" for number in count())

    def request() -> Request:
        old, member.password = member.password, next(passwords)
        other = log_in(admin, member.name, old)
        body = {"old": old, "new": member.password}
        return Request("POST", "/password", str(other.token), body)

    old = member.password
    for _ in killed_everywhere(made, request):
        changed = {"user": member.name, "password": member.password}
        if not admin.call("POST", "/login", json=changed).is_success:
            member.password = old
        old = member.password
        if not made.is_allowed(made.party.subscription.topic):
            member.log_in()
            made.subscribe_anew()


def test_within_a_subscription(stage: NewStage, objects: Objects) -> None:
    """To an output that nobody has subscribed to, so that there is a class to open, too."""
    made = stage(objects, objects.one)
    path, token = f"/outputs/{objects.both}/subscriptions", str(made.member.session.token)
    for _ in killed_everywhere(made, partial(Request, "POST", path, token, {})):
        assert made.is_allowed(made.party.subscription.topic)


def test_within_the_start_that_takes_away_what_the_catalog_does_not_know(
    stage: NewStage, objects: Objects, surroundings: Surroundings
) -> None:
    made = stage(objects, objects.one)
    topic, kafka = made.party.subscription.topic, surroundings.platform.kafka
    principal = f"output-{secrets.token_hex(12)}"
    credentials = Credentials(principal, kafka.create_principal(principal))
    kafka.allow_read({topic: [principal]})
    made.admit(credentials)
    for _ in killed_everywhere(made, lambda: None):
        began = time.monotonic()
        kafka.allow_read({topic: [principal]})
        surroundings.ledger.regained(principal, topic, began)
        made.party.wait_ready(time.monotonic())

"""Each user that may SEND has a topic of its own, which nobody else writes or learns of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from catalog.errors import Unavailable
from catalog.models import SenderRow
from catalog.sender_state import draining, report_drained
from catalog.settings import Settings
from secadmin.control.platform import Platform
from secadmin.control.upkeep import delete_drained, reconcile
from secadmin.kafka.principals import Credentials
from tests.integration.kafka.clients import DENIED_CLUSTER, DENIED_TOPIC, produce_one, reader
from tests.integration.service.conftest import Api, NewUser, add_stream
from tests.integration.service.test_upkeep import apply_generation

Fresh = Callable[[str], str]
DENIED = {DENIED_TOPIC, DENIED_CLUSTER}


def sender_of(user: Api, stream: str) -> tuple[Credentials, str]:
    """An access for sending, and the topic that it is told."""
    given = user.post(f"/streams/{stream}/senders", keep=True)
    return Credentials(given["principal"], given["secret"]), given["topic"]


def grant(admin: Api, role: str, stream: str) -> None:
    permissions = ["VIEW OBJECT", "SEND"]
    admin.post("/grants", role=role, permissions=permissions, kind="stream", name=stream)


def sender_id(platform: Platform, topic: str) -> int:
    with platform.catalog.read() as session:
        return session.scalars(select(SenderRow.id).where(SenderRow.topic == topic)).one()


@pytest.fixture
def stream(admin: Api, fresh: Fresh) -> str:
    name = fresh("in")
    add_stream(admin, name, fresh("s"))
    return name


def test_a_sender_writes_its_own_topic_alone(
    admin: Api,
    platform: Platform,
    service_settings: Settings,
    new_user: NewUser,
    fresh: Fresh,
    stream: str,
) -> None:
    one, two = fresh("R"), fresh("R")
    users = [new_user(one), new_user(two)]
    for role in (one, two):
        grant(admin, role, stream)
    (ann, anns), (bob, bobs) = (sender_of(user, stream) for user in users)
    kafka = service_settings.kafka
    # What reconciliation finds is as it should be.
    reconcile(platform)
    for credentials, own, others in ((ann, anns, bobs), (bob, bobs, anns)):
        assert produce_one(kafka, credentials, own) is None
        assert produce_one(kafka, credentials, others) in DENIED
        with reader(kafka, credentials) as thief:
            topics = thief.consumer.list_topics(timeout=10).topics
            assert own in topics and others not in topics
    admin.post("/revocations", role=one, permissions=["SEND"], kind="stream", name=stream)
    assert produce_one(kafka, ann, anns) in DENIED, "from when the call has returned"
    assert produce_one(kafka, bob, bobs) is None
    grant(admin, one, stream)
    assert produce_one(kafka, ann, anns) in DENIED, "it has another topic now"
    again, anew = sender_of(users[0], stream)
    assert anew not in {anns, bobs} and produce_one(kafka, again, anew) is None


def test_a_topic_goes_once_it_is_drained_and_no_run_uses_it(
    admin: Api, platform: Platform, new_user: NewUser, fresh: Fresh, stream: str
) -> None:
    role = fresh("R")
    new_user(role)
    grant(admin, role, stream)
    with platform.catalog.read() as session:
        query = select(SenderRow.topic).where(SenderRow.topic.like(f"in.{stream}.%"))
        (topic,) = session.scalars(query)
    admin.post("/revocations", role=role, permissions=["SEND"], kind="stream", name=stream)
    apply_generation(platform)
    delete_drained(platform)
    assert platform.kafka.end_offsets([topic]) == {topic: {"0": 0}}, "there may be something left"
    number = sender_id(platform, topic)
    with platform.catalog.bookkeeping() as session:
        assert number in draining(session)
        report_drained(session, [number])
    delete_drained(platform)
    assert platform.kafka.end_offsets([topic]), "the runner has not let go of it yet"
    apply_generation(platform)
    delete_drained(platform)
    with pytest.raises(Unavailable):
        platform.kafka.end_offsets([topic])
    with platform.catalog.read() as session:
        assert session.get_one(SenderRow, number).removed_at is not None

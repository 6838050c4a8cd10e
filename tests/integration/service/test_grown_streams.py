"""Partitions that an operator adds to one topic of a stream: the whole stream follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pytest
from confluent_kafka.admin import NewPartitions
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from catalog.admission import ingesting
from catalog.engines import INGEST
from catalog.limits import Limits
from catalog.models import (
    AuditEntry,
    ExecutionRow,
    Object,
    OutputRow,
    SenderRow,
    StreamRow,
    TopicFault,
)
from catalog.topics import lab_topic
from catalog.wanted import generation, report_faults
from secadmin.control.grown_streams import follow_partitions, lacking
from secadmin.control.platform import Platform
from secadmin.kafka.connect import AdminClients
from tests.integration.service.conftest import Scene, decided_by_the_database
from tests.waiting import wait_until

pytestmark = decided_by_the_database


@given(st.dictionaries(st.text(), st.integers(1, 9), max_size=6))
def test_all_topics_of_a_stream_get_the_largest_number(counts: dict[str, int]) -> None:
    after = {**counts, **lacking(counts)}
    assert set(after.values()) == ({max(counts.values())} if counts else set())
    assert all(after[topic] >= count for topic, count in counts.items())


def stream_of(scene: Scene) -> tuple[int, int, list[str]]:
    """The stream's id, its number of partitions, and its topics but for the quarantine."""
    with scene.platform.catalog.read() as session:
        found = session.scalars(select(Object.id).where(Object.name == scene.stream)).one()
        senders = session.scalars(select(SenderRow.topic).where(SenderRow.stream_id == found))
        topics = [lab_topic(scene.stream), *senders]
        return found, session.get_one(StreamRow, found).partitions, topics


def let_send(scene: Scene) -> None:
    """Give the stream a sender, and wait until engines are told to read its topic."""
    scene.grant("SEND", "stream", scene.stream)
    found, _, _ = stream_of(scene)
    opened = select(SenderRow.opened_at).where(SenderRow.stream_id == found)

    def is_open() -> bool:
        with scene.platform.catalog.read() as session:
            return session.scalars(opened).one() is not None

    wait_until(is_open, "the sender's topic is open")


def slots_of(scene: Scene) -> int:
    own = (
        select(ExecutionRow.slots)
        .join(OutputRow, OutputRow.execution_id == ExecutionRow.id)
        .join(Object, Object.id == OutputRow.object_id)
    )
    with scene.platform.catalog.read() as session:
        return session.scalars(own.where(Object.name == scene.output)).one()


def grow(scene: Scene, topic: str, count: int) -> None:
    """Add partitions as an operator does."""
    admin = AdminClients.open(scene.settings.kafka).changes
    for future in admin.create_partitions([NewPartitions(topic, count)]).values():
        future.result(30)


@contextmanager
def told(platform: Platform, faults: Mapping[str, str]) -> Iterator[None]:
    """As while ingest reports these faults."""
    for now in (faults, {}):
        with platform.catalog.bookkeeping() as session:
            report_faults(session, INGEST, now, platform.clock())
        if now:
            yield


@pytest.mark.parametrize("grown", ["lab", "in"])
def test_a_stream_follows_its_topics(scene: Scene, grown: str) -> None:
    let_send(scene)
    _, partitions, topics = stream_of(scene)
    assert partitions == slots_of(scene) == 1 and len(topics) == 2
    changed = next(topic for topic in topics if topic.startswith(f"{grown}."))
    grow(scene, changed, 3)
    with scene.platform.catalog.read() as session:
        before, tasks = generation(session), ingesting(session)
    follow_partitions(scene.platform)
    assert stream_of(scene)[1] == 1, "no engine has reported it"
    with told(scene.platform, {changed: "it has 3 partitions"}):
        follow_partitions(scene.platform)
        assert scene.platform.kafka.partitions(topics) == dict.fromkeys(topics, 3)
        assert stream_of(scene)[1] == slots_of(scene) == 3
        follow_partitions(scene.platform)
    with scene.platform.catalog.read() as session:
        assert generation(session) == before + 1, "the engines learn of it, once"
        assert ingesting(session) == tasks + 2
        noted = select(AuditEntry.detail).where(AuditEntry.object == f"stream {scene.stream}")
        said = session.scalars(noted.where(AuditEntry.action == "follow partitions")).all()
    assert [detail["partitions"] for detail in said] == [3]


def test_a_stream_stays_held_where_there_is_no_room_for_it(scene: Scene) -> None:
    topic = lab_topic(scene.stream)
    grow(scene, topic, 2)
    with scene.platform.catalog.read() as session:
        tasks = ingesting(session)
    full = replace(scene.platform, limits=Limits(slots=tasks))
    with told(scene.platform, {topic: "it has 2 partitions"}):
        follow_partitions(full)
        with scene.platform.catalog.read() as session:
            (reason,) = session.scalars(select(TopicFault.reason))
        assert "take 1 tasks more in ingest" in reason and f"0 of {tasks} are free" in reason
        assert stream_of(scene)[1] == slots_of(scene) == 1
        follow_partitions(scene.platform)
        assert stream_of(scene)[1] == slots_of(scene) == 2


def test_a_stream_with_a_deleted_topic_stays_held(scene: Scene) -> None:
    scene.grant("SEND", "stream", scene.stream)
    _, _, (lab, sender) = stream_of(scene)
    grow(scene, lab, 2)
    scene.platform.kafka.delete_topics([sender])
    with told(scene.platform, {lab: "it has 2 partitions", sender: "it was deleted"}):
        follow_partitions(scene.platform)
    assert stream_of(scene)[1] == 1

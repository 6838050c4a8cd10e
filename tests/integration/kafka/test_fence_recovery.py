"""The fence leaves nothing behind, and says so when it cannot be proven."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

import pytest

from catalog.errors import Unavailable
from secadmin.kafka.brokers import live_brokers
from secadmin.kafka.fence import Fence, FenceLimits, FenceNotProven
from secadmin.kafka.fence_writer import Partition
from secadmin.kafka.segment_setting import SegmentSetting
from secadmin.kafka.topics import TopicSpec
from tests.integration.brokers import embedded_only
from tests.integration.kafka.clients import parked_reader, secadmin_producer, until, write
from tests.integration.kafka.conftest import Parts


def _await_setting(parts: Parts, topic: str, shortened: bool) -> None:
    """Wait until the broker has heard from its controller of what was set."""
    setting = SegmentSetting(parts.admins, parts.connections)
    until(lambda: (topic in setting.shortened([topic])) is shortened, "for the topic's setting")


def test_the_setting_is_taken_back(parts: Parts) -> None:
    topic = parts.new_topic()
    parts.access.withdraw(topic, [])
    _await_setting(parts, topic, shortened=False)


def test_not_proven_fails_loudly_and_still_takes_the_setting_back(parts: Parts) -> None:
    topic = parts.new_topic()
    no_time = FenceLimits(total_s=0)
    fence = Fence(parts.admins, parts.replicas, parts.writer, parts.connections, limits=no_time)
    with pytest.raises(FenceNotProven) as caught:
        fence.put_up([topic], lambda: live_brokers(parts.connections))
    assert topic in str(caught.value)
    assert caught.value.status == 503
    _await_setting(parts, topic, shortened=False)


def test_not_proven_is_told_also_where_the_setting_stays(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not proven stops the writing: no other failure may hide it."""

    def restore(setting: SegmentSetting, topics: Collection[str]) -> None:
        raise Unavailable("Kafka is away")

    topic = parts.new_topic()
    no_time = FenceLimits(total_s=0)
    fence = Fence(parts.admins, parts.replicas, parts.writer, parts.connections, limits=no_time)
    with monkeypatch.context() as broken:
        broken.setattr(SegmentSetting, "restore", restore)
        with pytest.raises(FenceNotProven):
            fence.put_up([topic], lambda: live_brokers(parts.connections))
    _await_setting(parts, topic, shortened=True)
    parts.access.withdraw(topic, [])
    _await_setting(parts, topic, shortened=False)


def test_a_clock_that_is_behind(parts: Parts) -> None:
    """Stamps follow the newest record where the clock does not reach it."""
    topic = parts.new_topic()
    write(secadmin_producer(parts.settings), topic, ["earlier"])

    def clock() -> float:
        return time.time() - 3600

    Fence(parts.admins, parts.replicas, parts.writer, parts.connections, clock).put_up(
        [topic], lambda: live_brokers(parts.connections)
    )


@pytest.mark.parametrize("records", [0, 1])
def test_a_crash_within_the_fence(
    parts: Parts, new_parts: Callable[[], Parts], records: int
) -> None:
    """The next start takes the setting back; the withdrawal, repeated, holds."""
    topic = parts.new_topic()
    credentials = parts.new_reader(topic)
    with parked_reader(parts.settings, credentials, topic, 1) as hostile:
        parts.acls.revoke_topics({topic: [credentials.username]})
        SegmentSetting(parts.admins, parts.connections).shorten([topic])
        _await_setting(parts, topic, shortened=True)
        for _ in range(records):
            stamps = {Partition(topic, 0): int(time.time() * 1000) + 10}
            parts.writer.write(stamps, live_brokers(parts.connections).values())

        started = new_parts()
        assert topic in started.access.restore_leftover_settings(started.topics.list_names())
        _await_setting(started, topic, shortened=False)
        started.access.withdraw(topic, [credentials.username])
        write(secadmin_producer(parts.settings), topic, ["later", "f" * 200_000])
        hostile.read_until_refused()
    assert hostile.values == []


def test_a_topic_that_is_gone_needs_no_fence(parts: Parts) -> None:
    parts.access.withdraw("out.never.made", ["output-nobody"])


def test_connections_are_used_again(parts: Parts) -> None:
    """A warm connection that the broker or a failure closed is replaced without a word."""
    topic = parts.new_topic()
    parts.access.withdraw(topic, [])
    for connections in parts.connections._idle.values():
        for connection in connections:
            connection._socket.shutdown(2)
    parts.access.withdraw(topic, [])


@embedded_only
def test_a_topic_that_was_made_anew(parts: Parts) -> None:
    """A producer that has found out that the topic was not there is in nobody's way."""
    topic = parts.new_topic()
    brokers = live_brokers(parts.connections).values()
    record = {Partition(topic, 0): int(time.time() * 1000)}
    parts.writer.write(record, brokers)
    parts.topics.delete([topic])
    for _ in range(2):
        with pytest.raises(Unavailable):
            parts.writer.write(record, brokers)
    parts.topics.create([TopicSpec(topic)])
    credentials = parts.new_reader(topic)
    parts.access.withdraw(topic, [credentials.username])

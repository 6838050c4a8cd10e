"""Topics: creating them with the settings that their use needs, deleting, listing, end offsets."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from catalog.errors import Conflict, Unavailable
from catalog.settings import KafkaSettings
from catalog.topics import ECHO_TOPIC
from secadmin.kafka.connect import (
    REQUEST_TIMEOUT_S,
    AdminClients,
    all_finished,
    error_code,
    failure_of,
    failure_of_code,
    unavailable,
)
from secadmin.kafka.wire.connections import BrokerConnections
from secadmin.kafka.wire.topic_deletion import TopicId, delete_topics

DAY_MS = 24 * 60 * 60 * 1000
FOREVER_MS = -1
SERVED_TIMEOUT_S = 20.0
"""Longest wait for a created topic to be served, or for a deleted one to be gone, in seconds."""

NAMESPACES = ("in.", "lab.", "parked.", "quarantine.", "out.", "audit.", "time.")
_KEPT = {"retention.ms": str(FOREVER_MS), "retention.bytes": "-1", "cleanup.policy": "delete"}
_FENCED = ("out.", "quarantine.")
# Each time it is asked a busy broker falls back further, so it is asked ever less often.
_FIRST_POLL_S, _LONGEST_POLL_S = 0.01, 0.5
_ANY_TIME_MS = 2**63 - 1
_SENT_BYTES = 1024 * 1024
# A record grows behind `in`: names of attributes, the reason why it was refused, its headers.
_GROWN_BYTES = 4 * 1024 * 1024
_UNKNOWN_TOPIC_ID = 100
# Enough for segments of some hundred megabytes.
_INDEX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create. Its name tells its use (`catalog.topics`); retention is in ms.

    With `FOREVER_MS` nothing in it is ever deleted, whatever its size.
    """

    name: str
    partitions: int = 1
    retention_ms: int = DAY_MS


def is_platform_topic(name: str) -> bool:
    """Whether the topic is one of ours."""
    return name.startswith(NAMESPACES)


def is_fenced_topic(name: str) -> bool:
    """Whether subscribers read the topic, so that taking it from one needs the fence."""
    return name.startswith(_FENCED)


def is_sent_topic(name: str) -> bool:
    """Whether the topic is one that senders write."""
    return name.startswith("in.")


def topic_config(spec: TopicSpec, replication: int) -> dict[str, str]:
    """The settings of the topic; `segment.ms` stays the cluster's own, the fence changes it."""
    sent = is_sent_topic(spec.name)
    taken_at = sent or spec.name == ECHO_TOPIC
    return {
        # Kafka's limit is one of the batch as it came; a batch that it writes anew, it measures
        # once more. So nothing that unfolds to more than the limit is taken from a sender.
        **({"compression.type": "uncompressed"} if sent else {}),
        "cleanup.policy": "delete",
        "retention.ms": str(spec.retention_ms),
        **(_KEPT if spec.retention_ms == FOREVER_MS else {}),
        "max.message.bytes": str(_SENT_BYTES if sent else _GROWN_BYTES),
        "min.insync.replicas": str(max(1, replication - 1)),
        # A sender's clock must not decide how long its records are kept, or what is late. Elsewhere
        # the writer is ours, and the fence needs to stamp its records ahead, however far the newest
        # one is.
        "message.timestamp.type": "LogAppendTime" if taken_at else "CreateTime",
        "message.timestamp.after.max.ms": str(_ANY_TIME_MS),
        "message.timestamp.before.max.ms": str(_ANY_TIME_MS),
        # A fence rolls the log, which takes a third of the time with small files of indexes.
        "segment.index.bytes": str(_INDEX_BYTES),
    }


class Topics:
    """The cluster's topics, through long-lived administrative clients."""

    def __init__(
        self, admins: AdminClients, settings: KafkaSettings, connections: BrokerConnections
    ) -> None:
        self._admins = admins
        self._connections = connections
        self._replication = settings.replication

    def create(self, specs: Iterable[TopicSpec]) -> None:
        """Create what is missing and return once every topic of `specs` is served.

        Raises:
            Conflict: One exists with another number of partitions.
            Unavailable: Kafka cannot be reached, or does not serve one within `SERVED_TIMEOUT_S`.
        """
        wanted = {spec.name: spec for spec in specs}
        if not wanted:
            return
        new = [self._new_topic(spec) for spec in wanted.values()]
        futures = self._admins.changes.create_topics(new, request_timeout=REQUEST_TIMEOUT_S)
        for name, future in futures.items():
            there = KafkaError.TOPIC_ALREADY_EXISTS
            if failure := failure_of(future, f"create the topic {name}", there):
                raise failure
        for name, description in self._wait_served(wanted).items():
            found = len(description.partitions)
            if found != wanted[name].partitions:
                raise Conflict(
                    f"the topic {name} exists with {found} partitions, "
                    f"not {wanted[name].partitions}: choose another name or number"
                )

    def add_partitions(self, wanted: Mapping[str, int]) -> None:
        """Let each topic have at least so many partitions, and return once all are served.

        Partitions can only be added, so a second try does no harm. Raises Unavailable.
        """
        if not wanted:
            return
        new = [NewPartitions(name, count) for name, count in wanted.items()]
        futures = self._admins.changes.create_partitions(new, request_timeout=REQUEST_TIMEOUT_S)
        for name, future in futures.items():
            # It has them already, or has more.
            there = KafkaError.INVALID_PARTITIONS
            if failure := failure_of(future, f"add partitions to {name}", there):
                raise failure
        deadline, pauses = time.monotonic() + SERVED_TIMEOUT_S, _pauses()
        while self._lacks(wanted, self._wait_served(wanted)):
            if time.monotonic() > deadline:
                raise Unavailable("Kafka does not serve the new partitions yet: try again")
            time.sleep(next(pauses))

    @staticmethod
    def _lacks(wanted: Mapping[str, int], found: Mapping[str, TopicDescription]) -> bool:
        return any(len(found[name].partitions) < count for name, count in wanted.items())

    def keep_forever(self, name: str) -> None:
        """Set again that nothing in the topic is ever deleted. Raises Unavailable."""
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in _KEPT.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        futures = self._admins.changes.incremental_alter_configs(
            [resource], request_timeout=REQUEST_TIMEOUT_S
        )
        all_finished(futures.values(), f"change the settings of {name}")

    def delete(self, names: Collection[str]) -> None:
        """Delete the topics that exist, and return once none is there. Raises Unavailable.

        They are deleted by their ids: see `secadmin.kafka.wire.topic_deletion`. A broker that is
        behind may not list a topic yet, so the controllers are asked whether it is gone.
        """
        left = set(names)
        deadline, pauses = time.monotonic() + SERVED_TIMEOUT_S, _pauses()
        while left:
            listed = self.describe(left)
            self._delete_by_id(listed)
            left = listed.keys() | self._existing(left - listed.keys())
            if left and time.monotonic() > deadline:
                raise Unavailable(f"Kafka still has the deleted topic {min(left)}")
            if left:
                time.sleep(next(pauses))

    def _delete_by_id(self, topics: Mapping[str, TopicDescription]) -> None:
        if not topics:
            return
        ids = [topic_id(each) for each in topics.values()]
        purpose = f"delete the topic {min(topics)}"
        codes = self._connections.ask(purpose, lambda broker: delete_topics(broker, ids))
        for code in codes:
            if failure := failure_of_code(code, purpose, _UNKNOWN_TOPIC_ID):
                raise failure

    def _existing(self, names: Collection[str]) -> set[str]:
        """Those of the topics that the controllers know. This changes nothing."""
        if not names:
            return set()
        futures = self._admins.changes.create_partitions(
            [NewPartitions(name, 1) for name in names],
            request_timeout=REQUEST_TIMEOUT_S,
            validate_only=True,
        )
        gone, there = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.INVALID_PARTITIONS
        found = set()
        for name, future in futures.items():
            if failure := failure_of(future, f"look up the topic {name}", gone, there):
                raise failure
            error = future.exception()
            if not isinstance(error, KafkaException) or error_code(error) != gone:
                found.add(name)
        return found

    def list_names(self) -> frozenset[str]:
        """The names of the platform's topics. Raises Unavailable."""
        try:
            found = self._admins.reads.list_topics(timeout=REQUEST_TIMEOUT_S).topics
        except KafkaException as error:
            raise unavailable(error, "list the topics") from None
        return frozenset(name for name in found if is_platform_topic(name))

    def end_offsets(self, names: Collection[str]) -> dict[str, dict[int, int]]:
        """The next record's offset: {topic: {partition: offset}}. Raises Unavailable."""
        return self._offsets(names, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def offsets_at(self, names: Collection[str], at: datetime) -> dict[str, dict[int, int]]:
        """The offset of the first record at or after that time (UTC): {topic: {partition: offset}}.

        It is the next record's if there is none. Raises Unavailable.
        """
        ends = self.end_offsets(names)
        at_ms = int(at.replace(tzinfo=UTC).timestamp() * 1000)
        found = self._offsets(names, OffsetSpec.for_timestamp(at_ms))
        return {
            name: {p: offset if offset >= 0 else ends[name].get(p, 0) for p, offset in of.items()}
            for name, of in found.items()
        }

    def _offsets(self, names: Collection[str], which: OffsetSpec) -> dict[str, dict[int, int]]:
        described = self.describe(names)
        if missing := set(names) - described.keys():
            raise Unavailable(f"Kafka does not serve the topic {min(missing)}: try again")
        request = {
            TopicPartition(name, partition.id): which
            for name, description in described.items()
            for partition in description.partitions
        }
        ends: dict[str, dict[int, int]] = {name: {} for name in names}
        if not request:
            return ends
        futures = self._admins.reads.list_offsets(request, request_timeout=REQUEST_TIMEOUT_S)
        results = all_finished(futures.values(), "read the end offsets")
        for place, result in zip(futures, results, strict=True):
            ends[place.topic][place.partition] = result.offset
        return ends

    def describe(self, names: Collection[str]) -> dict[str, TopicDescription]:
        """Leaders and replicas of each topic that the cluster serves; others are left out."""
        if not names:
            return {}
        futures = self._admins.reads.describe_topics(
            TopicCollection(list(names)), request_timeout=REQUEST_TIMEOUT_S
        )
        found: dict[str, TopicDescription] = {}
        for name, future in futures.items():
            absent = KafkaError.UNKNOWN_TOPIC_OR_PART
            if failure := failure_of(future, f"describe the topic {name}", absent):
                raise failure
            if future.exception() is None:
                found[name] = future.result()
        return found

    def _new_topic(self, spec: TopicSpec) -> NewTopic:
        config = topic_config(spec, self._replication)
        return NewTopic(spec.name, spec.partitions, self._replication, config=config)

    def _wait_served(self, names: Collection[str]) -> dict[str, TopicDescription]:
        deadline, pauses = time.monotonic() + SERVED_TIMEOUT_S, _pauses()
        while True:
            found = self.describe(names)
            served = {name for name, topic in found.items() if _has_leaders(topic)}
            if served == set(names) and self._leaders_answer(names):
                return found
            if time.monotonic() > deadline:
                raise Unavailable("Kafka created the topics but does not serve them yet: try again")
            time.sleep(next(pauses))

    def _leaders_answer(self, names: Collection[str]) -> bool:
        """Whether the leaders know that they lead: the cluster names them a little earlier."""
        try:
            self.end_offsets(names)
        except Unavailable:
            return False
        return True


def topic_id(description: TopicDescription) -> TopicId:
    """The id of the topic. No other one ever has it."""
    # The annotations of the client library lack its methods.
    found: Any = description.topic_id
    return found.get_most_significant_bits(), found.get_least_significant_bits()


def _pauses() -> Iterator[float]:
    """Seconds to wait before asking again."""
    pause = _FIRST_POLL_S
    while True:
        yield pause
        pause = min(pause * 1.5, _LONGEST_POLL_S)


def _has_leaders(topic: TopicDescription) -> bool:
    return bool(topic.partitions) and all(
        partition.leader is not None and partition.leader.id >= 0 for partition in topic.partitions
    )

"""The topic setting by which the fence makes a log roll at the next record."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError
from confluent_kafka.admin import ConfigResource, ResourceType

from secadmin.kafka.connect import REQUEST_TIMEOUT_S, AdminClients, all_finished, failure_of_code
from secadmin.kafka.grouped import Grouped
from secadmin.kafka.wire.connections import BrokerConnections
from secadmin.kafka.wire.topic_setting import alter_setting

ROLL_MS = 100
"""A record begins a new segment if it is newer than the segment's first one by more than this."""
_NAME = "segment.ms"


@dataclass(frozen=True, slots=True)
class _Change:
    """The setting's new value in ms, or None to reset it."""

    topic: str
    value: str | None


class SegmentSetting:
    """Sets `segment.ms` to 100 and resets it. The platform's topics have no value of their own."""

    def __init__(self, admins: AdminClients, connections: BrokerConnections) -> None:
        self._admins = admins
        self._connections = connections
        self._changes: Grouped[_Change, None] = Grouped(self._send)

    def shorten(self, topics: Collection[str]) -> None:
        """Let a record that is more than `ROLL_MS` newer begin a segment. Raises Unavailable."""
        self._changes.run([_Change(topic, str(ROLL_MS)) for topic in topics])

    def restore(self, topics: Collection[str]) -> None:
        """Reset the setting. A topic that is gone is no failure. Raises Unavailable."""
        self._changes.run([_Change(topic, None) for topic in topics])

    def shortened(self, topics: Collection[str]) -> frozenset[str]:
        """Of these topics, those that have the fence's setting now. Raises Unavailable."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return frozenset()
        futures = self._admins.reads.describe_configs(resources, request_timeout=REQUEST_TIMEOUT_S)
        settings = all_finished(futures.values(), "read the settings of the topics")
        return frozenset(
            resource.name
            for resource, found in zip(futures, settings, strict=True)
            if found[_NAME].value == str(ROLL_MS)
        )

    def _send(self, changes: Sequence[_Change]) -> list[Exception | None]:
        # One topic is never here twice, because the fence's caller holds the topic's lock.
        values = {change.topic: change.value for change in changes}
        codes = self._connections.ask(
            "change the settings of topics", lambda broker: alter_setting(broker, _NAME, values)
        )
        gone = KafkaError.UNKNOWN_TOPIC_OR_PART
        return [
            failure_of_code(codes[topic], f"change the settings of {topic}", gone)
            for topic in values
        ]

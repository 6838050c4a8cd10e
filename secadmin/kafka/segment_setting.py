"""The topic setting with which the fence makes a log roll at its next record."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from secadmin.kafka.connect import REQUEST_TIMEOUT_S, AdminClients, all_finished, failure_of
from secadmin.kafka.grouped import Grouped

ROLL_MS = 100
"""A record that is newer than a segment's first by more than that begins another."""
_NAME = "segment.ms"


@dataclass(frozen=True, slots=True)
class _Change:
    """The setting's new value in ms, or None to take it back."""

    topic: str
    value: str | None

    def resource(self) -> ConfigResource:
        operation = AlterConfigOpType.DELETE if self.value is None else AlterConfigOpType.SET
        entry = ConfigEntry(_NAME, self.value or "", incremental_operation=operation)
        return ConfigResource(ResourceType.TOPIC, self.topic, incremental_configs=[entry])


class SegmentSetting:
    """Sets `segment.ms` to 100 and takes it back. The platform's topics have none of their own."""

    def __init__(self, admins: AdminClients) -> None:
        self._admins = admins
        self._changes = Grouped(self._send)

    def shorten(self, topics: Collection[str]) -> None:
        """Let a record that is more than `ROLL_MS` newer begin a segment. Raises Unavailable."""
        self._changes.run([_Change(topic, str(ROLL_MS)) for topic in topics])

    def restore(self, topics: Collection[str]) -> None:
        """Take the setting back; a topic that is gone needs nothing. Raises Unavailable."""
        self._changes.run([_Change(topic, None) for topic in topics])

    def shortened(self, topics: Collection[str]) -> frozenset[str]:
        """Those of the topics whose setting is in force. Raises Unavailable."""
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
        # A topic's changes do not meet here: whoever fences it holds its lock.
        resources = [change.resource() for change in changes]
        futures = self._admins.changes.incremental_alter_configs(
            resources, request_timeout=REQUEST_TIMEOUT_S
        )
        gone = KafkaError.UNKNOWN_TOPIC_OR_PART
        return [
            failure_of(futures[resource], f"change the settings of {resource.name}", gone)
            for resource in resources
        ]

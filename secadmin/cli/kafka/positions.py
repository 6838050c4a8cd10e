"""Offsets at which reading goes on, kept here and not by the consumer group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import OFFSET_BEGINNING, TopicPartition


class Positions:
    """Starts each partition at the wanted offset, and after a rebalance where it stopped.

    A group's own committed offsets would not do: reading from the end commits nothing until a
    record has come, and a move between classes would then read the new topic's past or skip it.
    """

    def __init__(self, from_end: bool) -> None:
        self._from_end = from_end
        self._first = True
        self._next: dict[tuple[str, int], int] = {}

    def read(self, topic: str, partition: int, offset: int) -> None:
        """Note a record that was read."""
        self._next[topic, partition] = offset + 1

    def starts(
        self, assigned: Sequence[TopicPartition], end_of: Callable[[TopicPartition], int]
    ) -> list[TopicPartition]:
        """The assigned partitions with their first offsets.

        `end_of` asks the broker for a partition's end. Only what is assigned at first is read from
        its end: a topic that we are moved to later is read from its beginning, so nothing that
        came between is missed.
        """
        for partition in assigned:
            key = partition.topic, partition.partition
            if key not in self._next and self._from_end and self._first:
                self._next[key] = end_of(partition)
        # Before the first topic appears there are empty assignments.
        self._first = self._first and not assigned
        return [
            TopicPartition(
                p.topic, p.partition, self._next.get((p.topic, p.partition), OFFSET_BEGINNING)
            )
            for p in assigned
        ]

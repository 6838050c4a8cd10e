"""Makes the DataFrames of ingest: what senders' topics have from the checkpoint's offsets on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from catalog.errors import Unavailable
from catalog.runs import IngestRun
from secfilter.checkpoint import Checkpoint
from secfilter.going_on import owners_of
from secfilter.ingest import Newest, in_topics, ingest
from secfilter.kafka_options import Offsets
from secfilter.lab_notes import notes_of
from secfilter.positions import Positions
from secfilter.running_query import REFUSED
from secfilter.tick_mark import TickMark


class Records(Protocol):
    """The records of topics from these offsets on, as senders send them."""

    def __call__(
        self, topics: list[str], begins: Offsets, *, sent: bool, headers: bool
    ) -> DataFrame: ...


@dataclass(frozen=True, slots=True)
class IngestFrames:
    """The DataFrames of one engine's ingest.

    `note_anew` is called with topics that were made anew under their senders.
    """

    records: Records
    positions: Positions
    note_anew: Callable[[Sequence[str]], object]

    def frame(self, run: IngestRun, checkpoint: Checkpoint, ticks: TickMark) -> DataFrame:
        """The run's tuples for Kafka's sink, from the checkpoint on.

        Raises Unavailable if a sender's topic was made anew.
        """
        committed = checkpoint.committed()
        noted = notes_of(checkpoint).lab_ends(committed)
        streams = (stream.relation.name for stream in run.streams)
        newest = self.positions.newest_origins(streams, noted)
        self._require_old_topics(run, newest, committed)
        ruled = any(stream.rule is not None for stream in run.streams)
        start = checkpoint.start or {}
        records = self.records(in_topics(run), start, sent=True, headers=ruled)
        return ingest(records, run, newest, ticks, counted=REFUSED)

    def _require_old_topics(self, run: IngestRun, newest: Newest, committed: Offsets) -> None:
        """Raise Unavailable where a topic was made anew under its sender, and note it.

        Its first records would have the origins of others, which are in lab.<stream>, and would
        be taken for them.
        """
        ends = self.positions.ends(in_topics(run))
        anew = [
            topic
            for topic, sender in owners_of(run).items()
            if _is_behind(ends[topic], newest.get(sender, {}), committed.get(topic, {}))
        ]
        if anew:
            self.note_anew(anew)
            raise Unavailable("a topic was made anew; its sender is left out")


def _is_behind(
    ends: Mapping[int, int], origins: Mapping[int, int], read: Mapping[str, int]
) -> bool:
    """Whether a topic ends before what was once read of it."""
    in_lab = any(ends.get(partition, 0) <= origin for partition, origin in origins.items())
    return in_lab or any(ends.get(int(partition), 0) < to for partition, to in read.items())

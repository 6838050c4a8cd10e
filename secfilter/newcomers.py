"""What a side run ingests beside the main run of a group: the senders that are new to the group.

A group of ingest can take in a stream or a sender only at the end of its batch, which may last a
minute. Until then a side run ingests the new senders. Each sender's topic is read by one of the two
runs, so nothing is written twice. When the batch of the main run has ended, the side run ends too.
Then the main run takes over the senders, with the offsets that the side run has committed
(`secfilter.going_on`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from catalog.runs import IngestRun, IngestStream, Run, Sender
from secfilter.beside import side_name


def topics_read(run: Run | None) -> frozenset[str]:
    """The senders' topics that the run reads; none for a query."""
    if not isinstance(run, IngestRun):
        return frozenset()
    return frozenset(sender.topic for stream in run.streams for sender in stream.senders)


def senders_of(run: Run | None) -> frozenset[tuple[IngestStream, Sender]]:
    """The senders that the run reads, each with what it needs to know of the stream."""
    if not isinstance(run, IngestRun):
        return frozenset()
    return frozenset(
        (replace(stream, senders=()), sender) for stream in run.streams for sender in stream.senders
    )


def newcomers(wanted: Run | None, held: Collection[str]) -> IngestRun | None:
    """The side run over the wanted senders whose topics are not in `held`; None if there is none.

    `held` are the topics of the main run, also those that it leaves out now: it goes on with these.
    """
    if not isinstance(wanted, IngestRun):
        return None
    streams = [
        replace(stream, senders=tuple(s for s in stream.senders if s.topic not in held))
        for stream in wanted.streams
    ]
    new = tuple(stream for stream in streams if stream.senders)
    return IngestRun(side_name(wanted.name), new) if new else None

"""Decides what still runs if a topic differs from what the catalog says.

A topic may have been deleted, or got partitions by hand. A sender with such a topic is left out. So
is a stream whose own topic is faulty. A query that reads or writes such a topic stops. Everything
else goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from catalog.runs import IngestRun, IngestStream, QueryRun, Run, stream_topics, topics_of
from catalog.topics import lab_topic

GONE = "the topic was deleted: remove what it belongs to, and add that again"
_PARTITIONS = "the topic has {found} partitions, not {wanted}: the stream follows within a minute"
ANEW = "the topic was deleted and made anew: remove the stream, and add it again"

# topic -> why it cannot be used
Faults = Mapping[str, str]


def faults_in(runs: Iterable[Run], partitions: Mapping[str, int]) -> dict[str, str]:
    """The faults of the topics of the runs. `partitions` has their number for existing topics."""
    found: dict[str, str] = {}
    for run in runs:
        found.update({topic: GONE for topic in topics_of(run) if topic not in partitions})
        for stream in run.streams if isinstance(run, IngestRun) else ():
            for topic in (*in_topics_of(stream), lab_topic(stream.relation.name)):
                there = partitions.get(topic, stream.partitions)
                if stream.partitions not in {None, there}:
                    found[topic] = _PARTITIONS.format(found=there, wanted=stream.partitions)
    return found


def spared(run: Run, faults: Faults) -> Run | None:
    """The part of the run that can go on, or None if nothing can."""
    if not faults or not faults.keys() & topics_of(run):
        return run
    if isinstance(run, QueryRun):
        return None
    streams = [s for s in run.streams if not faults.keys() & _own_topics(s)]
    left = [_spared(stream, faults) for stream in streams]
    able = tuple(stream for stream in left if stream.senders)
    return replace(run, streams=able) if able else None


def _own_topics(stream: IngestStream) -> set[str]:
    return set(stream_topics(stream.relation.name, ruled=stream.rule is not None))


def in_topics_of(stream: IngestStream) -> list[str]:
    """The topics of the stream's senders."""
    return [sender.topic for sender in stream.senders]


def _spared(stream: IngestStream, faults: Faults) -> IngestStream:
    senders = tuple(sender for sender in stream.senders if sender.topic not in faults)
    return stream if senders == stream.senders else replace(stream, senders=senders)

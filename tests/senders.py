"""A stream's sender, where a test needs one and does not care who it is."""

from dataclasses import replace

from catalog.runs import IngestStream, Sender


def sent(stream: IngestStream) -> IngestStream:
    """The stream with one sender, which has the stream's id, and the topic in.<stream>."""
    relation = stream.relation
    return replace(stream, senders=(Sender(relation.object_id, f"in.{relation.name}"),))

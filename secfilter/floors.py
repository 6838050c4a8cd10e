"""Floors in ingest: what a sender sends carries what its user may have read (`catalog.floors`)."""

from __future__ import annotations

from secfilter.added_labels import Added
from secfilter.stream_group import StreamGroup


def added(group: StreamGroup) -> Added:
    """The floor of the record's sender.

    A record that was parked got the floor when the platform sent it again, so it is that of the
    topic that counts.
    """
    floors = {str(sender.id): sender.floor for sender in group.senders if sender.floor.bits}
    return Added(floors, group.sender_id())

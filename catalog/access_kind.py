"""What an access is for, and the right that it needs."""

from __future__ import annotations

from enum import StrEnum

from catalog.permission import ObjectKind, Permission


class AccessKind(StrEnum):
    """What an access is for. A new principal's name begins with it."""

    OUTPUT = "output"
    """To read the results of an output."""
    QUARANTINE = "quarantine"
    """To read the records of a stream that ingest has refused."""
    SEND = "send"
    """To send records to a stream."""

    @property
    def needed(self) -> tuple[ObjectKind, Permission]:
        """The kind of object that the access is to, and the permission there that it needs."""
        return _NEEDED[self]


_NEEDED = {
    AccessKind.OUTPUT: (ObjectKind.OUTPUT, Permission.SUBSCRIBE),
    AccessKind.QUARANTINE: (ObjectKind.STREAM, Permission.READ_TUPLE),
    AccessKind.SEND: (ObjectKind.STREAM, Permission.SEND),
}

"""Whether the senders of a stream have topics of their own."""

from __future__ import annotations

from enum import StrEnum


class Senders(StrEnum):
    """A choice for a stream, made when it is added."""

    OWN = "own"
    """Each user writes its own topic. So no user can write as another, or see what others send."""
    SHARED = "shared"
    """All users write one topic. This is for more senders than there can be topics."""

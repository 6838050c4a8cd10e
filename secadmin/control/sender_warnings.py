"""What the answer says where a change keeps senders from a declared aggregate."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.models import Object
from secadmin.control.work import Work


def warnings_about(work: Work, streams: Iterable[Object]) -> list[str]:
    """A line a stream whose senders hold READ AGGREGATE in vain, also for the audit log.

    It tells that there is such a user, not who. A stream that the caller may not view is not named.
    """
    streams = list(streams)
    if streams:
        work.detail["senders_without_aggregate"] = [stream.name for stream in streams]
    shown = [f"stream {stream.name}" for stream in streams if work.may_view(stream)]
    hidden = ["a stream that you may not view"] if len(shown) < len(streams) else []
    return [
        f"READ AGGREGATE on {what} does not count for users who may also SEND there by any of "
        "their roles, and there are some now: only with READ TUPLE are they shown its aggregate"
        for what in (*shown, *hidden)
    ]

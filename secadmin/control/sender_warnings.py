"""Warnings for a change by which senders do not see a declared aggregate."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.models import Object
from secadmin.control.work import Work


def warnings_about(work: Work, streams: Iterable[Object]) -> list[str]:
    """One warning for each stream with a sender whose READ AGGREGATE does not count.

    The warnings also go to the audit log. They do not name the user. They do not name a stream that
    the caller may not view.
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

"""The owner of a stream says which of its senders are independent of the others."""

from __future__ import annotations

from sqlalchemy import exists, select

from catalog.errors import NotFound
from catalog.independent_senders import count_user, leave_out_user
from catalog.models import IndependentSender, Object, SenderRow, User
from catalog.permission import ObjectKind, Permission
from catalog.sender_state import SenderState
from secadmin.control.platform import Platform
from secadmin.control.work import Caller, Work, working


def mark(platform: Platform, caller: Caller, stream: str, user: str) -> None:
    """Let a user that may SEND count for the stream's declared aggregate and for policies.

    Needs CHANGE PERM on the stream. Raises NotFound if the user has no topic there (all users of a
    shared topic together are one sender, which cannot be marked), Conflict if too many had a mark.
    """
    target = f"stream {stream}"
    with working(platform, caller, "mark independent sender", target) as work:
        obj = _stream(work, stream, user)
        sends = exists().where(
            SenderRow.stream_id == obj.id,
            SenderRow.user_id == User.id,
            SenderRow.state == SenderState.ACTIVE,
        )
        found = work.session.scalar(select(User.id).where(User.name == user, sends))
        if found is None:
            raise NotFound(f"no sender of the stream {stream!r} is called {user!r}")
        count_user(work.session, obj.id, found)


def unmark(platform: Platform, caller: Caller, stream: str, user: str) -> None:
    """Let a user not count any more, also in groups that are not complete yet.

    Needs CHANGE PERM on the stream. Raises NotFound if the user does not count.
    """
    target = f"stream {stream}"
    with working(platform, caller, "unmark independent sender", target) as work:
        obj = _stream(work, stream, user)
        counts = exists().where(
            IndependentSender.stream_id == obj.id,
            IndependentSender.user_id == User.id,
            IndependentSender.counts,
        )
        found = work.session.scalar(select(User.id).where(User.name == user, counts))
        if found is None:
            raise NotFound(f"no independent sender of the stream {stream!r} is called {user!r}")
        leave_out_user(work.session, obj.id, found)


def _stream(work: Work, name: str, user: str) -> Object:
    """The stream, which the caller may change."""
    found = work.find(ObjectKind.STREAM, name)
    work.require(Permission.CHANGE_PERM, found)
    work.detail["user"] = user
    return found

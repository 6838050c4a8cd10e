"""Sender policies: a data owner says who may see what it sends to a stream (000 §4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.engines import INGEST
from catalog.errors import Conflict
from catalog.label_rule import BySender
from catalog.label_texts import rule_from_stored
from catalog.models import Object, SenderPolicy, StreamRow
from catalog.permission import ObjectKind, Permission
from catalog.role_expression import read_role_expression
from catalog.run_names import ingest_run_name
from catalog.wanted import is_applied
from secadmin.control.platform import Platform
from secadmin.control.role_texts import register_texts
from secadmin.control.work import Caller, Reading, reading, working


def set_policy(platform: Platform, caller: Caller, stream: str, expression: str) -> str:
    """Set the role expression of all that the caller sends to the stream. Gives its short form.

    Needs SEND on a stream whose label rule is by sender. Ingest uses it for what it reads once it
    has started again (`SenderPolicyView.applied`), within about a minute. Raises NotFound, Denied,
    Conflict, and InvalidInput, also for a role that does not exist: otherwise the caller could not
    notice its mistake.
    """
    canonical = str(read_role_expression(expression))
    with working(platform, caller, "set sender policy", f"stream {stream}") as work:
        obj = _stream(work, stream)
        user = work.subject.user_id
        register_texts(work.settlement, obj.id, [canonical], user)
        work.session.merge(SenderPolicy(stream_id=obj.id, user_id=user, text=canonical))
        work.change.bump_generation()
    return canonical


@dataclass(frozen=True, slots=True)
class SenderPolicyView:
    """The policy of a sender, or None. It is `applied` if ingest uses it for all that it reads."""

    expression: str | None
    applied: bool


def show_policy(platform: Platform, caller: Caller, stream: str) -> SenderPolicyView:
    """The caller's own policy in the stream. Needs SEND there."""
    with reading(platform, caller, "show sender policy", f"stream {stream}") as view:
        obj = _stream(view, stream)
        row = view.session.get(SenderPolicy, (obj.id, view.subject.user_id))
        group = view.session.get_one(StreamRow, obj.id).ingest_group
        applied = is_applied(view.session, ingest_run_name(group))
        alive = INGEST in platform.pulse.living(view.session)
        return SenderPolicyView(None if row is None else row.text, applied and alive)


def remove_policy(platform: Platform, caller: Caller, stream: str) -> None:
    """Remove the caller's policy, if it has one. Then what it sends is refused."""
    with working(platform, caller, "remove sender policy", f"stream {stream}") as work:
        obj = _stream(work, stream)
        row = work.session.get(SenderPolicy, (obj.id, work.subject.user_id))
        if row is not None:
            work.session.delete(row)
        work.change.bump_generation()


def _stream(view: Reading, name: str) -> Object:
    obj = view.find(ObjectKind.STREAM, name)
    view.require(Permission.SEND, obj)
    row = view.session.get_one(StreamRow, obj.id)
    if row.label_rule is None or rule_from_stored(row.label_rule) != BySender():
        raise Conflict(
            f"the label rule of {name!r} does not ask its senders; only a stream that was added "
            "with --label-rule SENDER has policies of senders"
        )
    return obj

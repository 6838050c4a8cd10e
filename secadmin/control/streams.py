"""Streams: showing and removing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import select

from catalog.errors import Conflict
from catalog.floors import remember_readable
from catalog.label_texts import rule_from_stored
from catalog.models import Object, OutputInput, RunStatus, StreamRow
from catalog.permission import ObjectKind, Permission
from catalog.record_format import RecordFormat
from catalog.relation import Relation
from catalog.run_counts import refused_kind
from catalog.run_names import ingest_run_name
from catalog.stored_form import from_stored
from secadmin.control.health import faults_of
from secadmin.control.level_rules import shown_rules
from secadmin.control.platform import Platform
from secadmin.control.sender_topics import ShownSender, shown_senders
from secadmin.control.settlement import of_objects
from secadmin.control.sight import Sight
from secadmin.control.work import (
    Caller,
    Reading,
    Work,
    reading,
    working,
)
from secadmin.languages import rule_text


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream as a caller sees it. `schema` is None if the caller may not view the schema.

    `rate` is the declared one, in tuples a second, or None.
    `problems` are the faults of its topics. `refused` is the number of refused records; it is None
    if the caller may not read the quarantine and does not hold CHANGE SYSTEM. `senders`,
    `label_rule` and `company_rules` are None if the caller may not change the stream's permissions,
    and rules also if there are none.
    """

    schema: str | None
    relation: Relation
    max_ahead_ms: int
    max_bytes: int
    partitions: int
    record_format: RecordFormat
    shared: bool
    floored: bool
    rate: int | None
    problems: tuple[str, ...]
    refused: int | None
    senders: tuple[ShownSender, ...] | None
    label_rule: str | None
    company_rules: Mapping[str, str] | None


def show_stream(platform: Platform, caller: Caller, name: str) -> StreamView:
    """A stream's definition, for a caller that may view it."""
    with reading(platform, caller, "show stream", f"stream {name}") as view:
        obj = view.find(ObjectKind.STREAM, name)
        row = view.session.get_one(StreamRow, obj.id)
        schema = view.session.get_one(Object, row.schema_id)
        return StreamView(
            schema.name if view.may_view(schema) else None,
            from_stored(Relation, row.relation),
            row.max_ahead_ms,
            row.max_bytes,
            row.partitions,
            from_stored(RecordFormat, row.record_format),
            row.shared,
            row.floored,
            row.rate,
            tuple(f"{topic}: {why}" for topic, why in faults_of(view.session, obj).items()),
            _refused(view, obj, row),
            *_for_its_keeper(view, obj, row),
        )


def _for_its_keeper(
    view: Reading, obj: Object, row: StreamRow
) -> tuple[tuple[ShownSender, ...] | None, str | None, Mapping[str, str] | None]:
    """The senders and the rules. A sender must not learn of other senders, nor of roles."""
    if not view.authorizer.decide(view.subject, Permission.CHANGE_PERM, obj).allowed:
        return None, None, None
    rule = None if row.label_rule is None else rule_text(rule_from_stored(row.label_rule))
    return tuple(shown_senders(view.session, obj.id)), rule, shown_rules(view.session, row)


def _refused(view: Reading, obj: Object, row: StreamRow) -> int | None:
    sight = Sight(view.session)
    sight.look_up_floors([view.subject.user_id])
    reads = sight.may_read_quarantine(view.subject, obj)
    if not reads and not view.holds_system(Permission.CHANGE_SYSTEM):
        return None
    status = view.session.get(RunStatus, ingest_run_name(row.ingest_group))
    return status.counts.get(refused_kind(obj.id), 0) if status is not None else 0


def remove_stream(platform: Platform, caller: Caller, name: str) -> None:
    """Remove a stream that no query reads any more, with its topics. Needs CHANGE PERM on it."""
    with working(platform, caller, "remove stream", f"stream {name}") as work:
        remember_readable(work.session)
        obj = work.find(ObjectKind.STREAM, name)
        work.require(Permission.CHANGE_PERM, obj)
        require_unread(work, obj)
        obj.removed_at = platform.clock()
        work.session.flush()
        work.settlement.settle(of_objects(obj.id))
        work.change.bump_generation()


def require_unread(work: Work, relation: Object, besides: frozenset[int] = frozenset()) -> None:
    """Raise Conflict while a live output, other than `besides`, reads the relation."""
    readers = (
        select(Object.id)
        .join(OutputInput, OutputInput.output_id == Object.id)
        .where(
            OutputInput.relation_id == relation.id,
            Object.removed_at.is_(None),
            Object.id.not_in(besides),
        )
        .order_by(Object.id)
    )
    if blocking := list(work.session.scalars(readers)):
        raise Conflict(
            f"queries still read {relation.name!r}; they are removed first: "
            f"executions {', '.join(map(str, blocking))}"
        )

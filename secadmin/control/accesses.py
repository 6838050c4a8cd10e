"""Accesses: the Kafka principals that users get for reading and for sending."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, and_, select
from sqlalchemy.orm import selectinload

from catalog.access_kind import AccessKind
from catalog.backfills import BackfillState, backfills_of, state_of
from catalog.errors import Denied, NotFound
from catalog.label import Label
from catalog.models import (
    Access,
    Backfill,
    DeliveryClass,
    Object,
    OutputRow,
    QueryRow,
    Role,
)
from catalog.query_roles import counting_roles
from catalog.reaches import Reaches
from catalog.relation import Relation
from catalog.role_views import WHOLE, RoleViews
from catalog.session_levels import to_stored
from catalog.stored_form import from_stored
from catalog.topics import out_pattern, quarantine_topic
from catalog.wanted import fed_classes
from secadmin.control.one_window import require_one_window
from secadmin.control.open_classes import require_room_for_classes
from secadmin.control.platform import Platform
from secadmin.control.room import require_room_for_access
from secadmin.control.sender_topics import settle_senders
from secadmin.control.settlement import undone_topics
from secadmin.control.visible_relations import shows_more
from secadmin.control.walls import choose_in, require_choice
from secadmin.control.withdrawals_first import carrying_out_first
from secadmin.control.work import Caller, Reading, reading, working
from secadmin.kafka.acl import group_prefix
from secadmin.kafka.principals import new_principal_name


@dataclass(frozen=True, slots=True)
class Given:
    """A new access. Its secret is shown only once. `topic` is None if the user reads a pattern."""

    principal: str
    secret: str = field(repr=False)
    kind: AccessKind = AccessKind.OUTPUT
    topic: str | None = None
    topic_pattern: str | None = None
    group_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class BackfillView:
    """A backfill of an access: its topic has results of what came `since` then."""

    topic: str
    since: datetime
    state: BackfillState

    @classmethod
    def of(cls, row: Backfill, of_class: DeliveryClass) -> BackfillView:
        """The view of a backfill and its class."""
        return cls(of_class.topic, row.since, state_of(row))


@dataclass(frozen=True, slots=True)
class AccessView:
    """An access as its user sees it.

    `topics` are the topics that it reaches now, and `active` says whether there are any. `fed` says
    whether results are delivered to all of them; for a new class this takes a moment. `fed_since`
    is the time since when this is so, or None if it is not known. The topics of `backfills` are
    among its topics, and do not count for that.
    """

    principal: str
    kind: AccessKind
    name: str
    keep: bool
    active: bool
    fed: bool
    fed_since: datetime | None
    topics: tuple[str, ...]
    created_at: datetime
    backfills: tuple[BackfillView, ...] = ()


def give(  # one parameter for each part of the call
    platform: Platform,
    caller: Caller,
    kind: AccessKind,
    name: str,
    keep: bool,
    choices: Mapping[str, str] | None = None,
) -> Given:
    """Give the caller a new principal for an output, for a quarantine or for sending.

    `choices` has the companies that the caller chooses to read, by their conflict classes.

    Needs SUBSCRIBE on the output, READ TUPLE on the stream, or SEND on it. The principal holds the
    session's active roles and ends with the session unless `keep`. Raises Denied where policies of
    these roles hide what is read or the wall of the caller closes a company, InvalidInput where the
    caller has to choose one, and Conflict where the user has too many accesses, other windows over
    the same stream, or the output too many classes.
    """
    object_kind, permission = kind.needed
    principal = new_principal_name(kind)
    with reading(platform, caller, f"prepare access: {kind}", f"{object_kind} {name}") as view:
        obj = view.find(object_kind, name)
        view.require(permission, obj)
        _require_sight_of_all(view, kind, obj)
        if kind is AccessKind.OUTPUT:
            _require_one_window(view, obj)
        require_room_for_access(platform.user_limits, view.session, view.subject.user_id)
    # If a later step fails, the upkeep deletes the principal, which has no access.
    secret = platform.kafka.create_principal(principal)
    with working(platform, caller, f"access: {kind}", f"{object_kind} {name}") as work:
        obj = work.find(object_kind, name)
        work.require(permission, obj)
        _require_sight_of_all(work, kind, obj)
        require_room_for_access(platform.user_limits, work.session, work.subject.user_id)
        if choices:
            choose_in(work, choices)
        if kind is AccessKind.OUTPUT:
            require_choice(work, _reach(work, obj))
            _require_one_window(work, obj)
        own = select(Role).where(Role.id.in_(work.subject.active_role_ids))
        access = Access(
            kind=kind,
            user_id=work.subject.user_id,
            session_id=None if keep else work.subject.session_id,
            object_id=obj.id,
            principal=principal,
            created_at=platform.clock(),
            roles=list(work.session.scalars(own)),
            level=to_stored(work.subject.session_level),
        )
        work.session.add(access)
        work.session.flush()
        if kind is AccessKind.SEND:
            settle_senders(work, platform.limits)
        work.settlement.settle_new(access, work.subject)
        require_room_for_classes(work, platform.limits, platform.spaces)
        topic = next((row.topic for row in access.topics), None)
        work.detail.update(principal=principal, keep=keep)
    if kind is AccessKind.OUTPUT:
        pattern = out_pattern(name)
        return Given(principal, secret, kind, None, pattern, group_prefix(principal))
    prefix = group_prefix(principal) if kind is AccessKind.QUARANTINE else None
    told = quarantine_topic(name) if kind is AccessKind.QUARANTINE else topic
    return Given(principal, secret, kind, told, None, prefix)


def _reach(view: Reading, output: Object) -> Label:
    row = view.session.get_one(OutputRow, output.id)
    return Reaches(view.session).of(from_stored(Relation, row.relation))


def _require_one_window(view: Reading, output: Object) -> None:
    own = view.subject
    require_one_window(view.session, own.user_id, own.role_ids, output)


def _require_sight_of_all(view: Reading, kind: AccessKind, obj: Object) -> None:
    """Raise Denied if policies of the caller's roles hide a part of what it wants to read."""
    views, roles = RoleViews(view.session), view.subject.role_ids
    if kind is AccessKind.OUTPUT:
        output = view.session.get_one(OutputRow, obj.id)
        query = view.session.get_one(QueryRow, output.query_id)
        counting = counting_roles(view.session, query)
        roles = roles if counting is None else roles & counting
    if kind is AccessKind.OUTPUT and not views.cover_output(roles, obj.id):
        raise Denied(shows_more(obj.name))
    if kind is AccessKind.QUARANTINE and not views.cover(roles, obj.id, WHOLE):
        raise Denied(
            f"refused records of {obj.name} have all attributes, and the policies of your roles "
            "show only a part of them"
        )


def list_accesses(platform: Platform, caller: Caller) -> list[AccessView]:
    """The caller's live accesses: those of this session, and kept ones."""
    with reading(platform, caller, "list accesses", f"user {caller.user_name}") as view:
        return _own(platform, view)


def show_access(platform: Platform, caller: Caller, principal: str) -> AccessView:
    """One of the caller's live accesses: what its handle stands for (002 §3.2).

    It is looked up anew each time. So it never shows more than the policies do now. Raises NotFound
    for other principals, and for an access that has ended.
    """
    with reading(platform, caller, "show access", f"access {principal}") as view:
        found = _own(platform, view, Access.principal == principal)
        if not found:
            raise _no_access(principal)
        return found[0]


def _own(platform: Platform, view: Reading, *wanted: ColumnElement[bool]) -> list[AccessView]:
    own = (
        select(Access, Object.name)
        .join(Object, Object.id == Access.object_id)
        .where(Access.user_id == view.subject.user_id, Access.ended_at.is_(None), *wanted)
        .order_by(Access.id)
    )
    rows = view.session.execute(own.options(selectinload(Access.topics))).all()
    backfills: defaultdict[int, list[BackfillView]] = defaultdict(list)
    of_backfills: set[int] = set()
    for row, of_class in backfills_of(view.session, [access.id for access, _ in rows]):
        backfills[row.access_id].append(BackfillView.of(row, of_class))
        of_backfills.add(row.class_id)
    classes = {t.class_id for access, _ in rows for t in access.topics} - of_backfills
    known = (found for found in classes if found is not None)
    fed = fed_classes(view.session, known, platform.pulse.living(view.session))
    return [_view(access, name, fed, tuple(backfills[access.id])) for access, name in rows]


def _no_access(principal: str) -> NotFound:
    return NotFound(f"no access {principal!r}")


def _view(
    access: Access, name: str, fed: Collection[int], backfills: tuple[BackfillView, ...]
) -> AccessView:
    """Make the view. `fed` has the classes to which results are delivered."""
    filled = {each.topic for each in backfills}
    staying = [row for row in access.topics if not row.leaving and row.topic not in filled]
    is_fed = all(row.class_id is None or row.class_id in fed for row in staying)
    since = [row.fed_at for row in staying if row.fed_at is not None]
    return AccessView(
        principal=access.principal,
        kind=AccessKind(access.kind),
        name=name,
        keep=access.session_id is None,
        active=bool(access.topics),
        fed=is_fed,
        fed_since=max(since) if is_fed and since and len(since) == len(staying) else None,
        topics=tuple(sorted(row.topic for row in access.topics)),
        created_at=access.created_at,
        backfills=backfills,
    )


def end(platform: Platform, caller: Caller, principal: str) -> None:
    """End one of the caller's accesses, and fence it. Raises NotFound for other principals."""
    with (
        carrying_out_first(platform) as undone,
        working(platform, caller, "end access", f"access {principal}") as work,
    ):
        own = and_(Access.principal == principal, Access.user_id == work.subject.user_id)
        access = work.session.scalar(select(Access).where(own, Access.ended_at.is_(None)))
        if access is None:
            undone.update(undone_topics(work.session, own))
            raise _no_access(principal)
        work.settlement.end(access)

"""Walls: the levels of users, and the choice that closes the others (001 §3, Brewer and Nash).

A user's level names for each conflict class one company, T, or nothing. It may also be left to the
user: then the first company that the user chooses to read closes the others of the class, for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import select

from catalog.conflict_class import NOTHING, TRUSTED, ConflictClass
from catalog.conflict_classes import conflict_classes, levels_of
from catalog.engines import INGEST
from catalog.errors import Conflict, Denied, InvalidInput, NotFound
from catalog.floors import remember_readable
from catalog.label import Label
from catalog.models import Access, Object, SenderRow, StreamRow, User, UserLevel
from catalog.permission import Permission
from catalog.run_names import ingest_run_name
from catalog.sender_state import SenderState
from catalog.session_levels import classes_of, within
from catalog.wanted import is_applied
from secadmin.control.conflict_classes import find_class
from secadmin.control.platform import Platform
from secadmin.control.settlement import of_user, undone_topics
from secadmin.control.withdrawals_first import carrying_out_first
from secadmin.control.work import Caller, Reading, Work, reading, working


@dataclass(frozen=True, slots=True)
class WallPart:
    """The level of a user in one conflict class. `part` is None before the user has chosen."""

    conflict_class: str
    part: str | None
    by_choice: bool


@dataclass(frozen=True, slots=True)
class Wall:
    """The level of a user, class by class. It is `applied` if ingest gives it to all that it reads
    of what the user sends.
    """

    levels: tuple[WallPart, ...]
    applied: bool


def show_own_wall(platform: Platform, caller: Caller) -> Wall:
    """The level of the caller."""
    with reading(platform, caller, "show wall", f"user {caller.user_name}") as view:
        return _wall(platform, view, view.subject.user_id)


def show_wall(platform: Platform, caller: Caller, user: str) -> Wall:
    """The level of a user. Needs CHANGE SYSTEM."""
    with reading(platform, caller, "show wall", f"user {user}") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        return _wall(platform, view, view.user(user).id)


def _wall(platform: Platform, view: Reading, user: int) -> Wall:
    rows = (
        select(UserLevel, Object.name)
        .join(Object, Object.id == UserLevel.class_id)
        .where(UserLevel.user_id == user, Object.removed_at.is_(None))
        .order_by(Object.id)
    )
    found = view.session.execute(rows).all()
    parts = tuple(WallPart(name, row.part, row.by_choice) for row, name in found)
    return Wall(parts, _is_applied(platform, view, user))


def _is_applied(platform: Platform, view: Reading, user: int) -> bool:
    """Whether ingest runs as it is wanted for the streams whose tuples have the user's level."""
    sent = (
        select(StreamRow.ingest_group)
        .join(SenderRow, SenderRow.stream_id == StreamRow.object_id)
        .where(
            SenderRow.user_id == user,
            SenderRow.state == SenderState.ACTIVE,
            StreamRow.level_rule.is_not(None),
        )
    )
    groups = set(view.session.scalars(sent))
    alive = INGEST in platform.pulse.living(view.session)
    return not groups or (
        alive and all(is_applied(view.session, ingest_run_name(group)) for group in groups)
    )


def set_level(platform: Platform, caller: Caller, name: str, user: str, part: str | None) -> None:
    """Set the level of a user in a conflict class: a company, T, or _. None leaves it to the user.

    Needs CHANGE SYSTEM. What the user does not hold any more has ended when the call has returned.
    What the user sends gets the new level once ingest has started again (`Wall.applied`).
    Raises InvalidInput, and Conflict where the user has chosen: only a reset changes that level.
    """
    with working(platform, caller, "set level", f"user {user}: {name}") as work:
        remember_readable(work.session)
        work.require_system(Permission.CHANGE_SYSTEM)
        found, holder = find_class(work, name), work.user(user)
        row = _row(work, holder.id, found.id)
        if row is not None and row.by_choice and row.part is not None:
            raise Conflict(
                f"{user} has chosen {row.part} in {name}, which closed the others; reset the wall "
                "first, which ends all that the user reads"
            )
        written = None if part is None else _written(found, part)
        _set(work, holder, found, written, by_choice=part is None)


def take_level(platform: Platform, caller: Caller, name: str, user: str) -> None:
    """Take a user's level in a conflict class away. Needs CHANGE SYSTEM.

    The user reads no company of the class any more. Raises NotFound, and Conflict where the user
    has chosen: then only a reset takes it away.
    """
    with (
        carrying_out_first(platform) as undone,
        working(platform, caller, "take level", f"user {user}: {name}") as work,
    ):
        remember_readable(work.session)
        work.require_system(Permission.CHANGE_SYSTEM)
        found, holder = find_class(work, name), work.user(user)
        row = _row(work, holder.id, found.id)
        if row is None:
            undone.update(undone_topics(work.session, of_user(holder)))
            raise NotFound(f"{user!r} has no level in {name!r}")
        if row.by_choice and row.part is not None:
            raise Conflict(
                f"{user} has chosen {row.part} in {name}; reset the wall to take it away, which "
                "ends all that the user reads"
            )
        work.session.delete(row)
        work.session.flush()
        _changed(work, holder)


def reset_wall(platform: Platform, caller: Caller, name: str, user: str) -> None:
    """Let a user that has chosen choose again. Needs CHANGE SYSTEM.

    All accesses of the user end, kept ones too, and that is fenced when the call has returned. The
    user may still know what it has read: that is why nobody else may reset a wall.
    """
    with working(platform, caller, "reset wall", f"user {user}: {name}") as work:
        remember_readable(work.session)
        work.require_system(Permission.CHANGE_SYSTEM)
        found, holder = find_class(work, name), work.user(user)
        row = _row(work, holder.id, found.id)
        if row is None or not row.by_choice:
            raise Conflict(f"{user} does not choose in {name}; there is nothing to reset")
        live = select(Access).where(Access.user_id == holder.id, Access.ended_at.is_(None))
        for access in work.session.scalars(live.order_by(Access.id)):
            work.settlement.end(access)
        work.detail["was"] = row.part
        row.part = None
        work.session.flush()
        _changed(work, holder)


def choose(platform: Platform, caller: Caller, name: str, company: str) -> None:
    """Choose the company of a conflict class that the caller reads. It closes the others for good.

    Raises Denied where the level is not left to the caller, or where it has chosen another one.
    """
    with working(platform, caller, "choose company", f"conflict class {name}") as work:
        remember_readable(work.session)
        choose_in(work, {name: company})


def choose_in(work: Work, companies: Mapping[str, str]) -> None:
    """Choose these companies, by the names of their conflict classes, in a change that goes on.

    Two sessions cannot choose differently, because changes of the catalog are one after the other.
    """
    user = work.session.get_one(User, work.subject.user_id)
    for name, company in companies.items():
        found = find_class(work, name)
        row = _row(work, user.id, found.id)
        if row is None or not row.by_choice:
            raise Denied(f"in the conflict class {name} the company is not yours to choose")
        if company not in found.companies:
            raise InvalidInput(f"the conflict class {name} has no company {company[:80]!r}")
        if row.part not in (None, company):
            raise Denied(
                f"you have chosen {row.part} in {name}, and that has closed its other companies"
            )
        row.part = company
    work.session.flush()
    work.detail["chosen"] = dict(companies)
    _changed(work, user)
    level = levels_of(work.session, [user.id]).get(user.id, Label())
    chosen = work.subject.session_level
    level = within(level, chosen, classes_of(work.session, [chosen]))
    work.subject = replace(work.subject, level=level)


def require_choice(view: Reading, reach: Label) -> None:
    """Raise InvalidInput if the caller must choose a company before it reads what has this reach.

    Also an aggregate of companies' tuples is read (001 §3). Who chooses a company may view its
    conflict class, so the error says whether that right is lacking.
    """
    rows = view.session.scalars(
        select(UserLevel).where(
            UserLevel.user_id == view.subject.user_id,
            UserLevel.by_choice.is_(True),
            UserLevel.part.is_(None),
        )
    ).all()
    for found in conflict_classes(view.session, [row.class_id for row in rows]).values():
        if found.categories.bits & reach.bits:
            how = f"add --company {found.name}=NAME"
            if not view.may_view(view.session.get_one(Object, found.id)):
                how = f"ask for VIEW OBJECT on conflict-class {found.name}, and then {how}"
            raise InvalidInput(
                f"this can show companies of {found.name}, and you have not chosen one: {how}. It "
                f"closes the others of {found.name} to you, for good"
            )


def _written(found: ConflictClass, part: str) -> str:
    label = found.label_of(part)
    if label is None:
        known = ", ".join(found.companies) or "none yet"
        raise InvalidInput(
            f"the conflict class {found.name} has no company {part[:80]!r}; companies: {known}; T "
            "means all of them, and _ none"
        )
    if part == TRUSTED:
        return TRUSTED
    return part if part in found.companies else NOTHING


def _row(work: Work, user: int, class_id: int) -> UserLevel | None:
    return work.session.get(UserLevel, (user, class_id))


def _set(
    work: Work, user: User, found: ConflictClass, part: str | None, *, by_choice: bool
) -> None:
    row = UserLevel(user_id=user.id, class_id=found.id, part=part, by_choice=by_choice)
    work.session.merge(row)
    work.session.flush()
    work.detail.update(level=part, by_choice=by_choice)
    _changed(work, user)


def _changed(work: Work, user: User) -> None:
    """Give the user's accesses what the level shows now, and tell ingest what it sends."""
    work.settlement.settle(of_user(user))
    work.change.bump_generation()

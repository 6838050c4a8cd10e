"""Users and roles. All these calls need CHANGE SYSTEM."""

from __future__ import annotations

from sqlalchemy import ColumnElement, delete, or_, select

from catalog.errors import Conflict, InvalidInput, NotFound
from catalog.floors import remember_readable
from catalog.label_texts import forget_role
from catalog.models import (
    AccessRole,
    Grant,
    Membership,
    Object,
    OperatorLimitsRow,
    PolicyRow,
    QueryAsRole,
    QueryRole,
    QueryRow,
    Role,
    Seniority,
    Session,
    SessionRole,
    User,
)
from catalog.names import check_role_name, check_user_name
from catalog.passwords import one_time_password
from catalog.permission import Permission
from catalog.roles import add_junior, remove_junior
from catalog.senders import kept_from_aggregates
from catalog.sessions import end_session, open_sessions_of
from secadmin.control.open_classes import require_room_for_classes
from secadmin.control.operator_limits import stop_beyond_limits
from secadmin.control.platform import Platform
from secadmin.control.policies import note_policies_of
from secadmin.control.queries import stop_for
from secadmin.control.sender_topics import settle_senders
from secadmin.control.sender_warnings import warnings_about
from secadmin.control.settlement import (
    members_of,
    of_named_above,
    of_role,
    of_senders,
    of_user,
    of_users,
    undone_topics,
)
from secadmin.control.slices import slices
from secadmin.control.withdrawals_first import carrying_out_first
from secadmin.control.work import Caller, Work, reading, working


def list_users(platform: Platform, caller: Caller) -> list[tuple[str, bool, list[str]]]:
    """All users: name, locked, roles."""
    with reading(platform, caller, "list users", "system") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        held: dict[int, list[str]] = {}
        pairs = select(Membership.user_id, Role.name).join(Role, Role.id == Membership.role_id)
        for user_id, role in view.session.execute(pairs.order_by(Role.name)):
            held.setdefault(user_id, []).append(role)
        users = view.session.scalars(select(User).order_by(User.name))
        return [(user.name, user.locked, held.get(user.id, [])) for user in users]


def add_user(platform: Platform, caller: Caller, name: str, password: str | None) -> str | None:
    """Add a user. If no password is given, a one-time password is made and returned.

    A given password is one-time too, because somebody else chose it: the user must change it at the
    first login.
    """
    check_user_name(name)
    target = f"user {name}"
    with reading(platform, caller, "prepare user", target) as view:
        view.require_system(Permission.CHANGE_SYSTEM)
    one_time = None if password is not None else one_time_password()
    # bcrypt is slow, so it runs before the catalog is locked.
    hashed = platform.passwords.hash(password or one_time or "")
    with working(platform, caller, "add user", target) as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        if work.session.scalar(select(User).where(User.name == name)):
            raise Conflict(f"there is a user {name!r} already")
        work.session.add(
            User(
                name=name,
                password_hash=hashed,
                must_change_password=True,
                created_at=platform.clock(),
            )
        )
    return one_time


def set_locked(platform: Platform, caller: Caller, name: str, locked: bool) -> None:
    """Lock or unlock a user.

    Locking ends the user's sessions and accesses, and stops its queries. Unlocking does not bring
    them back.
    """
    with working(platform, caller, "lock" if locked else "unlock", f"user {name}") as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        user = work.user(name)
        user.locked = locked
        if not locked:
            user.failed_logins, user.logins_stopped_until = 0, None
            return
        for login in open_sessions_of(work.session, user):
            end_session(work.change, login, "end session", "the user was locked")
        own = (
            select(QueryRow)
            .join(Object, Object.id == QueryRow.object_id)
            .where(Object.owner_id == user.id, Object.removed_at.is_(None))
        )
        stop_for(work, work.session.scalars(own).all(), "stopped when its owner was locked")
        work.session.flush()
        work.settlement.settle(of_user(user))


def reset_password(platform: Platform, caller: Caller, name: str) -> str:
    """Give a user a new one-time password and return it. It must be changed at the next login.

    The user's sessions and their accesses end, fenced. Kept accesses stay.
    """
    target = f"user {name}"
    with reading(platform, caller, "prepare password", target) as view:
        view.require_system(Permission.CHANGE_SYSTEM)
    made = one_time_password()
    hashed = platform.passwords.hash(made)
    with working(platform, caller, "reset password", target) as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        user = work.user(name)
        user.password_hash, user.must_change_password = hashed, True
        user.failed_logins, user.logins_stopped_until = 0, None
        for login in open_sessions_of(work.session, user):
            end_session(work.change, login, "end session", "the password was reset")
        work.session.flush()
        work.settlement.settle(of_user(user))
    return made


def assign_role(platform: Platform, caller: Caller, user: str, role: str) -> list[str]:
    """Let the user activate the role from its next login on. Gives warnings.

    If the role may SEND, the user loses declared aggregates at once, fenced.
    """
    with working(platform, caller, "assign role", f"user {user}: {role}") as work:
        remember_readable(work.session)
        work.require_system(Permission.CHANGE_SYSTEM)
        holder, given = work.user(user), work.role(role)
        work.session.merge(Membership(user_id=holder.id, role_id=given.id))
        work.session.flush()
        settle_senders(work, platform.limits)
        work.settlement.settle(of_user(holder))
        require_room_for_classes(work, platform.limits, platform.spaces)
        kept = kept_from_aggregates(work.session, given.id, given.id, user=holder.id)
        return warnings_about(work, kept)


def unassign_role(platform: Platform, caller: Caller, user: str, role: str) -> None:
    """Take the role from the user. Sessions lose it, and accesses with this role end, fenced."""
    with (
        carrying_out_first(platform) as undone,
        working(platform, caller, "unassign role", f"user {user}: {role}") as work,
    ):
        remember_readable(work.session)
        work.require_system(Permission.CHANGE_SYSTEM)
        holder, taken = work.user(user), work.role(role)
        pair = work.session.get(Membership, (holder.id, taken.id))
        if pair is None:
            undone.update(undone_topics(work.session, of_user(holder)))
            raise NotFound(f"user {user!r} does not have the role {role!r}")
        work.session.delete(pair)
        logins = select(Session.id).where(Session.user_id == holder.id)
        work.session.execute(
            delete(SessionRole).where(
                SessionRole.role_id == taken.id, SessionRole.session_id.in_(logins)
            )
        )
        work.session.flush()
        stop_beyond_limits(work)
        settle_senders(work, platform.limits)
        work.settlement.settle(of_user(holder))


def list_roles(platform: Platform, caller: Caller) -> list[tuple[str, list[str]]]:
    """All roles with their direct juniors."""
    with reading(platform, caller, "list roles", "system") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        roles = {role.id: role.name for role in view.session.scalars(select(Role))}
        juniors: dict[int, list[str]] = {}
        for pair in view.session.scalars(select(Seniority)):
            juniors.setdefault(pair.senior_id, []).append(roles[pair.junior_id])
        ordered = sorted(roles.items(), key=lambda item: item[1])
        return [(name, sorted(juniors.get(role_id, []))) for role_id, name in ordered]


def add_role(platform: Platform, caller: Caller, name: str) -> None:
    """Add a role that holds nothing yet."""
    check_role_name(name)
    with working(platform, caller, "add role", f"role {name}") as work:
        work.require_system(Permission.CHANGE_SYSTEM)
        if work.session.scalar(select(Role).where(Role.name == name)):
            raise Conflict(f"there is a role {name!r} already")
        work.session.add(Role(name=name))


def remove_role(platform: Platform, caller: Caller, name: str) -> None:
    """Remove a role and its grants. Sessions lose it, and accesses with this role end, fenced."""
    with working(platform, caller, "remove role", f"role {name}") as work:
        remember_readable(work.session)
        work.require_system(Permission.CHANGE_SYSTEM)
        role = work.role(name)
        touched = or_(of_role(work.change, role.id), of_named_above(work.change, role.id))
        members = list(work.session.scalars(members_of(work.change, role.id)))
        note_policies_of(work, role)
        forget_role(work.session, role)
        for table, column in (
            (Grant, Grant.role_id),
            (PolicyRow, PolicyRow.role_id),
            (OperatorLimitsRow, OperatorLimitsRow.role_id),
            (QueryRole, QueryRole.role_id),
            (Membership, Membership.role_id),
            (SessionRole, SessionRole.role_id),
            (Seniority, Seniority.senior_id),
            (Seniority, Seniority.junior_id),
        ):
            work.session.execute(delete(table).where(column == role.id))
        # Nobody can say what a query sees that saw its streams as this role. It stays narrowed.
        seen_as = select(QueryRow).join(QueryAsRole, QueryAsRole.query_id == QueryRow.object_id)
        named = work.session.scalars(seen_as.where(QueryAsRole.role_id == role.id)).all()
        stop_for(work, named, "stopped when its role was removed")
        work.session.execute(delete(QueryAsRole).where(QueryAsRole.role_id == role.id))
        for query in named:
            work.session.expire(query, ["as_roles"])
        work.session.flush()
        stop_beyond_limits(work)
        settle_senders(work, platform.limits)
        # The accesses still name the role. They end because the role has no members.
        work.settlement.settle(touched)
        # Users that could send only by this role see declared aggregates again.
        for some in slices(members):
            work.settlement.settle(of_users(some))
        work.session.flush()
        work.session.execute(delete(AccessRole).where(AccessRole.role_id == role.id))
        work.session.expire_all()
        work.session.delete(role)


def add_seniority(platform: Platform, caller: Caller, senior: str, junior: str) -> list[str]:
    """Let the senior role hold everything that the junior role holds. Gives warnings.

    If the junior role may SEND, members of the senior role lose declared aggregates, fenced.
    """
    with working(platform, caller, "add junior role", f"role {senior}: {junior}") as work:
        remember_readable(work.session)
        work.require_system(Permission.CHANGE_SYSTEM)
        upper, lower = work.role(senior), work.role(junior)
        add_junior(work.session, upper, lower)
        settle_senders(work, platform.limits)
        work.settlement.settle(_below(work, upper))
        require_room_for_classes(work, platform.limits, platform.spaces)
        return warnings_about(work, kept_from_aggregates(work.session, lower.id, upper.id))


def remove_seniority(platform: Platform, caller: Caller, senior: str, junior: str) -> None:
    """Take the junior role's rights from the senior role."""
    with (
        carrying_out_first(platform) as undone,
        working(platform, caller, "remove junior role", f"role {senior}: {junior}") as work,
    ):
        remember_readable(work.session)
        work.require_system(Permission.CHANGE_SYSTEM)
        upper, lower = work.role(senior), work.role(junior)
        if not remove_junior(work.session, upper, lower):
            undone.update(undone_topics(work.session, _below(work, upper)))
            raise InvalidInput(f"{junior!r} is not a direct junior of {senior!r}")
        stop_beyond_limits(work)
        settle_senders(work, platform.limits)
        work.settlement.settle(_below(work, upper))


def _below(work: Work, senior: Role) -> ColumnElement[bool]:
    """The accesses that may change if the junior roles of the role change."""
    changed = (of_role, of_senders, of_named_above)
    return or_(*(each(work.change, senior.id) for each in changed))

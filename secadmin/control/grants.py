"""Granting and revoking permissions of roles on objects (OxRBAC, 004 §2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, or_, select

from catalog.floors import remember_readable
from catalog.models import Grant, Object, Role
from catalog.permission import ObjectKind, Permission, check_applies
from catalog.senders import kept_from_aggregates
from secadmin.control.open_classes import require_room_for_classes
from secadmin.control.operator_limits import stop_beyond_limits
from secadmin.control.platform import Platform
from secadmin.control.sender_topics import settle_senders
from secadmin.control.sender_warnings import warnings_about
from secadmin.control.settlement import of_role, of_senders
from secadmin.control.work import Caller, Work, reading, working


@dataclass(frozen=True, slots=True)
class Granted:
    """The permissions that a grant added, and warnings of unexpected effects."""

    added: list[Permission]
    warnings: list[str]


def grant(
    platform: Platform,
    caller: Caller,
    role: str,
    permissions: Sequence[Permission],
    kind: ObjectKind,
    name: str,
) -> Granted:
    """Grant the role permissions on an object. Gives those that it did not hold before.

    Needs CHANGE PERM on the object. Each user that may SEND now gets a topic of its own. Raises
    Conflict where there is no room for the new senders or classes. Subscriptions that see more for
    it get a new class, and so do those that see less: SEND takes the stream's declared aggregate
    from all that get it. That is fenced when the call has returned.
    """
    permissions = tuple(dict.fromkeys(permissions))
    target, asked = _describe(permissions, role, kind, name), _asked(permissions, role)
    with working(platform, caller, "grant", target, asked) as work:
        if Permission.SEND in permissions:
            # Who may send to a stream is not shown its aggregate any more.
            remember_readable(work.session)
        holder, obj = _prepare(work, role, permissions, kind, name)
        held = _grants(work, holder, obj)
        added = [permission for permission in permissions if permission not in held]
        work.session.add_all(
            Grant(role_id=holder.id, permission=permission, object_id=obj.id)
            for permission in added
        )
        work.session.flush()
        if Permission.SEND in permissions:
            settle_senders(work, platform.limits)
        work.settlement.settle(_concerned(work, holder, permissions))
        require_room_for_classes(work, platform.limits, platform.spaces)
        warnings = _warnings(work, holder, permissions, obj)
    return Granted(added, warnings)


def revoke(
    platform: Platform,
    caller: Caller,
    role: str,
    permissions: Sequence[Permission],
    kind: ObjectKind,
    name: str,
) -> list[Permission]:
    """Revoke permissions of the role. Gives those that it held.

    Needs CHANGE PERM on the object. Users that held a permission only by this grant get nothing
    more by it after the call has returned.
    """
    permissions = tuple(dict.fromkeys(permissions))
    target, asked = _describe(permissions, role, kind, name), _asked(permissions, role)
    with working(platform, caller, "revoke", target, asked) as work:
        remember_readable(work.session)
        holder, obj = _prepare(work, role, permissions, kind, name)
        held = _grants(work, holder, obj)
        taken = [permission for permission in permissions if permission in held]
        for permission in taken:
            work.session.delete(held[permission])
        work.session.flush()
        if Permission.ADD_QUERY in taken:
            stop_beyond_limits(work)
        if Permission.SEND in permissions:
            settle_senders(work, platform.limits)
        work.settlement.settle(_concerned(work, holder, permissions))
    return taken


def grants_on(
    platform: Platform, caller: Caller, kind: ObjectKind, name: str
) -> list[tuple[str, Permission]]:
    """All (role, permission) pairs on an object, for holders of CHANGE PERM on it."""
    with reading(platform, caller, "show grants", f"{kind} {name}") as view:
        obj = view.find(kind, name)
        view.require(Permission.CHANGE_PERM, obj)
        rows = view.session.execute(
            select(Role.name, Grant.permission)
            .join(Grant, Grant.role_id == Role.id)
            .where(Grant.object_id == obj.id)
            .order_by(Role.name, Grant.permission)
        )
        return [(role, Permission(permission)) for role, permission in rows]


def _prepare(
    work: Work, role: str, permissions: Sequence[Permission], kind: ObjectKind, name: str
) -> tuple[Role, Object]:
    obj = work.find(kind, name)
    work.require(Permission.CHANGE_PERM, obj)
    for permission in permissions:
        check_applies(permission, kind)
    return work.role(role), obj


def _warnings(work: Work, role: Role, permissions: Sequence[Permission], obj: Object) -> list[str]:
    if not {Permission.SEND, Permission.READ_AGGREGATE} & set(permissions):
        return []
    kept = kept_from_aggregates(work.session, role.id, members_of=role.id)
    return warnings_about(work, [stream for stream in kept if stream.id == obj.id])


def _concerned(work: Work, role: Role, permissions: Sequence[Permission]) -> ColumnElement[bool]:
    """The accesses that may change with these permissions of the role."""
    own = of_role(work.change, role.id)
    sends = Permission.SEND in permissions
    return or_(own, of_senders(work.change, role.id)) if sends else own


def _grants(work: Work, role: Role, obj: Object) -> dict[Permission, Grant]:
    own = select(Grant).where(Grant.role_id == role.id, Grant.object_id == obj.id)
    return {Permission(grant.permission): grant for grant in work.session.scalars(own)}


def _asked(permissions: Sequence[Permission], role: str) -> dict[str, object]:
    """Who gets or loses what, for the audit log: the words of the entry may be cut."""
    return {"role": role, "permissions": sorted(permissions)}


def _describe(permissions: Sequence[Permission], role: str, kind: ObjectKind, name: str) -> str:
    return f"{kind} {name}: {', '.join(permissions)} of {role}"

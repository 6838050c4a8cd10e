"""Granting and revoking permissions of roles on objects (OxRBAC, 004 §2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from catalog.models import Grant, Object, Role
from catalog.permission import ObjectKind, Permission, check_applies
from secadmin.control.kept_out import CONCERNED, kept_out, members_of, warnings_of
from secadmin.control.platform import Platform
from secadmin.control.settlement import of_role
from secadmin.control.work import Caller, Work, reading, working


@dataclass(frozen=True, slots=True)
class Granted:
    """The permissions that the role did not hold before, and what they take away elsewhere."""

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
    """Grant the role permissions on an object.

    Needs CHANGE PERM on the object. Subscriptions that see more for it move to their new class. A
    right to send takes the stream's declared aggregate from whoever gets it: that is fenced as a
    revocation is, when the call has returned, and warned of.
    """
    with working(platform, caller, "grant", _describe(permissions, role, kind, name)) as work:
        holder, obj = _prepare(work, role, permissions, kind, name)
        held = _grants(work, holder, obj)
        added = [permission for permission in dict.fromkeys(permissions) if permission not in held]
        work.session.add_all(
            Grant(role_id=holder.id, permission=permission, object_id=obj.id)
            for permission in added
        )
        work.session.flush()
        work.settlement.settle(of_role(work.change, holder.id))
        pairs = kept_out(work.session, members_of(work.session, holder.id))
        here = [
            pair for pair in pairs if pair[1] == obj.id and not CONCERNED.isdisjoint(permissions)
        ]
        return Granted(added, warnings_of(work, here))


def revoke(
    platform: Platform,
    caller: Caller,
    role: str,
    permissions: Sequence[Permission],
    kind: ObjectKind,
    name: str,
) -> list[Permission]:
    """Take permissions from the role; returns those that it held.

    Needs CHANGE PERM on the object. When the call has returned, nothing more that the permission
    opened arrives at anybody who held it only through this grant.
    """
    with working(platform, caller, "revoke", _describe(permissions, role, kind, name)) as work:
        holder, obj = _prepare(work, role, permissions, kind, name)
        held = _grants(work, holder, obj)
        taken = [permission for permission in dict.fromkeys(permissions) if permission in held]
        for permission in taken:
            work.session.delete(held[permission])
        work.session.flush()
        work.settlement.settle(of_role(work.change, holder.id))
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


def _grants(work: Work, role: Role, obj: Object) -> dict[Permission, Grant]:
    own = select(Grant).where(Grant.role_id == role.id, Grant.object_id == obj.id)
    return {Permission(grant.permission): grant for grant in work.session.scalars(own)}


def _describe(permissions: Sequence[Permission], role: str, kind: ObjectKind, name: str) -> str:
    return f"{kind} {name}: {', '.join(permissions)} of {role}"

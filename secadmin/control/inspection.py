"""Looking at what is there and why: the catalog as one sees it, decisions, the audit log."""

from __future__ import annotations

from sqlalchemy import select

from catalog.audit import AuditReport, verify
from catalog.decision import Decision
from catalog.models import AuditEntry
from catalog.permission import ObjectKind, Permission
from catalog.subject import subject_of_user
from secadmin.control.platform import Platform
from secadmin.control.work import Caller, reading


def view_catalog(
    platform: Platform, caller: Caller, kind: ObjectKind | None
) -> list[tuple[str, str, str]]:
    """(kind, name, owner) of all objects that the caller may view. Needs VIEW CATALOG."""
    with reading(platform, caller, "view catalog", "system") as view:
        objects = view.authorizer.visible_objects(view.subject, kind)
        return [
            (obj.kind, obj.name, obj.owner.name if obj.owner else "")
            for obj in objects
            if obj.kind != ObjectKind.SYSTEM
        ]


def explain(
    platform: Platform,
    caller: Caller,
    user: str | None,
    permission: Permission,
    kind: ObjectKind,
    name: str,
) -> tuple[Decision, ...]:
    """Why a user may or may not: each way in which it could hold the permission.

    About oneself, with the roles that are active, anyone may ask; about another user, with all of
    its roles, holders of CHANGE SYSTEM.
    """
    with reading(platform, caller, "explain", f"{permission} on {kind} {name}") as view:
        if user is None or user == caller.user_name:
            return view.authorizer.explain(view.subject, permission, view.find(kind, name))
        view.require_system(Permission.CHANGE_SYSTEM)
        subject = subject_of_user(view.session, view.user(user))
        obj = view.find(kind, name)
        return view.authorizer.explain(subject, permission, obj)


def read_audit(platform: Platform, caller: Caller, after: int, limit: int) -> list[AuditEntry]:
    """Audit entries with a higher number than `after`, oldest first. Needs CHANGE SYSTEM."""
    with reading(platform, caller, "read audit", "audit log") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        newer = select(AuditEntry).where(AuditEntry.seq > after).order_by(AuditEntry.seq)
        return list(view.session.scalars(newer.limit(limit)))


def verify_audit(platform: Platform, caller: Caller) -> AuditReport:
    """Check the audit log's hash chain. Needs CHANGE SYSTEM."""
    with reading(platform, caller, "verify audit", "audit log") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        return verify(view.session)

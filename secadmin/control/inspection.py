"""Calls that only look: the visible catalog, explanations of decisions, the audit log."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlalchemy import select

from catalog.audit import AuditReport, head
from catalog.audit_head import Head, KeptHeads
from catalog.decision import Decision
from catalog.models import AuditEntry
from catalog.permission import ObjectKind, Permission
from catalog.subject import subject_of_user
from secadmin.control.anchors import AnchorState
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
    """Explain a decision: list each way in which the user could hold the permission.

    A user may ask about itself, and its active roles count. To ask about another user needs CHANGE
    SYSTEM, and all roles of that user count.
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


def audit_head(platform: Platform, caller: Caller) -> Head:
    """The audit log's head, which the caller should keep elsewhere. Needs CHANGE SYSTEM."""
    with reading(platform, caller, "read audit head", "audit log") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
        return head(view.session)


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a check of the audit log, and the heads that it was compared with."""

    report: AuditReport
    anchors: tuple[AnchorState, ...]


def verify_audit(platform: Platform, caller: Caller, given: Head | None) -> Verification:
    """Check the audit log's chain, and check that each kept head is part of it.

    `given` is a head that the caller kept. Needs CHANGE SYSTEM.
    """
    with reading(platform, caller, "verify audit", "audit log") as view:
        view.require_system(Permission.CHANGE_SYSTEM)
    # Heads are read first, so each head belongs to an entry that is read later.
    states = tuple(platform.anchors.states())
    kept = [state.kept for state in states]
    if given is not None:
        kept.append(KeptHeads("the given head", frozenset({given})))
    report = platform.catalog.verify_audit(kept)
    lost = next((state for state in states if state.lost is not None), None)
    if report.intact and lost is not None and lost.lost is not None:
        problem = f"{lost.kept.place} lacks the head {lost.lost.seq}, which was sent there"
        report = replace(report, first_problem=(lost.lost.seq, problem))
    return Verification(report, states)

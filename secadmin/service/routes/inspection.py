"""The visible catalog, explanations, the audit log, and health."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from catalog.audit_head import Head
from catalog.permission import ObjectKind, parse_permission
from secadmin.control import inspection
from secadmin.control.anchors import AnchorState
from secadmin.control.health import list_problems as list_problems_of
from secadmin.service.answers import utc
from secadmin.service.authentication import Authenticated, OnPlatform

router = APIRouter(tags=["inspection"])


@router.get("/health")
def health(request: Request, platform: OnPlatform) -> dict[str, str]:
    """The health (ok or degraded), and whether the audit log's heads are kept.

    Callers need no login, so it says nothing else.
    """
    return {
        "status": "ok" if request.app.state.health.is_well() else "degraded",
        "audit_anchors": "behind" if platform.anchors.behind else "ok",
    }


@router.get("/problems")
def list_problems(platform: OnPlatform, caller: Authenticated) -> list[dict[str, Any]]:
    """The problems, each with its reason and since when it is there."""
    return [
        {"what": p.what, "reason": p.reason, "since": utc(p.since) if p.since else None}
        for p in list_problems_of(platform, caller)
    ]


@router.get("/catalog")
def view_catalog(
    platform: OnPlatform, caller: Authenticated, kind: ObjectKind | None = None
) -> list[dict[str, str]]:
    """The objects that the caller may view."""
    rows = inspection.view_catalog(platform, caller, kind)
    return [{"kind": kind, "name": name, "owner": owner} for kind, name, owner in rows]


@router.get("/explain")
def explain(
    platform: OnPlatform,
    caller: Authenticated,
    permission: str,
    kind: ObjectKind,
    name: str = "system",
    user: str | None = None,
) -> dict[str, Any]:
    """Explain why a user holds a permission or does not hold it."""
    wanted = parse_permission(permission)
    ways = inspection.explain(platform, caller, user, wanted, kind, name)
    return {
        "allowed": any(way.allowed for way in ways),
        "reasons": [{"allowed": way.allowed, "reason": way.reason} for way in ways],
    }


@router.get("/audit")
def read_audit(
    platform: OnPlatform,
    caller: Authenticated,
    after: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[dict[str, Any]]:
    """Audit entries, oldest first."""
    entries = inspection.read_audit(platform, caller, after, limit)
    names = ("seq", "actor", "action", "object", "outcome", "reason", "detail")
    return [
        {"at": utc(entry.at), **{name: getattr(entry, name) for name in names}} for entry in entries
    ]


@router.get("/audit/head")
def audit_head(platform: OnPlatform, caller: Authenticated) -> dict[str, Any]:
    """The audit log's head. Keep it where no user of the database can change it."""
    head = inspection.audit_head(platform, caller)
    return {"head": str(head), "seq": head.seq, "hash": head.hash}


@router.get("/audit/verify")
def verify_audit(
    platform: OnPlatform,
    caller: Authenticated,
    head: Annotated[str | None, Query(max_length=100)] = None,
) -> dict[str, Any]:
    """Check that the audit log is whole, and name the heads that it was compared with."""
    given = Head.parse(head) if head is not None else None
    verified = inspection.verify_audit(platform, caller, given)
    report = verified.report
    return {
        "entries": report.entries,
        "intact": report.intact,
        "first_problem": report.first_problem,
        "anchors": [_anchor(state) for state in verified.anchors],
    }


def _anchor(state: AnchorState) -> dict[str, Any]:
    """An anchor as JSON. `newest` is the number of the newest head that it holds."""
    return {
        "place": state.kept.place,
        "heads": len(state.kept.heads),
        "newest": state.kept.newest,
        "unreadable": state.unreadable,
        "behind": state.behind,
        "problem": state.problem,
    }

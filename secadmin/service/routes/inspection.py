"""The catalog as one sees it, explanations, the audit log, health."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from catalog.permission import ObjectKind, parse_permission
from secadmin.control import inspection
from secadmin.control.health import list_problems as list_problems_of
from secadmin.service.answers import utc
from secadmin.service.authentication import Authenticated, OnPlatform

router = APIRouter(tags=["inspection"])


@router.get("/health")
def health(request: Request) -> dict[str, str]:
    """Whether all is well, ok or degraded; no more is told to those who are not logged in."""
    return {"status": "ok" if request.app.state.health.is_well() else "degraded"}


@router.get("/problems")
def list_problems(platform: OnPlatform, caller: Authenticated) -> list[dict[str, Any]]:
    """What is not well, why, and since when."""
    return [
        {"what": p.what, "reason": p.reason, "since": utc(p.since) if p.since else None}
        for p in list_problems_of(platform, caller)
    ]


@router.get("/catalog")
def view_catalog(
    platform: OnPlatform, caller: Authenticated, kind: ObjectKind | None = None
) -> list[dict[str, str]]:
    """What the caller may view."""
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
    """Why a user may or may not."""
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


@router.get("/audit/verify")
def verify_audit(platform: OnPlatform, caller: Authenticated) -> dict[str, Any]:
    """Whether the audit log is whole."""
    report = inspection.verify_audit(platform, caller)
    return {**asdict(report), "intact": report.intact}
